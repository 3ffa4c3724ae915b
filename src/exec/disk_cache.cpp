#include "exec/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include "exec/kernel_file.h"

namespace holdfast::exec {
namespace {

constexpr const char* suffix = ".kernel";
constexpr const char* temporary_prefix = ".new-";
constexpr time_t stale_seconds = 3600;  // a temporary file of a process that died
constexpr uint64_t largest_entry = uint64_t{256} << 20;
constexpr int stores_between_looks = 32;

// A file descriptor that closes itself.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

std::string name_of(const KernelRequest& request) {
  return request.target().name() + "-" + to_hex(request.hash());
}

bool read_all(int file, char* bytes, size_t size) {
  while (size > 0) {
    ssize_t got = ::read(file, bytes, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

bool write_all(int file, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    ssize_t put = ::write(file, bytes.data() + done, bytes.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += static_cast<size_t>(put);
  }
  return true;
}

// Makes the folder and its parents, closed to others.
void make_folders(const std::string& folder) {
  for (size_t end = folder.find('/', 1); end != std::string::npos; end = folder.find('/', end + 1))
    ::mkdir(folder.substr(0, end).c_str(), 0700);
  ::mkdir(folder.c_str(), 0700);
}

struct FoundFile {
  std::string name;
  uint64_t size;
  timespec used;
};

// The entries of the folder; removes temporary files that nobody will finish.
std::vector<FoundFile> list_entries(int folder) {
  std::vector<FoundFile> entries;
  int own = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* directory = own >= 0 ? ::fdopendir(own) : nullptr;
  if (!directory) {
    if (own >= 0) ::close(own);
    return entries;
  }
  time_t now = ::time(nullptr);
  while (const dirent* item = ::readdir(directory)) {
    std::string name = item->d_name;
    struct stat status{};
    bool is_temporary = name.starts_with(temporary_prefix);
    if (!is_temporary && !name.ends_with(suffix)) continue;
    if (::fstatat(folder, item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (is_temporary) {
      if (now - status.st_mtime > stale_seconds) ::unlinkat(folder, item->d_name, 0);
      continue;
    }
    entries.push_back({std::move(name), static_cast<uint64_t>(status.st_size), status.st_mtim});
  }
  ::closedir(directory);
  return entries;
}

}  // namespace

DiskCache::DiskCache(std::string folder, uint64_t max_bytes)
    : folder_(std::move(folder)), max_bytes_(max_bytes) {}

std::string DiskCache::default_folder(const std::string& part) {
  auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string chosen = variable("HOLDFAST_CACHE_DIR"); !chosen.empty())
    return chosen + "/" + part;
  // A relative XDG_CACHE_HOME is to be ignored, says its specification.
  if (std::string cache = variable("XDG_CACHE_HOME"); cache.starts_with('/'))
    return cache + "/holdfast/" + part;
  if (std::string home = variable("HOME"); home.starts_with('/'))
    return home + "/.cache/holdfast/" + part;
  return "";
}

int DiskCache::open_folder(bool create) {
  auto open_it = [&] {
    return ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  };
  int opened = open_it();
  if (opened < 0 && errno == ENOENT) {
    if (!create) return -1;
    make_folders(folder_);
    opened = open_it();
  }
  File folder(opened);
  const char* complaint = nullptr;
  struct stat status{};
  if (!folder.is_open()) {
    complaint = std::strerror(errno);
  } else if (::fstat(folder.get(), &status) != 0) {
    complaint = std::strerror(errno);
  } else if (status.st_uid != ::geteuid()) {
    complaint = "it belongs to another user";
  } else if ((status.st_mode & 077) != 0) {
    complaint = "other users may enter it; chmod 700 makes it usable";
  }
  if (!complaint) return folder.release();
  if (!has_warned_.exchange(true)) {
    std::fprintf(stderr, "holdfast: compiled kernels are not kept in \"%s\": %s\n", folder_.c_str(),
                 complaint);
  }
  return -1;
}

std::optional<std::string> DiskCache::load(const KernelRequest& request) noexcept try {
  return load(name_of(request), request.key());
} catch (...) {
  return {};
}

std::optional<std::string> DiskCache::load(const std::string& name, std::string_view key) noexcept
    try {
  File folder(open_folder(false));
  if (!folder.is_open()) return {};
  File file(::openat(folder.get(), (name + suffix).c_str(),
                     O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return {};
  struct stat status{};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != ::geteuid() || (status.st_mode & 022) != 0 ||
      static_cast<uint64_t>(status.st_size) > largest_entry) {
    return {};
  }
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  if (!read_all(file.get(), bytes.data(), bytes.size())) return {};
  std::optional<std::string_view> kernel = from_kernel_file(bytes, key);
  if (!kernel) return {};
  // Its time says when it was used last.
  ::futimens(file.get(), nullptr);
  return std::string(*kernel);
} catch (...) {
  return {};
}

bool DiskCache::write_entry(int folder, const std::string& name, const std::string& bytes) {
  static sync::Atomic<uint64_t> counter{0};
  std::string temporary = temporary_prefix + std::to_string(::getpid()) + "-" +
                          std::to_string(counter.fetch_add(1)) + "-" +
                          std::to_string(sync::Clock::now().time_since_epoch().count());
  File file(::openat(folder, temporary.c_str(),
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.is_open()) return false;
  // A file that lost its end to a crash of the machine is found by its checksum.
  if (write_all(file.get(), bytes) &&
      ::renameat(folder, temporary.c_str(), folder, name.c_str()) == 0) {
    return true;
  }
  ::unlinkat(folder, temporary.c_str(), 0);
  return false;
}

void DiskCache::store(const KernelRequest& request, const Binary& binary) noexcept try {
  store(name_of(request), request.key(), binary.bytes());
} catch (...) {
}

void DiskCache::store(const std::string& name, std::string_view key,
                      std::string_view contents) noexcept try {
  std::string bytes = to_kernel_file(key, contents);
  if (bytes.size() > max_bytes_ || bytes.size() > largest_entry) return;
  File folder(open_folder(true));
  if (!folder.is_open()) return;
  if (write_entry(folder.get(), name + suffix, bytes)) keep_bound(folder.get(), bytes.size());
} catch (...) {
}

void DiskCache::remove(const KernelRequest& request) noexcept try {
  File folder(open_folder(false));
  if (folder.is_open()) ::unlinkat(folder.get(), (name_of(request) + suffix).c_str(), 0);
} catch (...) {
}

// Other processes add files too: the folder is read again after some stores, and whenever the bound
// seems to be passed.
void DiskCache::keep_bound(int folder, uint64_t added) {
  std::lock_guard guard(mutex_);
  if (bytes_) *bytes_ += added;
  if (bytes_ && *bytes_ <= max_bytes_ && ++stores_since_look_ < stores_between_looks) return;
  stores_since_look_ = 0;
  std::vector<FoundFile> entries = list_entries(folder);
  uint64_t total = 0;
  for (const FoundFile& entry : entries) total += entry.size;
  if (total > max_bytes_) {
    std::sort(entries.begin(), entries.end(), [](const FoundFile& a, const FoundFile& b) {
      return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec
                                            : a.used.tv_nsec < b.used.tv_nsec;
    });
    // Some room, so that not every store has to look.
    for (const FoundFile& entry : entries) {
      if (total <= max_bytes_ - max_bytes_ / 8) break;
      if (::unlinkat(folder, entry.name.c_str(), 0) == 0) total -= entry.size;
    }
  }
  bytes_ = total;
}

}  // namespace holdfast::exec
