#include "monitor/findings/suppressions.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fnmatch.h>

#include "tso/support/printable.h"

namespace tsomon {
namespace {

using Kind = Suppression::Kind;

struct KindName {
  std::string_view name;
  Kind kind;
};
constexpr std::array<KindName, 5> kKinds = {{{"function", Kind::kFunction},
                                             {"file", Kind::kFile},
                                             {"unit", Kind::kUnit},
                                             {"module", Kind::kModule},
                                             {"fingerprint", Kind::kFingerprint}}};
constexpr const char* kExpected =
    "expected function:, file:, unit:, module: or fingerprint: and a "
    "pattern";

std::string_view without_blanks(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  const size_t first = line.find_first_not_of(kBlanks);
  return first == std::string_view::npos
             ? std::string_view()
             : line.substr(first, line.find_last_not_of(kBlanks) - first + 1);
}

// "a::B::f" is "f"; what is inside of brackets is no scope, and "operator<" has none.
std::string without_scope(const std::string& function) {
  size_t begin = 0;
  int depth = 0;
  for (size_t at = 0; at < function.size(); ++at) {
    const char c = function[at];
    if (depth == 0 && function.compare(at, 8, "operator") == 0) {
      break;
    }
    depth += c == '<' || c == '(' ? 1 : 0;
    depth -= c == '>' || c == ')' ? 1 : 0;
    if (depth == 0 && function.compare(at, 2, "::") == 0) {
      begin = at + 2;
    }
  }
  return function.substr(begin);
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool fits(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

template <typename Shorten>
bool any_fits(const std::string& pattern, const std::vector<std::string>& names,
              const Shorten& shorten) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return fits(pattern, name) || fits(pattern, shorten(name));
  });
}

}  // namespace

bool matches(const Suppression& suppression, const FindingPlaces& places) {
  const std::string& pattern = suppression.pattern;
  switch (suppression.kind) {
    case Kind::kFunction:
      return any_fits(pattern, places.functions, without_scope);
    case Kind::kFile:
      return any_fits(pattern, places.files, last_part);
    case Kind::kModule:
      return any_fits(pattern, places.modules, last_part);
    case Kind::kUnit:
      return std::any_of(places.units.begin(), places.units.end(),
                         [&](const std::string& label) { return fits(pattern, label); });
    case Kind::kFingerprint:
      return fits(pattern, places.fingerprint);
  }
  return false;
}

Result<std::vector<Suppression>> parse_suppressions(std::string_view text,
                                                    const std::string& file) {
  std::vector<Suppression> all;
  for (uint64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = without_blanks(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') {
      continue;
    }
    const size_t colon = std::min(line.find(':'), line.size());
    const auto kind = std::find_if(kKinds.begin(), kKinds.end(), [&](const KindName& known) {
      return known.name == line.substr(0, colon);
    });
    const std::string pattern(without_blanks(line.substr(std::min(colon + 1, line.size()))));
    // fnmatch() would see the part before a zero alone.
    if (kind == kKinds.end() || pattern.empty() || pattern.find('\0') != std::string::npos) {
      constexpr size_t kShown = 60;
      return tl::unexpected<Error>(
          Error{ErrorKind::kMalformed, file, fmt::format("line {}", number),
                fmt::format("{}, found '{}'", kExpected, printable(line.substr(0, kShown)))});
    }
    all.push_back({kind->kind, pattern, fmt::format("{}:{}", kind->name, pattern),
                   fmt::format("{}:{}", file, number), 0});
  }
  return all;
}

}  // namespace tsomon
