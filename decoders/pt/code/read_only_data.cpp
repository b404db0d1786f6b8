#include "decoders/pt/code/read_only_data.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <tuple>
#include <utility>

#include <elf.h>

namespace tsomon::pt {
namespace {

constexpr uint64_t kMostBytes = uint64_t{256} << 20;  // of one segment

// An object at an offset of the file.
template <typename T>
bool read_at(std::ifstream& file, uint64_t offset, T& to) {
  file.seekg(static_cast<std::streamoff>(offset));
  return static_cast<bool>(file.read(reinterpret_cast<char*>(&to), sizeof to));
}

// What the file tells the loader.
struct Dynamic {
  bool text_relocations = false;
  bool needs_files = false;
  uint64_t function_addresses = 0;  // DT_PLTGOT
  uint64_t late = 0;                // DT_JMPREL
  uint64_t late_size = 0;           // bytes
  uint64_t names = 0;               // DT_STRTAB
  std::optional<uint64_t> name;     // DT_SONAME
  uint64_t relocations = 0;         // DT_RELA
  uint64_t relocations_size = 0;    // bytes
  uint64_t symbols = 0;             // DT_SYMTAB
};

Dynamic read_dynamic(std::ifstream& file, const Elf64_Phdr& segment) {
  Dynamic found;
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz; at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    if (!read_at(file, segment.p_offset + at, entry) || entry.d_tag == DT_NULL) {
      break;
    }
    found.text_relocations |= entry.d_tag == DT_TEXTREL ||
                              (entry.d_tag == DT_FLAGS && (entry.d_un.d_val & DF_TEXTREL) != 0);
    found.needs_files |= entry.d_tag == DT_NEEDED;
    if (entry.d_tag == DT_PLTGOT) {
      found.function_addresses = entry.d_un.d_ptr;
    } else if (entry.d_tag == DT_JMPREL) {
      found.late = entry.d_un.d_ptr;
    } else if (entry.d_tag == DT_PLTRELSZ) {
      found.late_size = entry.d_un.d_val;
    } else if (entry.d_tag == DT_RELA) {
      found.relocations = entry.d_un.d_ptr;
    } else if (entry.d_tag == DT_RELASZ) {
      found.relocations_size = entry.d_un.d_val;
    } else if (entry.d_tag == DT_SYMTAB) {
      found.symbols = entry.d_un.d_ptr;
    } else if (entry.d_tag == DT_STRTAB) {
      found.names = entry.d_un.d_ptr;
    } else if (entry.d_tag == DT_SONAME) {
      found.name = entry.d_un.d_val;
    }
  }
  return found;
}

}  // namespace

template <typename T>
bool ReadOnlyData::read_object(std::ifstream& file, const std::vector<Segment>& segments,
                               uint64_t address, T& to) {
  return std::any_of(segments.begin(), segments.end(), [&](const Segment& segment) {
    const uint64_t at = address - segment.address;
    return address >= segment.address && at <= segment.size && sizeof to <= segment.size - at &&
           read_at(file, segment.offset + at, to);
  });
}

// `name`: its address, as the file has it.
bool ReadOnlyData::names_c_library(std::ifstream& file, const std::vector<Segment>& segments,
                                   uint64_t name) {
  static constexpr const char* kNames[] = {"libc.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2"};
  return std::any_of(std::begin(kNames), std::end(kNames), [&](const char* known) {
    // With its end.
    for (size_t i = 0; i <= std::strlen(known); ++i) {
      char one = 0;
      if (!read_object(file, segments, name + i, one) || one != known[i]) {
        return false;
      }
    }
    return true;
  });
}

// Words of `settled`; the file's block begins `below` bytes below the thread pointer.
std::vector<ReadOnlyData::Offset> ReadOnlyData::thread_offsets(std::ifstream& file,
                                                               const std::vector<Segment>& segments,
                                                               const Relocations& relocations,
                                                               Block settled, uint64_t below) {
  std::vector<Offset> offsets;
  Elf64_Rela relocation;
  for (uint64_t at = 0; at + sizeof relocation <= relocations.size &&
                        read_object(file, segments, relocations.table + at, relocation);
       at += sizeof relocation) {
    if (ELF64_R_TYPE(relocation.r_info) != R_X86_64_TPOFF64 || settled.size < 8 ||
        relocation.r_offset < settled.address ||
        relocation.r_offset - settled.address > settled.size - 8) {
      continue;
    }
    Elf64_Sym symbol{};
    const uint64_t index = ELF64_R_SYM(relocation.r_info);
    if (index != 0 &&
        (!read_object(file, segments, relocations.symbols + index * sizeof symbol, symbol) ||
         symbol.st_shndx == SHN_UNDEF)) {
      continue;
    }
    offsets.push_back({relocation.r_offset,
                       symbol.st_value + static_cast<uint64_t>(relocation.r_addend) - below});
  }
  return offsets;
}

// The words that a file's late relocations are of; of a table that no segment holds: everywhere.
std::vector<ReadOnlyData::Block> ReadOnlyData::late_words(std::ifstream& file,
                                                          const std::vector<Segment>& segments,
                                                          uint64_t table, uint64_t size) {
  std::vector<Block> everywhere{{0, kEverywhere}};
  std::vector<Block> words;
  for (const Segment& segment : segments) {
    if (table < segment.address || table - segment.address > segment.size ||
        size > segment.size - (table - segment.address)) {
      continue;
    }
    Elf64_Rela relocation;
    for (uint64_t at = 0; at + sizeof relocation <= size; at += sizeof relocation) {
      if (!read_at(file, segment.offset + (table - segment.address) + at, relocation)) {
        return everywhere;
      }
      if (!words.empty() && words.back().address + words.back().size == relocation.r_offset) {
        words.back().size += 8;
      } else {
        words.push_back({relocation.r_offset, 8});
      }
    }
    return words;
  }
  return size == 0 ? words : everywhere;
}

ReadOnlyData::File ReadOnlyData::read_file(const std::string& name) {
  std::error_code error;
  const uint64_t size =
      std::filesystem::is_regular_file(name, error) ? std::filesystem::file_size(name, error) : 0;
  std::ifstream file(name, std::ios::binary);
  Elf64_Ehdr header;
  if (error || size == 0 || !file || !read_at(file, 0, header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != EM_X86_64 ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return {};
  }
  File read;
  read.name = name;
  read.size = size;
  read.time = std::filesystem::last_write_time(name, error);
  Dynamic dynamic;
  bool executable = false;
  Block read_only_later;
  Elf64_Phdr variables{};
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr program;
    if (!read_at(file, header.e_phoff + i * sizeof program, program)) {
      return {};
    }
    if (program.p_type == PT_DYNAMIC) {
      dynamic = read_dynamic(file, program);
    } else if (program.p_type == PT_INTERP) {
      executable = true;
    } else if (program.p_type == PT_GNU_RELRO) {
      // Whole pages only are protected.
      const uint64_t end = (program.p_vaddr + program.p_memsz) / kPage * kPage;
      read_only_later = {program.p_vaddr, end > program.p_vaddr ? end - program.p_vaddr : 0};
    }
    if (program.p_type == PT_TLS) {
      variables = program;
      read.thread_variables = true;
    }
    if (program.p_type == PT_GNU_EH_FRAME) {
      read.unwind_header = program.p_vaddr;
    }
    if (program.p_type == PT_LOAD && (program.p_flags & PF_W) != 0) {
      read.data.push_back({program.p_vaddr, program.p_memsz});
    }
    if (program.p_type != PT_LOAD || (program.p_flags & PF_W) != 0 || program.p_offset > size ||
        program.p_filesz > size - program.p_offset || program.p_filesz > kMostBytes) {
      continue;
    }
    Segment segment;
    segment.offset = program.p_offset;
    segment.address = program.p_vaddr;
    segment.code = (program.p_flags & PF_X) != 0;
    segment.size = program.p_filesz;
    read.segments.push_back(segment);
  }
  if (dynamic.text_relocations || error) {
    return {};
  }
  read.contents = std::make_unique<Content[]>(read.segments.size());
  read.loaded = dynamic.needs_files;
  read.c_library =
      dynamic.name && names_c_library(file, read.segments, dynamic.names + *dynamic.name);
  const uint64_t align = std::max<uint64_t>(variables.p_align, 1);
  if (read.c_library && read.thread_variables && (align & (align - 1)) == 0 &&
      variables.p_vaddr % align == 0) {
    read.thread_offsets = thread_offsets(
        file, read.segments, {dynamic.relocations, dynamic.relocations_size, dynamic.symbols},
        read_only_later, (variables.p_memsz + align - 1) & ~(align - 1));
  }
  read.bound =
      read.loaded ? late_words(file, read.segments, dynamic.late, dynamic.late_size) : read.data;
  if (read.loaded && dynamic.function_addresses != 0) {
    read.resolver = dynamic.function_addresses + 16;
  }
  if (executable && read.loaded) {
    read.settled.push_back(read_only_later);
    if (dynamic.function_addresses != 0) {
      read.settled.push_back({dynamic.function_addresses + 8, 16});
    }
  }
  return read;
}

const char* ReadOnlyData::bytes_of(const Range& range) {
  const File& of = *range.file;
  Content& content = of.contents[range.segment];
  std::call_once(content.asked, [&] {
    const Segment& segment = of.segments[range.segment];
    std::error_code error;
    std::ifstream file(of.name, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(segment.offset));
    std::unique_ptr<char[]> bytes(new char[segment.size]);
    if (file.read(bytes.get(), static_cast<std::streamsize>(segment.size)) &&
        std::filesystem::file_size(of.name, error) == of.size && !error &&
        std::filesystem::last_write_time(of.name, error) == of.time && !error) {
      content.bytes = std::move(bytes);
    }
  });
  return content.bytes.get();
}

ReadOnlyData::ReadOnlyData(const std::vector<CodeSection>& code) {
  // Of each process, the files with variables of threads; null: a file that tells nothing.
  std::map<int, std::set<std::pair<uint64_t, const File*>>> with_variables;
  for (const CodeSection& section : code) {
    std::unique_ptr<const File>& file = files_[section.file];
    if (!file) {
      file = std::make_unique<const File>(read_file(section.file));
    }
    const std::vector<Segment>& segments = file->segments;
    // The segment that was mapped; mappings are of whole pages.
    const auto mapped = std::find_if(segments.begin(), segments.end(), [&](const Segment& segment) {
      return segment.code && section.offset < segment.offset + segment.size &&
             segment.offset < section.offset + section.size;
    });
    if (mapped == segments.end()) {
      with_variables[section.process].insert({0, nullptr});
      continue;
    }
    const uint64_t base = section.address - section.offset + mapped->offset - mapped->address;
    const uint64_t unwind_header = file->unwind_header == 0 ? 0 : base + file->unwind_header;
    for (size_t i = 0; i < segments.size(); ++i) {
      ranges_[section.process].push_back(
          {base + segments[i].address, file.get(), i, base, unwind_header, false, file->loaded});
    }
    if (file->thread_variables) {
      with_variables[section.process].insert({base, file.get()});
    }
    add(data_[section.process], base, file->data);
    add(bound_[section.process], base, file->bound);
    if (file->resolver != 0) {
      resolvers_[section.process].insert(base + file->resolver);
    }
    std::vector<Block>& settled = settled_[section.process];
    for (const Block& block : file->settled) {
      const uint64_t address = base + block.address;
      if (std::none_of(settled.begin(), settled.end(), [&](const Block& known) {
            return known.address == address && known.size == block.size;
          })) {
        settled.push_back({address, block.size});
      }
    }
  }
  for (const auto& [process, files] : with_variables) {
    const auto& [base, file] = *files.begin();
    if (files.size() == 1 && file != nullptr) {
      for (const Offset& offset : file->thread_offsets) {
        thread_offsets_[process][base + offset.address] = offset.value;
      }
    }
  }
  for (auto& [process, ranges] : ranges_) {
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
      return std::tie(a.address, a.file, a.segment) < std::tie(b.address, b.file, b.segment);
    });
    // A file whose code was mapped in pieces.
    ranges.erase(std::unique(ranges.begin(), ranges.end()), ranges.end());
    uint64_t end = 0;
    Range* furthest = nullptr;
    for (Range& range : ranges) {
      if (furthest != nullptr && range.address < end) {
        range.doubtful = true;
        furthest->doubtful = true;
      }
      if (range.address + range.size() > end) {
        end = range.address + range.size();
        furthest = &range;
      }
    }
  }
}

ReadOnlyData::Page ReadOnlyData::page(int process, uint64_t address) const {
  const auto ranges = ranges_.find(process);
  if (ranges == ranges_.end()) {
    return {};
  }
  const uint64_t first = address / kPage * kPage;
  Page page;
  if (const auto settled = settled_.find(process); settled != settled_.end()) {
    page.settled =
        std::any_of(settled->second.begin(), settled->second.end(), [&](const Block& block) {
          return block.address < first + kPage && first < block.address + block.size;
        });
  }
  for (const Range& range : ranges->second) {
    const uint64_t size = range.size();
    if (range.address >= first + kPage || range.address + size <= first) {
      continue;
    }
    if (range.doubtful || page.state != Page::State::kNone) {
      return {Page::State::kOther, nullptr, 0, 0, page.settled};
    }
    const char* bytes = bytes_of(range);
    if (bytes == nullptr) {
      return {Page::State::kOther, nullptr, 0, 0, page.settled};
    }
    const uint64_t begin = std::max(range.address, first);
    page.state = Page::State::kSome;
    page.bytes = bytes + (begin - range.address);
    page.begin = static_cast<uint32_t>(begin - first);
    page.end = static_cast<uint32_t>(std::min(range.address + size - first, kPage));
  }
  return page;
}

const ReadOnlyData::Range* ReadOnlyData::find(int process, uint64_t address) const {
  const auto ranges = ranges_.find(process);
  if (ranges == ranges_.end()) {
    return nullptr;
  }
  auto next = std::upper_bound(ranges->second.begin(), ranges->second.end(), address,
                               [](uint64_t at, const Range& range) { return at < range.address; });
  if (next == ranges->second.begin()) {
    return nullptr;
  }
  const Range& range = *--next;
  return !range.doubtful && address - range.address < range.size() ? &range : nullptr;
}

bool ReadOnlyData::read(int process, uint64_t address, uint8_t* to, size_t size) const {
  const Range* range = find(process, address);
  const char* bytes = range == nullptr ? nullptr : bytes_of(*range);
  if (bytes == nullptr || size > range->size() - (address - range->address)) {
    return false;
  }
  std::copy_n(bytes + (address - range->address), size, to);
  return true;
}

bool ReadOnlyData::is_data(int process, uint64_t address, uint64_t size) const {
  const auto data = data_.find(process);
  if (data == data_.end() || size > ~uint64_t{0} - address) {
    return false;
  }
  const auto behind = data->second.upper_bound(address);
  return behind != data->second.begin() && address + size <= std::prev(behind)->second;
}

bool ReadOnlyData::may_be_data(int process, uint64_t address, uint64_t size) const {
  return meets(data_, process, address, size);
}

bool ReadOnlyData::may_change_by_binding(int process, uint64_t address, uint64_t size) const {
  return meets(bound_, process, address, size);
}

void ReadOnlyData::add(Blocks& blocks, uint64_t base, const std::vector<Block>& more) {
  for (const Block& block : more) {
    uint64_t begin = base + block.address;
    uint64_t end = begin + block.size;
    if (block.size == kEverywhere) {
      begin = 0;
      end = kEverywhere;
    } else if (end <= begin) {
      continue;
    }
    // Together with those that it touches.
    auto at = blocks.upper_bound(begin);
    if (at != blocks.begin() && std::prev(at)->second >= begin) {
      --at;
    }
    while (at != blocks.end() && at->first <= end) {
      begin = std::min(begin, at->first);
      end = std::max(end, at->second);
      at = blocks.erase(at);
    }
    blocks[begin] = end;
  }
}

bool ReadOnlyData::meets(const std::map<int, Blocks>& blocks, int process, uint64_t address,
                         uint64_t size) {
  const auto of_process = blocks.find(process);
  if (of_process == blocks.end() || size == 0) {
    return false;
  }
  // The last block that begins at the last byte or before.
  const auto behind = of_process->second.upper_bound(address + std::min(size - 1, ~address));
  return behind != of_process->second.begin() && std::prev(behind)->second > address;
}

bool ReadOnlyData::is_settled(int process, uint64_t address, size_t size) const {
  const auto settled = settled_.find(process);
  return settled != settled_.end() &&
         std::any_of(settled->second.begin(), settled->second.end(), [&](const Block& block) {
           return address >= block.address && size <= block.size &&
                  address - block.address <= block.size - size;
         });
}

bool ReadOnlyData::may_be_loader(int process, uint64_t address) const {
  const Range* range = find(process, address);
  return range == nullptr || !range->loaded;
}

std::optional<uint64_t> ReadOnlyData::thread_offset(int process, uint64_t address) const {
  const auto offsets = thread_offsets_.find(process);
  if (offsets == thread_offsets_.end()) {
    return std::nullopt;
  }
  const auto offset = offsets->second.find(address);
  return offset == offsets->second.end() ? std::nullopt : std::optional(offset->second);
}

bool ReadOnlyData::is_c_library(int process, uint64_t address) const {
  const Range* range = find(process, address);
  return range != nullptr && range->file->c_library;
}

std::optional<uint64_t> ReadOnlyData::loader_at(int process, uint64_t address) const {
  const Range* range = find(process, address);
  return range == nullptr || range->loaded ? std::nullopt : std::optional(range->base);
}

bool ReadOnlyData::is_resolver(int process, uint64_t address) const {
  const auto resolvers = resolvers_.find(process);
  return resolvers != resolvers_.end() && resolvers->second.count(address) != 0;
}

uint64_t ReadOnlyData::unwind_header(int process, uint64_t address) const {
  const Range* range = find(process, address);
  return range == nullptr ? 0 : range->unwind_header;
}

}  // namespace tsomon::pt
