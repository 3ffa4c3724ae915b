#include "exec/unhandled_failures.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <vector>

#include "base/environment.h"
#include "base/sync.h"
#include "exec/disk_cache.h"

namespace holdfast::exec::unhandled_failures {
namespace {

constexpr size_t most_reports = 8;  // kept in memory: later failures are mostly echoes of the first
constexpr size_t most_files = 8;    // kept in the folder
constexpr const char* prefix = "holdfast-ring-";

struct Report {
  Ref<Failure> failure;
  std::string text;
};

struct Kept {
  sync::Mutex mutex;
  // Guarded by mutex.
  std::deque<Report> reports;
  std::string path;  // the file of this process, once it is there
  std::terminate_handler previous = nullptr;
};

// Never destroyed: the last failures come while the process ends.
Kept& kept() {
  static auto* instance = new Kept;
  return *instance;
}

std::filesystem::path folder() {
  if (const std::string& chosen = environment::settings().ring_folder; !chosen.empty()) {
    return chosen;
  }
  std::filesystem::path kernels = DiskCache::default_folder();
  if (kernels.empty()) return std::filesystem::temp_directory_path();
  return kernels.parent_path() / "rings";
}

// Removes the oldest files of earlier processes, so that with a new one there are most_files.
void remove_old(const std::filesystem::path& folder) {
  std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    auto written = entry.last_write_time(error);
    if (!error) files.emplace_back(written, entry.path());
  }
  std::sort(files.begin(), files.end());
  for (size_t i = 0; i + most_files <= files.size(); ++i) {
    std::filesystem::remove(files[i].second, error);
  }
}

std::FILE* open_file(Kept& kept) {
  if (!kept.path.empty()) return std::fopen(kept.path.c_str(), "ae");
  const std::filesystem::path parent = folder();
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  remove_old(parent);
  std::string path = parent / (prefix + std::to_string(::getpid()) + "-XXXXXX.txt");
  int descriptor = ::mkostemps(path.data(), 4, O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  kept.path = path;
  return ::fdopen(descriptor, "w");
}

// Writes, and forgets, the reports that are chosen.
template <class Choose>
void write(Choose&& choose) noexcept {
  try {
    Kept& all = kept();
    // A thread that ends the process while it holds the lock must not wait for itself.
    std::unique_lock lock(all.mutex, std::try_to_lock);
    if (!lock) return;
    if (std::none_of(all.reports.begin(), all.reports.end(), choose)) return;
    bool is_new = all.path.empty();
    std::FILE* out = open_file(all);
    if (!out) return;
    for (const Report& report : all.reports) {
      if (choose(report)) std::fwrite(report.text.data(), 1, report.text.size(), out);
    }
    if (std::fclose(out) == 0 && is_new) {
      std::fprintf(stderr, "[holdfast] a command failed; what ran before it is in %s\n",
                   all.path.c_str());
    }
    std::erase_if(all.reports, choose);
  } catch (const std::exception&) {
    // No memory, or no folder: the failure itself was reported all the same.
  }
}

[[noreturn]] void on_terminate() {
  if (std::exception_ptr current = std::current_exception()) {
    try {
      std::rethrow_exception(current);
    } catch (const std::exception& error) {
      write_of(error.what());
    } catch (...) {
    }
  }
  write_unseen();
  if (kept().previous) kept().previous();
  std::abort();
}

}  // namespace

void add(const Ref<Failure>& failure, std::string report) noexcept {
  try {
    Kept& all = kept();
    std::lock_guard lock(all.mutex);
    if (!all.previous) all.previous = std::set_terminate(&on_terminate);
    if (all.reports.size() == most_reports) all.reports.pop_front();
    all.reports.push_back({failure, std::move(report)});
  } catch (const std::exception&) {
  }
}

void write_unseen() noexcept {
  write([](const Report& report) { return !report.failure->seen.load(); });
}

void write_of(const char* what) noexcept {
  write([&](const Report& report) { return report.failure->message() == what; });
}

}  // namespace holdfast::exec::unhandled_failures
