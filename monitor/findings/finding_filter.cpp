#include "monitor/findings/finding_filter.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "tso/support/printable.h"

namespace tsomon {
namespace {

using Json = nlohmann::ordered_json;

Result<std::string> whole_file(const std::string& file) {
  const auto unreadable = [&] {
    return tl::unexpected<Error>(Error{
        ErrorKind::kUnreadable, file, {}, fmt::format("cannot be read: {}", std::strerror(errno))});
  };
  const std::unique_ptr<FILE, int (*)(FILE*)> opened(std::fopen(file.c_str(), "rbe"), std::fclose);
  if (opened == nullptr) {
    return unreadable();
  }
  constexpr size_t kPart = 65536;
  std::string text;
  for (size_t got = 1; got != 0;) {
    const size_t before = text.size();
    text.resize(before + kPart);
    got = std::fread(&text[before], 1, kPart, opened.get());
    text.resize(before + got);
  }
  if (std::ferror(opened.get()) != 0) {
    return unreadable();
  }
  return text;
}

// Findings are at several places of results, none of them deep.
void add_fingerprints(const Json& value, const std::string& file,
                      std::unordered_map<std::string, std::string>* known, int depth = 0) {
  constexpr int kDeepest = 6;
  for (auto part = value.begin(); part != value.end(); ++part) {
    if (part->is_structured()) {
      if (depth < kDeepest) {
        add_fingerprints(*part, file, known, depth + 1);
      }
    } else if (value.is_object() && part.key() == "fingerprint" && part->is_string()) {
      known->emplace(part->get<std::string>(), file);
    }
  }
}

// "tsomon run", as json_line() writes it; empty: it is no result.
std::string tool_of(const Json& object) {
  const auto tool = object.is_object() ? object.find("tool") : object.end();
  const std::string name =
      tool != object.end() && tool->is_string() ? tool->get<std::string>() : "";
  return name.rfind("tsomon ", 0) == 0 ? name : std::string();
}

Error no_result(const std::string& file, uint64_t line, std::string_view found) {
  constexpr size_t kShown = 60;
  return {ErrorKind::kMalformed, file, fmt::format("line {}", line),
          fmt::format("expected an object that a command wrote with --output json, found '{}'",
                      printable(found.substr(0, kShown)))};
}

}  // namespace

Result<FindingFilter> FindingFilter::read(const std::vector<std::string>& suppressions,
                                          const std::vector<std::string>& baselines) {
  FindingFilter filter;
  const auto add = [&](const std::string& file, const auto& function) -> Result<void> {
    const auto text = whole_file(file);
    return text ? (filter.*function)(*text, file) : tl::unexpected<Error>(text.error());
  };
  for (const std::string& file : suppressions) {
    if (auto added = add(file, &FindingFilter::add_suppressions); !added) {
      return tl::unexpected<Error>(std::move(added.error()));
    }
  }
  for (const std::string& file : baselines) {
    if (auto added = add(file, &FindingFilter::add_baseline); !added) {
      return tl::unexpected<Error>(std::move(added.error()));
    }
  }
  return filter;
}

Result<void> FindingFilter::add_suppressions(std::string_view text, const std::string& file) {
  auto parsed = parse_suppressions(text, file);
  if (!parsed) {
    return tl::unexpected<Error>(std::move(parsed.error()));
  }
  any_ = true;
  suppressions_.insert(suppressions_.end(), parsed->begin(), parsed->end());
  return {};
}

Result<void> FindingFilter::add_baseline(std::string_view text, const std::string& file) {
  any_ = true;
  bool has_program = false;
  std::pair<uint64_t, std::string_view> foreign;  // the first line that is no object
  for (uint64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) {
      continue;
    }
    if (line[first] != '{') {
      foreign = foreign.first == 0 ? std::pair(number, line) : foreign;
      continue;
    }
    const Json object = Json::parse(line.begin(), line.end(), nullptr, false);
    const std::string tool = tool_of(object);
    if (tool.empty()) {
      return tl::unexpected<Error>(no_result(file, number, line));
    }
    has_program = has_program || tool == "tsomon run";
    add_fingerprints(object, file, &known_);
  }
  if (foreign.first != 0 && !has_program) {
    return tl::unexpected<Error>(no_result(file, foreign.first, foreign.second));
  }
  return {};
}

std::string FindingFilter::hides(const FindingPlaces& places) {
  std::string by;
  // Others that match are used, too.
  for (Suppression& suppression : suppressions_) {
    if (matches(suppression, places)) {
      ++suppression.uses;
      by = by.empty() ? fmt::format("{} {}", suppression.line_text, suppression.place) : by;
    }
  }
  const auto known = known_.find(places.fingerprint);
  return by.empty() && known != known_.end() && !places.fingerprint.empty()
             ? "baseline " + known->second
             : by;
}

std::vector<std::string> FindingFilter::unused() const {
  std::vector<std::string> lines;
  for (const Suppression& suppression : suppressions_) {
    if (suppression.uses == 0) {
      lines.push_back(
          fmt::format("{}: {} suppressed nothing", suppression.place, suppression.line_text));
    }
  }
  return lines;
}

bool HiddenFindings::hide(const FindingPlaces& places, uint64_t times) {
  return mark(places, nullptr, times);
}

bool HiddenFindings::mark(const FindingPlaces& places, Json* finding, uint64_t times) {
  if (filter_ == nullptr) {
    shown_ += times;
    return false;
  }
  const std::string by = filter_->hides(places);
  (by.empty() ? shown_ : hidden_) += times;
  if (finding != nullptr) {
    (*finding)["suppressed"] = by.empty() ? 0 : times;
    if (!by.empty()) {
      (*finding)["suppressed_by"] = by;
    }
  }
  if (!by.empty()) {
    by_.insert(by);
  }
  return !by.empty();
}

void HiddenFindings::add(const HiddenFindings& more) {
  hidden_ += more.hidden_;
  shown_ += more.shown_;
  by_.insert(more.by_.begin(), more.by_.end());
}

std::string HiddenFindings::text() const {
  if (hidden_ == 0) {
    return {};
  }
  std::string list;
  for (const std::string& by : by_) {
    list += (list.empty() ? "" : ", ") + printable(by);
  }
  return fmt::format("{} suppressed ({})", hidden_, list);
}

void HiddenFindings::add_to(Json* result) const {
  if (filter_ != nullptr) {
    (*result)["suppressed"] = hidden_;
  }
}

}  // namespace tsomon
