#include "monitor/process/names.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tsomon::attach {
namespace {

// The whole text as a number: hexadecimal after 0x, else decimal.
std::optional<uint64_t> number(std::string_view text) {
  int base = 10;
  if (text.substr(0, 2) == "0x") {
    text.remove_prefix(2);
    base = 16;
  }
  uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

// "0xA" or "0xA..0xB"
bool parse_range(std::string_view text, CodeName& name) {
  const size_t dots = text.find("..");
  const auto begin = number(text.substr(0, dots));
  if (!begin) {
    return false;
  }
  name.begin = *begin;
  if (dots == std::string_view::npos) {
    return true;
  }
  const auto end = number(text.substr(dots + 2));
  if (!end || *end <= *begin) {
    return false;
  }
  name.end = *end;
  return true;
}

std::string in_small_letters(std::string text) {
  for (char& letter : text) {
    letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  return text;
}

// Letters to be inserted, removed or replaced.
size_t edits_between(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) {
    row[j] = j;
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row.back();
}

// The last ':' that is not part of a "::".
size_t single_colon(std::string_view text) {
  for (size_t at = text.size(); at-- > 0;) {
    if (text[at] != ':') {
      continue;
    }
    if (at > 0 && text[at - 1] == ':') {
      --at;
      continue;
    }
    return at;
  }
  return std::string_view::npos;
}

}  // namespace

Result<CodeName> parse_code_name(const std::string& text) {
  CodeName name;
  const auto wrong = [&](const char* expected) {
    return fail(ErrorKind::kUsage, fmt::format("'{}': expected {}", text, expected));
  };
  constexpr std::string_view kMarkers = "usdt:";
  if (text.rfind(kMarkers, 0) == 0) {
    const std::string rest = text.substr(kMarkers.size());
    const size_t colon = rest.find(':');
    const size_t dots = rest.find("..");
    if (colon == std::string::npos || dots == std::string::npos || dots < colon + 2 ||
        dots + 2 == rest.size()) {
      return wrong("usdt:PROVIDER:BEGIN..END, the markers that a unit begins and ends at");
    }
    name.kind = CodeName::Kind::kMarkers;
    name.provider = rest.substr(0, colon);
    name.first = rest.substr(colon + 1, dots - colon - 1);
    name.last = rest.substr(dots + 2);
    return name;
  }
  if (text.rfind("0x", 0) == 0) {
    name.kind = CodeName::Kind::kMemory;
    if (!parse_range(text, name)) {
      return wrong("0xADDRESS or 0xBEGIN..0xEND");
    }
    return name;
  }
  if (const size_t plus = text.rfind("+0x"); plus != std::string::npos && plus != 0) {
    name.kind = CodeName::Kind::kFile;
    name.module = text.substr(0, plus);
    if (!parse_range(std::string_view(text).substr(plus + 1), name)) {
      return wrong("MODULE+0xADDRESS or MODULE+0xBEGIN..0xEND");
    }
    return name;
  }
  const size_t colon = single_colon(text);
  name.first = colon == std::string::npos ? text : text.substr(colon + 1);
  name.module = colon == std::string::npos ? std::string() : text.substr(0, colon);
  if (name.first.empty()) {
    return wrong("a function, [MODULE:]PATTERN");
  }
  return name;
}

Result<DataName> parse_watch_name(const std::string& text) {
  DataName name;
  std::string what = text;
  if (const size_t colon = single_colon(text); colon != std::string::npos) {
    const auto size = number(std::string_view(text).substr(colon + 1));
    if (!size || *size == 0) {
      return fail(ErrorKind::kUsage,
                  fmt::format("'{}': expected SYMBOL or ADDRESS, and after ':' its length", text));
    }
    name.size = *size;
    what = text.substr(0, colon);
  }
  if (what.rfind("0x", 0) == 0) {
    const auto address = number(what);
    if (!address) {
      return fail(ErrorKind::kUsage, fmt::format("'{}': expected 0xADDRESS[:LENGTH]", text));
    }
    name.address = *address;
  } else if (what.empty()) {
    return fail(ErrorKind::kUsage, "expected SYMBOL or ADDRESS");
  } else {
    name.symbol = what;
  }
  return name;
}

std::vector<std::string> similar_to(const std::string& name, std::vector<std::string> names) {
  constexpr size_t kMost = 3;
  constexpr size_t kLongest = 64;  // of names whose letters are compared
  std::string meant = in_small_letters(name);
  meant.erase(std::remove_if(meant.begin(), meant.end(),
                             [](char letter) { return letter == '*' || letter == '?'; }),
              meant.end());
  if (meant.empty()) {
    return {};
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<std::pair<size_t, std::string>> found;  // with the edits
  for (std::string& other : names) {
    const std::string small = in_small_letters(other);
    const size_t lengths =
        meant.size() < small.size() ? small.size() - meant.size() : meant.size() - small.size();
    const size_t shorter = std::min(meant.size(), small.size());
    const bool part = shorter > 3 && (small.find(meant) != std::string::npos ||
                                      meant.find(small) != std::string::npos);
    size_t edits = lengths;
    if (!part) {
      const size_t allowed = std::max<size_t>(1, shorter / 4);
      if (shorter + lengths > kLongest || lengths > allowed) {
        continue;
      }
      edits = edits_between(meant, small);
      if (edits > allowed) {
        continue;
      }
    }
    found.emplace_back(edits, std::move(other));
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> best;
  for (size_t i = 0; i < std::min(kMost, found.size()); ++i) {
    best.push_back(std::move(found[i].second));
  }
  return best;
}

}  // namespace tsomon::attach
