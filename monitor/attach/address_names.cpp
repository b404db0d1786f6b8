#include "monitor/attach/address_names.h"

#include <utility>

#include <fmt/format.h>

namespace tsomon::attach {
namespace {

std::string with_offset(const std::string& name, uint64_t offset) {
  return offset == 0 ? name : fmt::format("{}+0x{:x}", name, offset);
}

std::string name_or_address(std::string name, uint64_t address) {
  return name.empty() ? fmt::format("0x{:x}", address) : name;
}

}  // namespace

AddressNames::AddressNames(const Target& target) {
  for (const Module& module : target.modules()) {
    auto image = ElfImage::open(module.file, module.shown);
    if (!image) {
      continue;
    }
    for (const Mapping& mapping : module.code) {
      if (const auto address = (*image)->address_of(mapping.offset)) {
        add(module, **image, mapping.begin - *address);
        break;
      }
    }
  }
  if (auto mappings = read_mappings(target.pid())) {
    mappings_ = std::move(*mappings);
  }
}

std::string AddressNames::data(uint64_t address) const {
  return name_or_address(name(variables_, address, false), address);
}

std::string AddressNames::code(uint64_t address) const {
  return name_or_address(name(functions_, address, true), address);
}

void AddressNames::add(const Module& module, const ElfImage& image, uint64_t bias) {
  for (const Symbol& symbol : image.symbols()) {
    if (symbol.size != 0) {
      const uint64_t begin = symbol.address + bias;
      (symbol.function ? functions_ : variables_)
          .emplace(begin, Named{begin + symbol.size, symbol.readable, module.name});
    }
  }
}

std::string AddressNames::name(const Table& table, uint64_t address, bool with_module) const {
  auto next = table.upper_bound(address);
  if (next != table.begin()) {
    const auto& [begin, named] = *--next;
    if (address < named.end) {
      return with_offset(named.name, address - begin) +
             (with_module ? fmt::format(" ({})", named.module) : "");
    }
  }
  for (const Mapping& mapping : mappings_) {
    if (address >= mapping.begin && address < mapping.end && !mapping.path.empty()) {
      // Of a file the place in the file, of anything else the place in the mapping.
      const std::string last = mapping.path.substr(mapping.path.rfind('/') + 1);
      return with_offset(last, address - mapping.begin + (mapping.inode != 0 ? mapping.offset : 0));
    }
  }
  return {};
}

}  // namespace tsomon::attach
