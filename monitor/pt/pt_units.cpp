#include "monitor/pt/pt_units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "monitor/process/elf_image.h"
#include "monitor/process/module_files.h"
#include "monitor/process/names.h"

namespace tsomon {
namespace {

using attach::CodeName;

constexpr std::array<std::string_view, 14> kLeaving{"longjmp",
                                                    "_longjmp",
                                                    "siglongjmp",
                                                    "__libc_longjmp",
                                                    "__libc_siglongjmp",
                                                    "__longjmp_chk",
                                                    "____longjmp_chk",
                                                    "__longjmp",
                                                    "setcontext",
                                                    "swapcontext",
                                                    "_Unwind_RaiseException",
                                                    "_Unwind_Resume",
                                                    "_Unwind_Resume_or_Rethrow",
                                                    "_Unwind_ForcedUnwind"};

// ';' separates a label from its atomic sets, '|' the fields of a line.
std::string label_of(std::string name) {
  for (char& c : name) {
    if (c == ';' || c == '|' || c == '(' || c == ')' || static_cast<unsigned char>(c) < ' ') {
      c = '_';
    }
  }
  return name;
}

std::optional<uint64_t> number(std::string_view text) {
  const bool hexadecimal = text.substr(0, 2) == "0x";
  text.remove_prefix(hexadecimal ? 2 : 0);
  uint64_t value = 0;
  const auto read =
      std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
  const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

// The end of a marker's range and its label come after "ptwrite:".
std::optional<pt::WrittenMarker> written_marker(std::string_view text) {
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = text.substr(dots + 2);
  const size_t colon = std::min(rest.find(':'), rest.size());
  const auto begin = number(text.substr(0, dots));
  const auto end = number(rest.substr(0, colon));
  if (!begin || !end || colon + 1 == rest.size()) {
    return std::nullopt;
  }
  const std::string label(colon == rest.size() ? text : rest.substr(colon + 1));
  return pt::WrittenMarker{label_of(label), *begin, *end};
}

class UnitFinder {
 public:
  explicit UnitFinder(const FileSearch& search) : search_(search) {}

  Result<pt::UnitOptions> find(const std::vector<std::string>& names,
                               const std::vector<PtCode::Mapping>& code) {
    for (const std::string& name : names) {
      if (auto added = add(name); !added) {
        return tl::unexpected<Error>(added.error());
      }
    }
    if (!names.empty()) {
      for (const PtCode::Mapping& item : code) {
        take(item);
      }
    }
    for (const Name& name : names_) {
      if (!name.matched || (name.code.kind == CodeName::Kind::kMarkers && !name.ended)) {
        return fail(
            ErrorKind::kUsage,
            fmt::format("--unit {}: no such {} in the files that were found", name.text,
                        name.code.kind == CodeName::Kind::kMarkers ? "markers" : "function"));
      }
    }
    return std::move(units_);
  }

 private:
  struct Name {
    std::string text;
    CodeName code;
    bool matched = false;
    bool ended = false;  // of markers: the second one was found
  };
  // Something at a place of a file.
  struct Item {
    enum class Kind : uint8_t { kFunction, kBegin, kEnd, kLeaving };
    Kind kind = Kind::kFunction;
    std::string label;
    uint64_t offset = 0;
  };

  Result<void> add(const std::string& text) {
    constexpr std::string_view kWritten = "ptwrite:";
    if (text.rfind(kWritten, 0) == 0) {
      auto marker = written_marker(std::string_view(text).substr(kWritten.size()));
      if (!marker) {
        return fail(ErrorKind::kUsage,
                    fmt::format("'{}': expected ptwrite:BEGIN..END[:LABEL], the values that a unit "
                                "begins and ends with",
                                text));
      }
      units_.written.push_back(std::move(*marker));
      return {};
    }
    Name name;
    name.text = text;
    name.code.first = text;
    if (text.rfind("usdt:", 0) == 0) {
      auto code = attach::parse_code_name(text);
      if (!code) {
        return tl::unexpected<Error>(code.error());
      }
      name.code = std::move(*code);
    }
    names_.push_back(std::move(name));
    return {};
  }

  void take(const PtCode::Mapping& code) {
    for (const Item& item : items_of(code)) {
      const uint64_t place = item.offset - code.mapping.file_offset;
      if (item.offset < code.mapping.file_offset || place >= code.mapping.size) {
        continue;
      }
      const uint64_t address = code.mapping.begin + place;
      switch (item.kind) {
        case Item::Kind::kFunction:
          if (known_.emplace(code.process, address).second) {  // aliases are one function
            units_.functions.push_back({item.label, address, code.process});
          }
          break;
        case Item::Kind::kLeaving:
          units_.leaving.push_back({address, code.process});
          break;
        default:
          units_.markers.push_back(
              {item.label, address, code.process, item.kind == Item::Kind::kBegin});
      }
    }
  }

  const std::vector<Item>& items_of(const PtCode::Mapping& code) {
    const auto [entry, is_new] = files_.try_emplace(code.file);
    if (!is_new || code.file.empty()) {
      return entry->second;
    }
    capture::Module module;
    module.path = code.mapping.path;
    module.build_id = code.mapping.build_id;
    module.file = code.file;
    const auto image =
        attach::ElfImage::open(code.file, code.file, find_module_files(module, search_).debug);
    if (!image) {
      return entry->second;
    }
    std::vector<Item>& items = entry->second;
    for (const attach::Symbol& symbol : (*image)->functions()) {
      const auto offset = (*image)->offset_of(symbol.address);
      if (!offset) {
        continue;
      }
      if (std::find(kLeaving.begin(), kLeaving.end(), symbol.text()) != kLeaving.end()) {
        items.push_back({Item::Kind::kLeaving, {}, *offset});
      }
      if (symbol.text().find(".cold") == std::string_view::npos && matches(symbol)) {
        items.push_back({Item::Kind::kFunction, label_of(symbol.readable()), *offset});
      }
    }
    add_markers(**image, items);
    return items;
  }

  bool matches(const attach::Symbol& symbol) {
    bool any = false;
    for (Name& name : names_) {
      if (name.code.kind == CodeName::Kind::kPattern && symbol.matches(name.code.first)) {
        any = name.matched = true;
      }
    }
    return any;
  }

  void add_markers(const attach::ElfImage& image, std::vector<Item>& items) {
    for (Name& name : names_) {
      if (name.code.kind != CodeName::Kind::kMarkers) {
        continue;
      }
      const std::string label = label_of(name.text.substr(std::string_view("usdt:").size()));
      for (const attach::Marker& marker : image.markers()) {
        const auto offset = image.offset_of(marker.address);
        if (marker.provider != name.code.provider || !offset) {
          continue;
        }
        if (marker.name == name.code.first) {
          name.matched = true;
          items.push_back({Item::Kind::kBegin, label, *offset});
        }
        if (marker.name == name.code.last) {
          name.ended = true;
          items.push_back({Item::Kind::kEnd, label, *offset});
        }
      }
    }
  }

  std::vector<Name> names_;
  pt::UnitOptions units_;
  std::set<std::pair<int, uint64_t>> known_;
  const FileSearch& search_;
  std::map<std::string, std::vector<Item>> files_;
};

}  // namespace

Result<pt::UnitOptions> find_pt_units(const std::vector<std::string>& names,
                                      const std::vector<PtCode::Mapping>& code,
                                      const FileSearch& search) {
  return UnitFinder(search).find(names, code);
}

}  // namespace tsomon
