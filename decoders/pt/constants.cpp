#include "decoders/pt/constants.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

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
    }
  }
  return found;
}

}  // namespace

Constants::File Constants::read_file(const std::string& name) {
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
  Dynamic dynamic;
  bool executable = false;
  Block read_only_later;
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
    if (program.p_type == PT_GNU_EH_FRAME) {
      read.unwind_header = program.p_vaddr;
    }
    if (program.p_type != PT_LOAD || (program.p_flags & PF_W) != 0 || program.p_offset > size ||
        program.p_filesz > size - program.p_offset || program.p_filesz > kMostBytes) {
      continue;
    }
    Segment segment;
    segment.offset = program.p_offset;
    segment.address = program.p_vaddr;
    segment.code = (program.p_flags & PF_X) != 0;
    segment.bytes.resize(program.p_filesz);
    file.seekg(static_cast<std::streamoff>(program.p_offset));
    if (!file.read(segment.bytes.data(), static_cast<std::streamsize>(program.p_filesz))) {
      return {};
    }
    read.segments.push_back(std::move(segment));
  }
  if (dynamic.text_relocations) {
    return {};
  }
  read.loaded = dynamic.needs_files;
  if (executable && read.loaded) {
    read.settled.push_back(read_only_later);
    if (dynamic.function_addresses != 0) {
      read.settled.push_back({dynamic.function_addresses + 8, 16});
    }
  }
  return read;
}

Constants::Constants(const std::vector<CodeSection>& code) {
  for (const CodeSection& section : code) {
    std::unique_ptr<const File>& file = files_[section.file];
    if (!file) {
      file = std::make_unique<const File>(read_file(section.file));
    }
    const std::vector<Segment>& segments = file->segments;
    // The segment that was mapped; mappings are of whole pages.
    const auto mapped = std::find_if(segments.begin(), segments.end(), [&](const Segment& segment) {
      return segment.code && section.offset < segment.offset + segment.bytes.size() &&
             segment.offset < section.offset + section.size;
    });
    if (mapped == segments.end()) {
      continue;
    }
    const uint64_t base = section.address - section.offset + mapped->offset - mapped->address;
    const uint64_t unwind_header = file->unwind_header == 0 ? 0 : base + file->unwind_header;
    for (const Segment& segment : segments) {
      ranges_[section.process].push_back(
          {base + segment.address, &segment.bytes, unwind_header, false, file->loaded});
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
  for (auto& [process, ranges] : ranges_) {
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
      return a.address != b.address ? a.address < b.address : a.bytes < b.bytes;
    });
    // A file whose code was mapped in pieces.
    ranges.erase(std::unique(ranges.begin(), ranges.end(),
                             [](const Range& a, const Range& b) {
                               return a.address == b.address && a.bytes == b.bytes;
                             }),
                 ranges.end());
    uint64_t end = 0;
    Range* furthest = nullptr;
    for (Range& range : ranges) {
      if (furthest != nullptr && range.address < end) {
        range.doubtful = true;
        furthest->doubtful = true;
      }
      if (range.address + range.bytes->size() > end) {
        end = range.address + range.bytes->size();
        furthest = &range;
      }
    }
  }
}

Constants::Page Constants::page(int process, uint64_t address) const {
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
    const uint64_t size = range.bytes->size();
    if (range.address >= first + kPage || range.address + size <= first) {
      continue;
    }
    if (range.doubtful || page.state != Page::State::kNone) {
      return {Page::State::kOther, nullptr, 0, 0, page.settled};
    }
    const uint64_t begin = std::max(range.address, first);
    page.state = Page::State::kSome;
    page.bytes = range.bytes->data() + (begin - range.address);
    page.begin = static_cast<uint32_t>(begin - first);
    page.end = static_cast<uint32_t>(std::min(range.address + size - first, kPage));
  }
  return page;
}

const Constants::Range* Constants::find(int process, uint64_t address) const {
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
  return !range.doubtful && address - range.address < range.bytes->size() ? &range : nullptr;
}

bool Constants::read(int process, uint64_t address, uint8_t* to, size_t size) const {
  const Range* range = find(process, address);
  if (range == nullptr || size > range->bytes->size() - (address - range->address)) {
    return false;
  }
  std::copy_n(range->bytes->data() + (address - range->address), size, to);
  return true;
}

bool Constants::is_settled(int process, uint64_t address, size_t size) const {
  const auto settled = settled_.find(process);
  return settled != settled_.end() &&
         std::any_of(settled->second.begin(), settled->second.end(), [&](const Block& block) {
           return address >= block.address && size <= block.size &&
                  address - block.address <= block.size - size;
         });
}

bool Constants::may_be_loader(int process, uint64_t address) const {
  const Range* range = find(process, address);
  return range == nullptr || !range->loaded;
}

uint64_t Constants::unwind_header(int process, uint64_t address) const {
  const Range* range = find(process, address);
  return range == nullptr ? 0 : range->unwind_header;
}

}  // namespace tsomon::pt
