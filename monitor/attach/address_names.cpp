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
        images_.push_back({std::move(*image), mapping.begin - *address, module.name});
        break;
      }
    }
  }
  if (auto mappings = read_mappings(target.pid())) {
    mappings_ = std::move(*mappings);
  }
}

std::string AddressNames::data(uint64_t address) const {
  return name_or_address(name(&ElfImage::variables, address, false), address);
}

std::string AddressNames::code(uint64_t address) const {
  return name_or_address(name(&ElfImage::functions, address, true), address);
}

std::string AddressNames::name(Kind kind, uint64_t address, bool with_module) const {
  for (const Image& image : images_) {
    const uint64_t in_file = address - image.bias;
    if (const Symbol* const symbol = symbol_around((*image.elf.*kind)(), in_file)) {
      return with_offset(symbol->readable(), in_file - symbol->address) +
             (with_module ? fmt::format(" ({})", image.name) : "");
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
