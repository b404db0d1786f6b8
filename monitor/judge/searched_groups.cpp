#include "monitor/judge/searched_groups.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "monitor/findings/part_json.h"
#include "online/detector/detector.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

using Json = nlohmann::ordered_json;
using namespace of_parts;

constexpr size_t kKeyDigits = 16;
constexpr size_t kMostNotes = 100;
constexpr size_t kMostNoteBytes = 1000;

uint64_t key_of(const Json& object) {
  const std::string digits = text(member(object, "key"), "key");
  uint64_t key = 0;
  const char* const end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, key, 16);
  if (digits.size() != kKeyDigits || error != std::errc() || at != end) {
    throw Malformed{"16 hexadecimal digits as key"};
  }
  return key;
}

Notes notes_of(const Json& object) {
  Notes notes;
  const Json& texts = list(member(object, "notes"), "notes");
  if (texts.size() > kMostNotes) {
    throw Malformed{"fewer notes"};
  }
  for (const Json& each : texts) {
    const std::string note = text(each, "a note");
    if (note.size() > kMostNoteBytes) {
      throw Malformed{"shorter notes"};
    }
    notes.say(printable(note));
  }
  if (!flag(member(object, "complete"), "complete")) {
    // Whatever says why is among them.
    const std::string why = notes.empty() ? "not all was searched" : notes.front();
    notes.missing(why);
  }
  return notes;
}

void read_unfenced(const Json& object, Analysis* analysis) {
  for (const Json& group : list(member(object, "groups"), "groups")) {
    std::vector<UnitId>& units = analysis->unfenced_groups.emplace_back();
    for (const Json& unit : list(group, "a group")) {
      units.push_back(static_cast<UnitId>(number(unit, "a unit", UINT32_MAX)));
    }
  }
  for (const Json& unfenced : list(member(object, "unfenced"), "unfenced")) {
    if (list(unfenced, "unfenced").size() != 3) {
      throw Malformed{"three numbers of each unit as unfenced"};
    }
    const auto at = [&](size_t i) {
      return static_cast<uint32_t>(number(unfenced[i], "unfenced", UINT32_MAX));
    };
    analysis->unfenced.push_back({at(0), at(1), at(2)});
    if (at(2) >= analysis->unfenced_groups.size()) {
      throw Malformed{"a group as the third of unfenced"};
    }
  }
}

SearchedGroup read_group(const Json& object) {
  const auto count = [&](const char* name) { return number(member(object, name), name); };
  SearchedGroup group;
  group.looks = number(member(object, "looks"), "looks", Detector::kAround.size());
  group.judged = number(member(object, "judged"), "judged", group.looks - (group.looks > 0));
  group.events = count("events");
  group.work = count("work");
  Analysis& analysis = group.analysis;
  analysis.components = count("components");
  analysis.undecided_components = count("undecided");
  analysis.fenced_components = count("fenced");
  analysis.open_edges = count("open_edges");
  analysis.work = count("search");
  analysis.values_contradict = flag(member(object, "values_contradict"), "values_contradict");
  analysis.notes = notes_of(object);
  read_unfenced(object, &analysis);
  return group;
}

Json group_json(uint64_t key, const SearchedGroup& group) {
  const Analysis& analysis = group.analysis;
  Json unfenced = Json::array();
  for (const UnfencedUnit& each : analysis.unfenced) {
    unfenced.push_back({each.unit, each.after, each.group});
  }
  return {{"key", fmt::format("{:016x}", key)},
          {"looks", group.looks},
          {"judged", group.judged},
          {"events", group.events},
          {"work", group.work},
          {"components", analysis.components},
          {"undecided", analysis.undecided_components},
          {"fenced", analysis.fenced_components},
          {"open_edges", analysis.open_edges},
          {"search", analysis.work},
          {"values_contradict", analysis.values_contradict},
          {"complete", analysis.complete()},
          {"notes", std::vector<std::string>(analysis.notes.begin(), analysis.notes.end())},
          {"unfenced", std::move(unfenced)},
          {"groups", analysis.unfenced_groups}};
}

}  // namespace

Json SearchedGroups::json() const {
  std::vector<uint64_t> keys;
  for (const auto& [key, group] : groups_) {
    keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  Json all = Json::array();
  for (const uint64_t key : keys) {
    all.push_back(group_json(key, groups_.at(key)));
  }
  return all;
}

Result<void> SearchedGroups::add(const Json& list) {
  std::vector<std::pair<uint64_t, SearchedGroup>> read;
  try {
    if (!list.is_array()) {
      throw Malformed{"a list of groups"};
    }
    for (const Json& each : list) {
      SearchedGroup group = read_group(each);
      read.emplace_back(key_of(each), std::move(group));
    }
  } catch (const Malformed& wrong) {
    return fail(ErrorKind::kMalformed,
                fmt::format("expected {} of a group that was searched", wrong.expected));
  }
  for (auto& [key, group] : read) {
    add(key, std::move(group));
  }
  return {};
}

}  // namespace tsomon
