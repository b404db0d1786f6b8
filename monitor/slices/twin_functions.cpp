#include "monitor/slices/twin_functions.h"

#include <algorithm>
#include <unordered_map>

#include <fnmatch.h>

#include "monitor/process/elf_image.h"
#include "monitor/process/twins_in_file.h"

namespace tsomon {
namespace {

constexpr std::string_view kTwin = ".tsomon";
constexpr std::string_view kCold = ".cold";

}  // namespace

TwinFunctions::TwinFunctions(const attach::Target& target) {
  for (const attach::Module& module : target.modules()) {
    if (!module.code.empty()) {
      add(module.file, module.shown, module.code.front().offset, module.code.front().begin);
    }
  }
}

void TwinFunctions::add(const std::string& file, const std::string& shown, uint64_t offset,
                        uint64_t begin) {
  const auto twins = twins_in_file(file);
  if (!twins || twins->functions.empty()) {
    return;
  }
  const auto image = attach::ElfImage::open(file, shown);
  const auto address = image ? (*image)->address_of(offset) : std::nullopt;
  if (!address) {
    return;
  }
  const uint64_t bias = begin - *address;
  std::unordered_map<uint64_t, uint64_t> by_twin;  // as the file counts
  for (const TwinFunction& function : twins->functions) {
    twins_.emplace(function.twin + bias, function.entry + bias);
    entries_.emplace(function.entry + bias, std::string());
    by_twin.emplace(function.twin, function.entry);
  }
  std::unordered_map<std::string_view, uint64_t> by_name;  // "f.tsomon": its entry
  for (const attach::Symbol& symbol : (*image)->functions()) {
    if (const auto twin = by_twin.find(symbol.address); twin != by_twin.end()) {
      by_name.emplace(symbol.name, twin->second + bias);
    }
    // The entry may stand behind an endbr64.
    constexpr uint64_t kEndbr = 4;
    for (const uint64_t entry : {symbol.address + bias, symbol.address + bias + kEndbr}) {
      if (const auto named = entries_.find(entry);
          named != entries_.end() && named->second.empty()) {
        named->second = symbol.readable();
      }
    }
  }
  for (const attach::Symbol& symbol : (*image)->functions()) {
    std::string_view name = symbol.name;
    if (name.find(kTwin) == std::string_view::npos || symbol.size == 0) {
      continue;
    }
    if (name.ends_with(kCold)) {
      name.remove_suffix(kCold.size());
    }
    const auto found = by_name.find(name);
    const uint64_t from = symbol.address + bias;
    code_.emplace(from, Code{from + symbol.size, found == by_name.end() ? 0 : found->second});
  }
}

std::vector<uint64_t> TwinFunctions::entries_of(const std::vector<uint64_t>& addresses,
                                                size_t* without) const {
  std::vector<uint64_t> entries;
  *without = 0;
  for (const uint64_t address : addresses) {
    const uint64_t within = address - 1;  // of the call
    uint64_t entry = 0;
    if (auto next = code_.upper_bound(within);
        next != code_.begin() && within < std::prev(next)->second.end) {
      entry = std::prev(next)->second.entry;
    } else if (auto twin = twins_.upper_bound(within); twin != twins_.begin()) {
      entry = std::prev(twin)->second;
    }
    if (entry == 0) {
      ++*without;
    } else {
      entries.push_back(entry);
    }
  }
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  return entries;
}

std::vector<uint64_t> TwinFunctions::named(const std::string& pattern) const {
  std::vector<uint64_t> entries;
  for (const auto& [entry, name] : entries_) {
    if (!name.empty() && ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0) {
      entries.push_back(entry);
    }
  }
  return entries;
}

}  // namespace tsomon
