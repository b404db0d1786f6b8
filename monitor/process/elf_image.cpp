#include "monitor/process/elf_image.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <string_view>

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>
#include <fnmatch.h>
#include <gelf.h>
#include <unistd.h>

#include "monitor/process/descriptor.h"
#include "monitor/process/symbols.h"
#include "tso/support/open_file.h"

namespace tsomon::attach {
namespace {

constexpr uint8_t kPcRelative32 = 0x1b;  // DW_EH_PE_pcrel | DW_EH_PE_sdata4

// How the functions' addresses are written that refer to this entry; nothing when that is not told.
std::optional<uint8_t> pointer_encoding(const Dwarf_CIE& cie) {
  const uint8_t* at = cie.augmentation_data;
  const uint8_t* const end = at + cie.augmentation_data_size;
  for (const char* letter = cie.augmentation; *letter != '\0'; ++letter) {
    if (*letter == 'z' || *letter == 'S' || *letter == 'B') {
      continue;
    }
    if (at == nullptr || at >= end) {
      return std::nullopt;
    }
    if (*letter == 'R') {
      return *at;
    }
    if (*letter == 'P') {
      const uint8_t size = *at & 7;  // of the pointer after it: 3 and its signed twin have 4 bytes
      at += 1 + (size == 3 ? 4 : 8);
    } else if (*letter == 'L') {
      ++at;
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

// The ranges of functions that an .eh_frame section describes.
std::vector<Range> frames_of(const GElf_Ehdr& header, const Elf_Data& data, uint64_t address) {
  std::vector<Range> frames;
  std::map<Dwarf_Off, bool> understood;  // by the place of the common entry
  Dwarf_Off offset = 0;
  Dwarf_Off next = 0;
  Dwarf_CFI_Entry entry;
  const auto* ident = reinterpret_cast<const unsigned char*>(header.e_ident);
  while (dwarf_next_cfi(ident, const_cast<Elf_Data*>(&data), true, offset, &next, &entry) == 0) {
    if (dwarf_cfi_cie_p(&entry)) {
      understood[offset] = pointer_encoding(entry.cie) == kPcRelative32;
    } else if (understood[entry.fde.CIE_pointer]) {
      const auto* start = static_cast<const uint8_t*>(entry.fde.start);
      const auto* begin = static_cast<const uint8_t*>(data.d_buf);
      if (entry.fde.end - start >= 8) {
        int32_t distance = 0;
        uint32_t size = 0;
        std::memcpy(&distance, start, sizeof distance);
        std::memcpy(&size, start + 4, sizeof size);
        const uint64_t at = address + static_cast<uint64_t>(start - begin);
        const uint64_t from = at + static_cast<uint64_t>(static_cast<int64_t>(distance));
        frames.push_back({from, from + size});
      }
    }
    if (next <= offset) {
      break;
    }
    offset = next;
  }
  std::sort(frames.begin(), frames.end(),
            [](const Range& left, const Range& right) { return left.begin < right.begin; });
  return frames;
}

// The demangled name of an instance of a template begins with the type that it returns.
std::string without_return_type(std::string name) {
  if (name.find("operator") != std::string::npos) {
    return name;
  }
  int depth = 0;
  for (size_t at = name.size(); at-- > 0;) {
    depth += name[at] == '>' || name[at] == ')' ? 1 : name[at] == '<' || name[at] == '(' ? -1 : 0;
    if (name[at] == ' ' && depth == 0) {
      return name.substr(at + 1);
    }
  }
  return name;
}

std::string text_at(const uint8_t* bytes, size_t size, size_t& at) {
  const size_t begin = at;
  while (at < size && bytes[at] != 0) {
    ++at;
  }
  std::string text(reinterpret_cast<const char*>(bytes) + begin, at - begin);
  ++at;
  return text;
}

// The notes of <sys/sdt.h>. Addresses in them are as the file was linked; when it was moved since
// (prelink), the section .stapsdt.base tells by how much.
void read_markers(const Elf_Data& data, uint64_t base, std::vector<Marker>& markers) {
  size_t at = 0;
  GElf_Nhdr header;
  size_t name = 0;
  size_t description = 0;
  while ((at = gelf_getnote(const_cast<Elf_Data*>(&data), at, &header, &name, &description)) != 0) {
    constexpr uint32_t kType = 3;
    constexpr size_t kWords = 3 * sizeof(uint64_t);
    const auto* bytes = static_cast<const uint8_t*>(data.d_buf);
    if (header.n_type != kType || header.n_descsz < kWords ||
        std::string_view(reinterpret_cast<const char*>(bytes) + name, header.n_namesz)
                .substr(0, 7) != "stapsdt") {
      continue;
    }
    uint64_t words[3];
    std::memcpy(words, bytes + description, sizeof words);
    size_t text = description + kWords;
    const size_t end = description + header.n_descsz;
    Marker marker;
    marker.provider = text_at(bytes, end, text);
    marker.name = text_at(bytes, end, text);
    const uint64_t moved = base != 0 ? base - words[1] : 0;
    marker.address = words[0] + moved;
    marker.semaphore = words[2] == 0 ? 0 : words[2] + moved;
    markers.push_back(std::move(marker));
  }
}

}  // namespace

Result<std::unique_ptr<ElfImage>> ElfImage::open(const std::string& file, const std::string& shown,
                                                 const DebugPlace& debug) {
  std::unique_ptr<ElfImage> image(new ElfImage(debug));
  image->file_ = file;
  const int fd = open_regular_file(shown);
  if (fd < 0) {
    return fail(ErrorKind::kUnreadable,
                fmt::format("{}: cannot be opened: {}", shown, std::strerror(errno)));
  }
  image->module_ = image->session_.open(shown, fd);
  if (image->module_ == nullptr) {
    return fail(ErrorKind::kMalformed,
                fmt::format("{}: cannot be read as ELF: {}", shown, dwfl_errmsg(-1)));
  }
  image->read_segments();
  image->read_sections();
  image->read_symbols();
  return image;
}

void ElfImage::read_segments() {
  GElf_Addr bias = 0;
  Elf* elf = dwfl_module_getelf(module_, &bias);
  size_t count = 0;
  if (elf == nullptr || elf_getphdrnum(elf, &count) != 0) {
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) != nullptr && header.p_type == PT_LOAD) {
      segments_.push_back(
          {header.p_vaddr, header.p_offset, header.p_filesz, (header.p_flags & PF_X) != 0});
    }
  }
}

void ElfImage::read_sections() {
  GElf_Addr bias = 0;
  Elf* elf = dwfl_module_getelf(module_, &bias);
  GElf_Ehdr header;
  size_t names = 0;
  if (elf == nullptr || gelf_getehdr(elf, &header) == nullptr ||
      elf_getshdrstrndx(elf, &names) != 0) {
    return;
  }
  uint64_t base = 0;
  std::vector<Elf_Data*> notes;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr shape;
    if (gelf_getshdr(section, &shape) == nullptr || shape.sh_type == SHT_NOBITS) {
      continue;
    }
    const char* name = elf_strptr(elf, names, shape.sh_name);
    const std::string_view text = name == nullptr ? "" : name;
    if (text == ".stapsdt.base") {
      base = shape.sh_addr;
    }
    Elf_Data* data =
        text == ".eh_frame" || text == ".note.stapsdt" ? elf_rawdata(section, nullptr) : nullptr;
    if (data == nullptr || data->d_buf == nullptr) {
      continue;
    }
    if (text == ".eh_frame") {
      frames_ = frames_of(header, *data, shape.sh_addr);
    } else if (Elf_Data* translated = elf_getdata(section, nullptr)) {
      notes.push_back(translated);
    }
  }
  for (const Elf_Data* data : notes) {
    read_markers(*data, base, markers_);
  }
}

void ElfImage::read_symbols() {
  const int count = dwfl_module_getsymtab(module_);
  for (int i = 1; i < count; ++i) {
    GElf_Sym raw;
    GElf_Addr address = 0;
    GElf_Word section = 0;
    const char* name =
        dwfl_module_getsym_info(module_, i, &raw, &address, &section, nullptr, nullptr);
    const int type = GELF_ST_TYPE(raw.st_info);
    const bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
    if (name == nullptr || *name == '\0' || raw.st_shndx == SHN_UNDEF ||
        (!function && type != STT_OBJECT)) {
      continue;
    }
    std::vector<Symbol>& symbols = function ? functions_ : variables_;
    if (symbols.empty()) {
      symbols.reserve(static_cast<size_t>(count - i));
    }
    symbols.push_back({name, address, raw.st_size});
  }
  for (std::vector<Symbol>* const symbols : {&functions_, &variables_}) {
    std::sort(symbols->begin(), symbols->end(), [](const Symbol& left, const Symbol& right) {
      return left.address != right.address ? left.address < right.address
                                           : left.text() < right.text();
    });
    symbols->erase(std::unique(symbols->begin(), symbols->end(),
                               [](const Symbol& left, const Symbol& right) {
                                 return left.address == right.address &&
                                        left.text() == right.text();
                               }),
                   symbols->end());
    symbols->shrink_to_fit();
  }
  uint64_t next = 0;  // where the function behind begins
  for (size_t i = functions_.size(); i-- > 0;) {
    Symbol& symbol = functions_[i];
    if (i + 1 < functions_.size() && functions_[i + 1].address != symbol.address) {
      next = functions_[i + 1].address;
    }
    if (symbol.size != 0) {
      continue;
    }
    const auto frame = function_around(symbol.address);
    if (frame && frame->begin == symbol.address) {
      symbol.size = frame->end - frame->begin;
    } else if (next != 0) {
      symbol.size = next - symbol.address;
    }
  }
}

std::string Symbol::readable() const { return without_return_type(readable_name(name)); }

bool Symbol::matches(const std::string& pattern) const {
  return ::fnmatch(pattern.c_str(), name, 0) == 0 ||
         ::fnmatch(pattern.c_str(), readable().c_str(), 0) == 0;
}

const Symbol* symbol_around(const std::vector<Symbol>& symbols, uint64_t address) {
  auto at = std::upper_bound(
      symbols.begin(), symbols.end(), address,
      [](uint64_t wanted, const Symbol& symbol) { return wanted < symbol.address; });
  const Symbol* found = nullptr;
  while (at != symbols.begin()) {
    --at;
    if (found != nullptr && at->address != found->address) {
      break;
    }
    if (at->size != 0) {
      found = &*at;
    }
  }
  return found != nullptr && found->range().contains(address) ? found : nullptr;
}

std::optional<uint64_t> ElfImage::offset_of(uint64_t address) const {
  for (const Segment& segment : segments_) {
    if (segment.address <= address && address - segment.address < segment.size) {
      return address - segment.address + segment.offset;
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> ElfImage::address_of(uint64_t offset) const {
  for (const Segment& segment : segments_) {
    if (segment.offset <= offset && offset - segment.offset < segment.size) {
      return offset - segment.offset + segment.address;
    }
  }
  return std::nullopt;
}

std::optional<Range> ElfImage::function_around(uint64_t address) const {
  auto after =
      std::upper_bound(frames_.begin(), frames_.end(), address,
                       [](uint64_t wanted, const Range& frame) { return wanted < frame.begin; });
  if (after == frames_.begin() || !(--after)->contains(address)) {
    return std::nullopt;
  }
  return *after;
}

std::vector<uint8_t> ElfImage::code(const Range& range) const {
  for (const Segment& segment : segments_) {
    if (!segment.executable || range.begin < segment.address || range.end <= range.begin ||
        range.end - segment.address > segment.size) {
      continue;
    }
    std::vector<uint8_t> bytes(range.end - range.begin);
    const Descriptor file(open_regular_file(file_));
    const ssize_t got =
        ::pread(file.get(), bytes.data(), bytes.size(),
                static_cast<off_t>(segment.offset + (range.begin - segment.address)));
    if (got == static_cast<ssize_t>(bytes.size())) {
      return bytes;
    }
  }
  return {};
}

}  // namespace tsomon::attach
