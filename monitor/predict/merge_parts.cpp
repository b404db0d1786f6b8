#include "monitor/predict/merge_parts.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "monitor/findings/part_json.h"
#include "monitor/predict/prediction_part.h"

namespace tsomon {
namespace {

using Json = nlohmann::ordered_json;
using predict::AskedPlaces;
using namespace of_parts;

struct List {
  const char* name;
  AskedKind kind;
};
constexpr std::array<List, 5> kLists = {{{"races", AskedKind::kRaces},
                                         {"deadlocks", AskedKind::kDeadlocks},
                                         {"atomicity_violations", AskedKind::kAtomicity},
                                         {"uses_after_free", AskedKind::kLifetimes},
                                         {"uses_after_destroy", AskedKind::kLifetimes}}};
constexpr size_t kMostNotes = 100;  // of a part: each is looked for among all
// What the parts of one prediction have in common.
constexpr std::array<const char*, 7> kSame = {"file",     "events",  "kinds",        "model",
                                              "branches", "windows", "window_events"};

std::vector<uint64_t> numbers(const Json& value, const char* name) {
  std::vector<uint64_t> all;
  for (const Json& each : list(value, name)) {
    all.push_back(number(each, name));
  }
  return all;
}

predict::FoundPlaces places_of(const Json& in) {
  predict::FoundPlaces places;
  places.window = number(member(in, "window"), "window");
  places.places = numbers(member(in, "places"), "places");
  if (in.contains("mirror")) {
    places.mirror = numbers(in["mirror"], "mirror");
  }
  return places;
}

struct Part {
  Json object;
  uint64_t number = 0;
  uint64_t of = 0;
};

Part part_of(const std::string& content) {
  Part part;
  part.object = Json::parse(content, nullptr, false);
  const Json& about = member(part.object, "part");
  part.number = number(member(about, "number"), "number");
  part.of = number(member(about, "of"), "of");
  if (part.of == 0 || part.number == 0 || part.number > part.of) {
    throw Malformed{"the number of a part"};
  }
  return part;
}

void read_asked(const Json& part, AskedOfKinds* asked) {
  const Json& all = member(part, "asked");
  for (const AskedKind kind : kAskedKinds) {
    for (const Json& entry : list(member(all, name_of(kind)), name_of(kind))) {
      if (list(entry, "places").empty()) {
        throw Malformed{"a window"};
      }
      AskedPlaces::Places places;
      for (size_t i = 1; i < entry.size(); ++i) {
        places.push_back(number(entry[i], "a place"));
      }
      asked->of(kind).add(std::move(places),
                          entry[0].is_null() ? AskedPlaces::kNever : number(entry[0], "a window"));
    }
  }
}

struct Entry {
  std::vector<uint64_t> order;
  Json json;
};

class Merge {
 public:
  explicit Merge(std::vector<Part> parts) : parts_(std::move(parts)) {}

  MergedPrediction whole() {
    Json& object = merged_.object = parts_.front().object;
    const bool windows = object.contains("windows");
    if (windows) {
      for (const Part& part : parts_) {
        read_asked(member(part.object, "part"), &asked_);
      }
      for (const AskedKind kind : kAskedKinds) {
        candidates_ += asked_.of(kind).size();
        refused_ += asked_.of(kind).refused();
      }
      for (const Part& part : parts_) {
        read_dropped(member(part.object, "part"));
      }
      for (const List& list : kLists) {
        merge(list);
      }
      object["candidates"] = candidates_;
      object["refused"] = refused_;
      merge_notes();
    }
    object.erase("part");
    count_shown();
    const bool deadlock = object.contains("deadlock");
    const bool listed = std::any_of(kLists.begin(), kLists.end(), [&](const List& one) {
      return !list(member(object, one.name), one.name).empty();
    });
    merged_.found = deadlock || listed;
    if (windows) {
      object["verdict"] = merged_.found ? "predicted" : "inconclusive";
    }
    return std::move(merged_);
  }

 private:
  void read_dropped(const Json& part) {
    for (const Json& one : list(member(part, "dropped"), "dropped")) {
      const std::string kind = text(member(one, "kind"), "kind");
      const std::string why = text(member(one, "why"), "why");
      const auto in = places_of(member(one, "in"));
      for (const AskedKind each : kAskedKinds) {
        if (kind != name_of(each) || asked_.of(each).found_before(in)) {
          continue;
        }
        candidates_ -= why == name_of(Dropped::kExchanged) && candidates_ > 0 ? 1 : 0;
        refused_ += why == name_of(Dropped::kRefused) ? 1 : 0;
        not_counted_ += why == name_of(Dropped::kNotCounted) ? 1 : 0;
      }
    }
    if (part.contains("not_counted")) {
      why_not_ = text(part["not_counted"], "not_counted");
    }
  }

  void merge(const List& one) {
    std::vector<Entry> entries;
    for (Part& part : parts_) {
      for (Json& each : part.object[one.name]) {
        const Json in = member(each, "in");
        if (!asked_.of(one.kind).found_before(places_of(in))) {
          Entry& entry = entries.emplace_back();
          entry.order = numbers(member(in, "order"), "order");
          entry.json = std::move(each);
          entry.json.erase("in");
        }
      }
    }
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.order < b.order; });
    Json& all = merged_.object[one.name] = Json::array();
    for (Entry& entry : entries) {
      all.push_back(std::move(entry.json));
    }
  }

  // Each once, in an order that agrees with that of every part.
  void merge_notes() {
    std::vector<std::string> notes;
    const std::string suffix = not_counted_note(0, why_not_).substr(1);
    for (const Part& part : parts_) {
      auto at = notes.begin();
      const Json own = part.object.value("notes", Json::array());
      if (own.size() > kMostNotes) {
        throw Malformed{fmt::format("at most {} notes", kMostNotes)};
      }
      for (const Json& each : own) {
        const std::string note = text(each, "a note");
        const bool counts = !why_not_.empty() && note.ends_with(suffix);
        const auto same = std::find_if(at, notes.end(), [&](const std::string& other) {
          return other == note || (counts && other.ends_with(suffix));
        });
        at = same != notes.end() ? same + 1 : notes.insert(at, note) + 1;
      }
    }
    for (std::string& note : notes) {
      if (!why_not_.empty() && note.ends_with(suffix)) {
        note = not_counted_note(not_counted_, why_not_);
      }
    }
    merged_.object["notes"] = std::move(notes);
  }

  void count_shown() {
    uint64_t suppressed = 0;
    const auto count = [&](const Json& finding) {
      (finding.contains("suppressed_by") ? suppressed : merged_.shown) += 1;
    };
    for (const List& one : kLists) {
      for (const Json& each : list(member(merged_.object, one.name), one.name)) {
        count(each);
      }
    }
    if (merged_.object.contains("deadlock")) {
      count(merged_.object["deadlock"]);
    }
    if (merged_.object.contains("suppressed")) {
      merged_.object["suppressed"] = suppressed;
    }
  }

  std::vector<Part> parts_;
  AskedOfKinds asked_;
  uint64_t candidates_ = 0;
  uint64_t refused_ = 0;
  uint64_t not_counted_ = 0;
  std::string why_not_;
  MergedPrediction merged_;
};

// Why they are not the parts of one prediction; empty: they are.
std::string mismatch(const std::vector<Part>& parts) {
  if (parts.empty()) {
    return "no parts";
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].of != parts.size() || parts[i].number != i + 1) {
      return fmt::format("expected the {} parts of one prediction, each once", parts.front().of);
    }
    for (const char* const name : kSame) {
      if (parts[i].object.value(name, Json()) != parts.front().object.value(name, Json())) {
        return fmt::format("parts of different predictions: `{}` is not the same", name);
      }
    }
  }
  return "";
}

}  // namespace

Result<MergedPrediction> merge_prediction_parts(
    const std::vector<std::pair<std::string, std::string>>& parts) {
  std::vector<Part> all;
  for (const auto& [name, content] : parts) {
    try {
      all.push_back(part_of(content));
    } catch (const Malformed& wrong) {
      return fail(ErrorKind::kMalformed,
                  fmt::format("{}: expected the answer of a part: {}", name, wrong.expected));
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Part& a, const Part& b) { return a.number < b.number; });
  if (const std::string why = mismatch(all); !why.empty()) {
    return fail(ErrorKind::kUsage, why);
  }
  try {
    return Merge(std::move(all)).whole();
  } catch (const Malformed& wrong) {
    return fail(ErrorKind::kMalformed,
                fmt::format("expected the answers of parts: {}", wrong.expected));
  } catch (const Json::exception&) {
    return fail(ErrorKind::kMalformed, "expected the answers of parts");
  }
}

}  // namespace tsomon
