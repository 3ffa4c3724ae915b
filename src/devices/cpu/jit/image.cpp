#include "devices/cpu/jit/image.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace holdfast::jit {
namespace {

// More than any kernel needs: a damaged size must not become an allocation.
constexpr size_t max_image = size_t{256} << 20;
constexpr size_t max_alignment = 4096;

#if defined(__aarch64__)
constexpr uint16_t native_machine = EM_AARCH64;
#else
constexpr uint16_t native_machine = EM_X86_64;
#endif

[[noreturn]] void reject(const std::string& what) {
  throw std::runtime_error("[jit] damaged kernel object: " + what);
}

size_t page_size() {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

size_t round_up(size_t value, size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Memory that is unmapped again unless somebody takes it over.
struct Mapping {
  explicit Mapping(size_t size) : bytes(size) {
    void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
      throw std::runtime_error("[jit] no memory for " + std::to_string(size) + " bytes of code");
    memory = static_cast<char*>(mapped);
  }
  Mapping(const Mapping&) = delete;
  ~Mapping() {
    if (memory) munmap(memory, bytes);
  }
  void protect(size_t from, size_t to, int protection) {
    if (from < to && mprotect(memory + from, to - from, protection) != 0)
      throw std::runtime_error("[jit] the system does not allow generated code to run (mprotect)");
  }
  char* memory = nullptr;
  size_t bytes;
};

// Where a section went; `size` counts from `offset` in the mapping.
struct Placed {
  bool is_loaded = false;
  bool is_code = false;
  size_t offset = 0, size = 0;
};

class Loader {
 public:
  explicit Loader(std::span<const char> object) : object_(object) {
    read_sections();
    place_sections();
    read_symbols();
  }

  size_t code_bytes() const { return code_bytes_; }
  size_t image_bytes() const { return image_bytes_; }

  void copy_to(char* memory) const {
    for (size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& s = sections_[i];
      if (placed_[i].is_loaded && s.sh_type != SHT_NOBITS && s.sh_size != 0)
        std::memcpy(memory + placed_[i].offset, object_.data() + s.sh_offset, s.sh_size);
    }
  }

  void relocate(char* memory) {
    for (const Elf64_Shdr& s : sections_) {
      if (s.sh_type == SHT_REL && s.sh_info < placed_.size() && placed_[s.sh_info].is_loaded)
        reject("relocations without addends");
      if (s.sh_type != SHT_RELA) continue;
      if (s.sh_info >= placed_.size()) reject("relocations of a section that does not exist");
      const Placed& target = placed_[s.sh_info];
      if (!target.is_loaded) continue;
      for (size_t i = 0; i < s.sh_size / sizeof(Elf64_Rela); ++i)
        relocate(memory, target, read<Elf64_Rela>(s.sh_offset + i * sizeof(Elf64_Rela)));
    }
  }

  std::vector<std::pair<std::string, const char*>> functions(const char* memory) const {
    std::vector<std::pair<std::string, const char*>> found;
    for (const Elf64_Sym& symbol : symbols_) {
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx >= placed_.size()) continue;
      const Placed& section = placed_[symbol.st_shndx];
      if (!section.is_code || symbol.st_value >= section.size) continue;
      found.emplace_back(name_of(symbol), memory + section.offset + symbol.st_value);
    }
    return found;
  }

 private:
  // A struct at a place in the object, which need not be aligned.
  template <class T>
  T read(size_t offset) const {
    check_range(offset, sizeof(T), "a table");
    T value;
    std::memcpy(&value, object_.data() + offset, sizeof(T));
    return value;
  }

  void check_range(uint64_t offset, uint64_t size, const char* what) const {
    if (offset > object_.size() || size > object_.size() - offset)
      reject(std::string(what) + " reaches beyond the end");
  }

  void read_sections() {
    auto header = read<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
      reject("not a 64-bit ELF object");
    }
    if (header.e_type != ET_REL) reject("not a relocatable object");
    if (header.e_machine != native_machine) reject("for another processor");
    if (header.e_shentsize != sizeof(Elf64_Shdr)) reject("section headers of an unknown size");
    check_range(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr), "the section table");
    sections_.reserve(header.e_shnum);
    for (size_t i = 0; i < header.e_shnum; ++i) {
      auto section = read<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
      if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL)
        check_range(section.sh_offset, section.sh_size, "a section");
      if (section.sh_type == SHT_RELA && section.sh_size % sizeof(Elf64_Rela) != 0)
        reject("a relocation table of an odd size");
      sections_.push_back(section);
    }
  }

  // Code first, then on pages of its own everything that is only read, then the table of addresses
  // for relocations that want one.
  void place_sections() {
    placed_.resize(sections_.size());
    place(true);
    code_bytes_ = image_bytes_;
    if (code_bytes_ == 0) reject("no code");
    image_bytes_ = round_up(image_bytes_, page_size());
    place(false);
    size_t entries = 0;
    for (const Elf64_Shdr& s : sections_) {
      if (s.sh_type == SHT_RELA) entries += s.sh_size / sizeof(Elf64_Rela);
    }
    table_ = round_up(image_bytes_, sizeof(uint64_t));
    table_end_ = table_ + entries * sizeof(uint64_t);
    image_bytes_ = round_up(table_end_, page_size());
  }

  void place(bool code) {
    for (size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& s = sections_[i];
      bool is_code = (s.sh_flags & SHF_EXECINSTR) != 0;
      if (!(s.sh_flags & SHF_ALLOC) || is_code != code || s.sh_type == SHT_NULL) continue;
      if (s.sh_flags & SHF_TLS) reject("thread-local data");
      size_t alignment = std::max<uint64_t>(s.sh_addralign, 1);
      if (alignment > max_alignment || (alignment & (alignment - 1)) != 0)
        reject("a section of impossible alignment");
      if (s.sh_size > max_image) reject("a section of impossible size");
      size_t offset = round_up(image_bytes_, alignment);
      if (offset + s.sh_size > max_image) reject("more than an image may hold");
      placed_[i] = {true, is_code, offset, s.sh_size};
      image_bytes_ = offset + s.sh_size;
    }
  }

  void read_symbols() {
    for (const Elf64_Shdr& s : sections_) {
      if (s.sh_type != SHT_SYMTAB) continue;
      if (!symbols_.empty()) reject("two symbol tables");
      if (s.sh_size % sizeof(Elf64_Sym) != 0) reject("a symbol table of an odd size");
      if (s.sh_link >= sections_.size() || sections_[s.sh_link].sh_type != SHT_STRTAB)
        reject("a symbol table without names");
      names_ = object_.subspan(sections_[s.sh_link].sh_offset, sections_[s.sh_link].sh_size);
      for (size_t i = 0; i < s.sh_size / sizeof(Elf64_Sym); ++i)
        symbols_.push_back(read<Elf64_Sym>(s.sh_offset + i * sizeof(Elf64_Sym)));
    }
  }

  std::string name_of(const Elf64_Sym& symbol) const {
    if (symbol.st_name >= names_.size()) reject("a name outside the table of names");
    const char* begin = names_.data() + symbol.st_name;
    const char* limit = names_.data() + names_.size();
    const char* end = std::find(begin, limit, '\0');
    if (end == limit) reject("a name without an end");
    return std::string(begin, end);
  }

  uint64_t address_of(const char* memory, size_t index) const {
    if (index >= symbols_.size()) reject("a relocation to a symbol that does not exist");
    const Elf64_Sym& symbol = symbols_[index];
    if (symbol.st_shndx == SHN_ABS) return symbol.st_value;
    if (symbol.st_shndx == SHN_UNDEF) reject("it needs the symbol " + name_of(symbol));
    if (symbol.st_shndx >= placed_.size() || !placed_[symbol.st_shndx].is_loaded)
      reject("a symbol of a section that is not loaded");
    const Placed& section = placed_[symbol.st_shndx];
    if (symbol.st_value > section.size) reject("a symbol outside its section");
    return reinterpret_cast<uint64_t>(memory) + section.offset + symbol.st_value;
  }

  template <class T>
  static void store(char* place, T value) {
    std::memcpy(place, &value, sizeof(value));
  }

  static void store_signed_32(char* place, int64_t value) {
    if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max())
      reject("an address out of reach");
    store(place, static_cast<int32_t>(value));
  }

  static void check_place(const Placed& target, uint64_t offset, size_t width) {
    if (offset > target.size || width > target.size - offset)
      reject("a relocation outside its section");
  }

  // The AArch64 relocations would be cases of their own here; the rest of the loader is the same.
  void relocate(char* memory, const Placed& target, const Elf64_Rela& relocation) {
    uint32_t type = ELF64_R_TYPE(relocation.r_info);
    if (native_machine != EM_X86_64) reject("relocations of this processor are not known yet");
    if (type == R_X86_64_NONE) return;
    check_place(target, relocation.r_offset,
                type == R_X86_64_64 || type == R_X86_64_PC64 ? sizeof(uint64_t) : sizeof(uint32_t));
    char* place = memory + target.offset + relocation.r_offset;
    uint64_t symbol = address_of(memory, ELF64_R_SYM(relocation.r_info));
    uint64_t here = reinterpret_cast<uint64_t>(place);
    uint64_t value = symbol + static_cast<uint64_t>(relocation.r_addend);
    switch (type) {
      case R_X86_64_64:
        return store(place, value);
      case R_X86_64_PC64:
        return store(place, value - here);
      case R_X86_64_PC32:
      case R_X86_64_PLT32:
        return store_signed_32(place, static_cast<int64_t>(value - here));
      case R_X86_64_32:
        if (value > std::numeric_limits<uint32_t>::max()) reject("an address out of reach");
        return store(place, static_cast<uint32_t>(value));
      case R_X86_64_32S:
        return store_signed_32(place, static_cast<int64_t>(value));
      case R_X86_64_GOTPCREL:
      case R_X86_64_GOTPCRELX:
      case R_X86_64_REX_GOTPCRELX: {
        // The table has an entry for each relocation of the object, so there is always one left.
        char* entry = memory + table_ + table_used_++ * sizeof(uint64_t);
        store(entry, symbol);
        uint64_t address =
            reinterpret_cast<uint64_t>(entry) + static_cast<uint64_t>(relocation.r_addend);
        return store_signed_32(place, static_cast<int64_t>(address - here));
      }
      default:
        reject("an unknown relocation (" + std::to_string(type) + ")");
    }
  }

  std::span<const char> object_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Placed> placed_;
  std::vector<Elf64_Sym> symbols_;
  std::span<const char> names_;
  size_t code_bytes_ = 0, image_bytes_ = 0;
  size_t table_ = 0, table_end_ = 0, table_used_ = 0;
};

}  // namespace

Image::Image(std::span<const char> object) {
  Loader loader(object);
  Mapping mapping(loader.image_bytes());
  loader.copy_to(mapping.memory);
  loader.relocate(mapping.memory);
  functions_ = loader.functions(mapping.memory);
  size_t code_end = round_up(loader.code_bytes(), page_size());
  mapping.protect(0, code_end, PROT_READ | PROT_EXEC);
  mapping.protect(code_end, mapping.bytes, PROT_READ);
  __builtin___clear_cache(mapping.memory, mapping.memory + code_end);
  code_bytes_ = loader.code_bytes();
  bytes_ = mapping.bytes;
  memory_ = std::exchange(mapping.memory, nullptr);
  code_ = memory_;
}

Image::Image(Image&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      code_(std::exchange(other.code_, nullptr)),
      code_bytes_(std::exchange(other.code_bytes_, 0)),
      functions_(std::move(other.functions_)) {}

Image::~Image() {
  if (memory_) munmap(memory_, bytes_);
}

const void* Image::find(std::string_view name) const {
  for (const auto& [known, address] : functions_) {
    if (known == name) return address;
  }
  return nullptr;
}

}  // namespace holdfast::jit
