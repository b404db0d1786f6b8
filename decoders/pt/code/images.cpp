#include "decoders/pt/code/images.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "tso/support/open_file.h"

namespace tsomon::pt {
namespace {

// Without the part of the section that the file does not have.
uint64_t end_of(const CodeSection& section) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(section.file, error);
  if (error || size <= section.offset) {
    return section.address;
  }
  return section.address + std::min(section.size, size - section.offset);
}

}  // namespace

Images::Images(const Input& input, uint64_t cache_bytes) : sections_(pt_iscache_alloc(nullptr)) {
  pt_iscache_set_limit(sections_.get(), cache_bytes);
  for (const CodeSection& section : input.code) {
    processes_[section.process].code.push_back(&section);
  }
  for (auto& [id, process] : processes_) {
    std::stable_sort(process.code.begin(), process.code.end(),
                     [](const CodeSection* a, const CodeSection* b) { return a->from < b->from; });
  }
}

pt_image* Images::at(int id, int64_t time) {
  Process& process = processes_[id];
  if (!process.image) {
    process.image.reset(pt_image_alloc(nullptr));
  }
  for (; process.mapped < process.code.size() &&
         (process.mapped < process.least || process.code[process.mapped]->from <= time);
       ++process.mapped) {
    add(*process.code[process.mapped], process);
  }
  return process.image.get();
}

Images::Mapped Images::find(int id, uint64_t ip) const {
  const auto process = processes_.find(id);
  if (process == processes_.end()) {
    return {};
  }
  const auto range = process->second.ranges.upper_bound(ip);
  return range != process->second.ranges.end() && range->second.begin <= ip ? range->second
                                                                            : Mapped{};
}

uint64_t Images::version(int id) const {
  const auto process = processes_.find(id);
  return process == processes_.end() ? 0 : process->second.version;
}

bool Images::has_code(int id, uint64_t ip) {
  Process& process = processes_[id];
  if (process.covered.empty()) {
    for (const CodeSection* section : process.code) {
      process.covered.emplace_back(section->address, section->address + section->size);
    }
    std::sort(process.covered.begin(), process.covered.end());
    uint64_t end = 0;
    for (auto& range : process.covered) {  // of all up to it
      end = range.second = std::max(range.second, end);
    }
  }
  const auto next =
      std::upper_bound(process.covered.begin(), process.covered.end(), ip,
                       [](uint64_t at, const auto& range) { return at < range.first; });
  return next != process.covered.begin() && ip < (next - 1)->second;
}

size_t Images::read(int isid, uint64_t address, uint8_t* to, size_t size) const {
  const int got = pt_iscache_read(sections_.get(), to, size, isid, address);
  return got < 0 ? 0 : static_cast<size_t>(got);
}

Images::Mark Images::mark() const {
  Mark mark;
  for (const auto& [id, process] : processes_) {
    mark[id] = process.mapped;
  }
  return mark;
}

void Images::rewind(const Mark& mark) {
  for (auto& [id, process] : processes_) {
    const auto kept = mark.find(id);
    const size_t mapped = kept == mark.end() ? 0 : kept->second;
    if (process.mapped != mapped) {
      process.image.reset();
      process.ranges.clear();
      process.mapped = 0;
      process.least = mapped;
      ++process.version;
    }
  }
}

void Images::add(const CodeSection& section, Process& process) {
  const int isid = is_regular_file(section.file)
                       ? pt_iscache_add_file(sections_.get(), section.file.c_str(), section.offset,
                                             section.size, section.address)
                       : -pte_bad_file;
  const int status =
      isid < 0 ? isid : pt_image_add_cached(process.image.get(), sections_.get(), isid, nullptr);
  if (status < 0) {
    if (missing_.insert(&section).second) {
      ++problems_[fmt::format("code of {} is missing: {}", section.file,
                              pt_errstr(pt_errcode(status)))];
    }
    return;
  }
  const uint64_t begin = section.address;
  const uint64_t end = end_of(section);
  if (end <= begin) {
    return;
  }
  // In place of what was mapped there.
  for (auto at = process.ranges.upper_bound(begin);
       at != process.ranges.end() && at->second.begin < end;) {
    const Mapped old = at->second;
    at = process.ranges.erase(at);
    if (old.begin < begin) {
      process.ranges[begin] = {old.begin, begin, old.isid};
    }
    if (old.end > end) {
      process.ranges[old.end] = {end, old.end, old.isid};
      break;
    }
  }
  process.ranges[end] = {begin, end, isid};
  ++process.version;
}

}  // namespace tsomon::pt
