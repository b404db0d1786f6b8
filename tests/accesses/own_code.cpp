#include "tests/accesses/own_code.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tsomon::testing {
namespace {

// Objects that nobody instruments.
bool is_own(const std::string& object) {
  return object.find(".a(") == std::string::npos && object.rfind("/usr/lib", 0) != 0 &&
         object.rfind("/lib", 0) != 0;
}

}  // namespace

OwnCode::OwnCode(const std::string& program, const std::string& map) {
  auto image = attach::ElfImage::open(program, program);
  if (!image) {
    throw std::runtime_error(image.error().to_string());
  }
  image_ = std::move(*image);
  std::ifstream lines(map);
  std::string section;
  bool memory = false;
  for (std::string line; std::getline(lines, line);) {
    memory = memory || line.rfind("Linker script and memory map", 0) == 0;
    if (!memory || line.empty() || line[0] != ' ') {
      continue;
    }
    // " .text.name  0xADDRESS 0xSIZE object", or the name alone and the rest on the next line.
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word[0] == '.' && line[1] == '.') {
      section = word;
      if (!(words >> word)) {
        continue;
      }
    }
    std::string size;
    std::string object;
    words >> size >> std::ws;
    std::getline(words, object);
    if (word.rfind("0x", 0) != 0 || size.rfind("0x", 0) != 0 || section.rfind(".text", 0) != 0 ||
        object.empty() || !is_own(object)) {
      continue;
    }
    const uint64_t begin = std::stoull(word, nullptr, 16);
    const uint64_t bytes = std::stoull(size, nullptr, 16);
    if (begin != 0 && bytes != 0) {
      ranges_[begin] = begin + bytes;
    }
  }
  if (ranges_.empty()) {
    throw std::runtime_error(map + ": no code of the program's own");
  }
  for (const attach::Symbol& symbol : image_->functions()) {
    if (contains(symbol.address) && (functions_.empty() || functions_.back() != symbol.address)) {
      functions_.push_back(symbol.address);
    }
  }
}

bool OwnCode::contains(uint64_t address) const {
  const auto after = ranges_.upper_bound(address);
  return after != ranges_.begin() && address < std::prev(after)->second;
}

std::string OwnCode::function(uint64_t address) const {
  const attach::Symbol* const symbol = attach::symbol_around(image_->functions(), address);
  return symbol == nullptr ? "?" : std::string(symbol->text().substr(0, symbol->text().find('.')));
}

uint64_t OwnCode::address_of(const std::string& function) const {
  for (const attach::Symbol& symbol : image_->functions()) {
    if (symbol.text() == function) {
      return symbol.address;
    }
  }
  return 0;
}

}  // namespace tsomon::testing
