#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "monitor/findings/cycle_text.h"
#include "monitor/findings/happened_deadlock.h"
#include "monitor/findings/reported_cycle.h"
#include "monitor/findings/result_json.h"
#include "monitor/predict/predict.h"
#include "monitor/predict/turns.h"
#include "offline/predict/block_names.h"
#include "tso/support/printable.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

using predict::Branches;
using predict::Race;
using predict::Tier;

const char* branches_name(Branches branches) {
  switch (branches) {
    case Branches::kAsRecorded:
      return "as-recorded";
    case Branches::kNone:
      return "none";
    default:
      return "after-every-read";
  }
}

const char* tier_name(Tier tier) {
  return tier == Tier::kSyncPreserving ? "sync-preserving" : "closure";
}

ReportedAccess access_of(const Prediction& prediction, uint32_t event) {
  const Trace& trace = prediction.trace;
  Event there = trace.events[event];
  there.address = predict::BlockNames::place(there.address);
  return reported_access(prediction.line(event), there, trace.symbols, prediction.names);
}

// "as in the input T1 up to #4, T2 up to #9, then T1 #7, T2 #12".
std::string brief_text(const Prediction& prediction, const predict::ShortWitness& brief) {
  const auto list = [&](const std::vector<uint32_t>& events) {
    std::vector<std::string> all;
    for (const uint32_t event : events) {
      const ReportedAccess access = access_of(prediction, event);
      all.push_back(fmt::format("{} up to #{}", printable(access.thread), access.index));
    }
    return fmt::format("{}", fmt::join(all, ", "));
  };
  const std::string start = "as in the input " + list(brief.last);
  return brief.tail.empty() ? start : start + ", then " + schedule_text(prediction, brief.tail);
}

std::string accesses_text(const Prediction& prediction, const std::vector<uint32_t>& events,
                          const std::vector<uint32_t>& witness, const predict::ShortWitness& brief,
                          const TextShape& shape) {
  std::string text;
  for (const uint32_t event : events) {
    const ReportedAccess access = access_of(prediction, event);
    text += access_lines(access, "  ", printable(access.thread) + " ", shape);
  }
  if (!witness.empty()) {
    text += "  schedule: " + schedule_text(prediction, witness) + "\n";
  } else if (!brief.last.empty() || !brief.tail.empty()) {
    text += "  schedule: " + brief_text(prediction, brief) + "\n";
  }
  return text;
}

// As `check` has them.
nlohmann::ordered_json steps_json(const Prediction& prediction,
                                  const std::vector<uint32_t>& witness) {
  auto steps = nlohmann::ordered_json::array();
  for (const uint32_t entry : witness) {
    const uint32_t event = entry & ~predict::kCommit;
    steps.push_back({{entry == event ? "issue" : "commit", prediction.line(event)}});
  }
  return steps;
}

nlohmann::ordered_json entry_json(const Prediction& prediction, const std::vector<uint32_t>& events,
                                  Tier tier, const std::vector<uint32_t>& witness,
                                  const predict::ShortWitness& brief = {}) {
  std::vector<ReportedAccess> accesses;
  auto described = nlohmann::ordered_json::array();
  std::vector<uint64_t> indices;
  std::vector<std::string> locations;
  for (const uint32_t event : events) {
    accesses.push_back(access_of(prediction, event));
    described.push_back(access_json(accesses.back()));
    indices.push_back(accesses.back().index);
    locations.push_back(accesses.back().place.text);
  }
  const auto [first, last] = std::minmax_element(indices.begin(), indices.end());
  const uint64_t distance = *last == *first ? 0 : *last - *first - 1;  // one is a wait
  nlohmann::ordered_json entry = {{"events", std::move(indices)},
                                  {"locations", std::move(locations)},
                                  {"accesses", std::move(described)},
                                  {"distance", distance},
                                  {"tier", tier_name(tier)},
                                  {"fingerprint", fingerprint(accesses)},
                                  {"witness", nullptr}};
  const auto lines = [&](const std::vector<uint32_t>& order) {
    std::vector<uint64_t> all;
    all.reserve(order.size());
    for (const uint32_t event : order) {
      all.push_back(prediction.line(event));
    }
    return all;
  };
  if (!witness.empty()) {
    entry["witness"] = prediction.asked.store_buffers ? steps_json(prediction, witness)
                                                      : nlohmann::ordered_json(lines(witness));
  } else if (!brief.last.empty() || !brief.tail.empty()) {
    entry["short_witness"] = {
        {"last", lines(brief.last)},
        {"tail", prediction.asked.store_buffers ? steps_json(prediction, brief.tail)
                                                : nlohmann::ordered_json(lines(brief.tail))}};
  }
  add_turns(prediction, witness.empty() ? brief.tail : witness, &entry);
  return entry;
}

// In the order of the cycle: of the unit, of the other thread (once or twice), of the unit.
std::vector<uint32_t> accesses_of(const predict::AtomicityViolation& violation) {
  std::vector<uint32_t> events = {violation.first, violation.to};
  events.insert(events.end(), violation.via.begin(), violation.via.end());
  events.insert(events.end(), {violation.from, violation.last});
  events.erase(std::unique(events.begin(), events.end()), events.end());
  return events;
}

std::string label_of(const Prediction& prediction, const predict::AtomicityViolation& violation) {
  const Interner& labels = prediction.trace.symbols.labels;
  return violation.label < labels.size() ? std::string(unit_label(labels.text(violation.label)))
                                         : "";
}

std::string unit_text(const Prediction& prediction, const predict::AtomicityViolation& violation) {
  const std::string label = label_of(prediction, violation);
  return label.empty() ? "" : " \"" + printable(label) + "\"";
}

const char* verdict_name(const Prediction& prediction) {
  return prediction.found() ? "predicted" : prediction.complete() ? "none" : "inconclusive";
}

std::vector<ReportedAccess> reported_of(const Prediction& prediction,
                                        const std::vector<uint32_t>& events) {
  std::vector<ReportedAccess> accesses;
  accesses.reserve(events.size());
  for (const uint32_t event : events) {
    accesses.push_back(access_of(prediction, event));
  }
  return accesses;
}

// What each kind of prediction is made of.
std::vector<uint32_t> events_of(const predict::Race& race) { return {race.first, race.second}; }
std::vector<uint32_t> events_of(const predict::Deadlock& deadlock) { return deadlock.requests; }
std::vector<uint32_t> events_of(const predict::AtomicityViolation& violation) {
  return accesses_of(violation);
}
std::vector<uint32_t> events_of(const predict::UseAfterEnd& use) { return {use.end, use.use}; }

template <typename Found>
FindingPlaces found_places(const Prediction& prediction, const Found& found) {
  return places_of(reported_of(prediction, events_of(found)));
}
FindingPlaces found_places(const Prediction& prediction, const predict::Deadlock& deadlock) {
  FindingPlaces places = places_of(reported_of(prediction, deadlock.requests));
  for (const ReportedAccess& held : reported_of(prediction, deadlock.holders)) {
    places.add(held.place);
  }
  return places;
}
FindingPlaces found_places(const Prediction& prediction,
                           const predict::AtomicityViolation& violation) {
  FindingPlaces places = places_of(reported_of(prediction, accesses_of(violation)));
  if (std::string label = label_of(prediction, violation); !label.empty()) {
    places.units.push_back(std::move(label));
  }
  return places;
}

}  // namespace

std::string prediction_fingerprint(const Prediction& prediction, const predict::Race& race) {
  return fingerprint(reported_of(prediction, events_of(race)));
}
std::string prediction_fingerprint(const Prediction& prediction,
                                   const predict::Deadlock& deadlock) {
  return fingerprint(reported_of(prediction, events_of(deadlock)));
}
std::string prediction_fingerprint(const Prediction& prediction,
                                   const predict::AtomicityViolation& violation) {
  return fingerprint(reported_of(prediction, events_of(violation)));
}
std::string prediction_fingerprint(const Prediction& prediction, const predict::UseAfterEnd& use) {
  return fingerprint(reported_of(prediction, events_of(use)));
}

namespace {

// What is told of a prediction, and what is not.
struct Listing {
  explicit Listing(HiddenFindings* hiding, const TextShape& as = {})
      : shape(as), hidden(hiding != nullptr ? *hiding : nothing_hidden) {}

  TextShape shape;
  HiddenFindings nothing_hidden;
  HiddenFindings& hidden;
  uint64_t left_out = 0;
};

// Describes what was found, one after the other. Once a stop has been asked for, whose answer must not take seconds, only
// the first ones; how many were left out is counted.
template <typename Found, typename Describe>
void for_each_listed(const std::vector<Found>& all, Listing* listing, const Describe& describe) {
  constexpr size_t kListedWhenStopped = 1000;
  for (size_t at = 0; at < all.size(); ++at) {
    if (at >= kListedWhenStopped && stop_asked()) {
      listing->left_out += all.size() - at;
      listing->hidden.show(all.size() - at);
      return;
    }
    describe(all[at]);
  }
}

// Of those that are hidden nothing.
template <typename Found, typename Describe>
void for_each_shown(const Prediction& prediction, const std::vector<Found>& all, Listing* listing,
                    const Describe& describe) {
  for_each_listed(all, listing, [&](const Found& found) {
    if (!listing->hidden.asked()) {
      listing->hidden.show(1);
      describe(found);
    } else if (!listing->hidden.hide(found_places(prediction, found))) {
      describe(found);
    }
  });
}

// The events that decide the place of a finding in its list.
std::vector<uint32_t> order_of(const predict::Race& race) { return {race.first, race.second}; }
std::vector<uint32_t> order_of(const predict::Deadlock& deadlock) { return deadlock.requests; }
std::vector<uint32_t> order_of(const predict::AtomicityViolation& violation) {
  return {violation.first, violation.last, violation.to, violation.from};
}
std::vector<uint32_t> order_of(const predict::UseAfterEnd& use) { return {use.end, use.use}; }

nlohmann::ordered_json places_json(const predict::FoundPlaces& in) {
  nlohmann::ordered_json object = {{"window", in.window}, {"places", in.places}};
  if (!in.mirror.empty()) {
    object["mirror"] = in.mirror;
  }
  return object;
}

// The entry, whether it is hidden, and of a part what merging parts needs.
template <typename Found>
nlohmann::ordered_json marked(const Prediction& prediction, const Found& found,
                              nlohmann::ordered_json entry, Listing* listing) {
  if (listing->hidden.asked()) {
    listing->hidden.mark(found_places(prediction, found), &entry);
  }
  if (prediction.part) {
    auto& in = entry["in"] = places_json(found.in);
    auto order = nlohmann::ordered_json::array();
    for (const uint32_t event : order_of(found)) {
      order.push_back(prediction.part->numbers[event]);
    }
    in["order"] = std::move(order);
  }
  return entry;
}

// Of a part: what was asked about, as [window, place...], and what was dropped.
nlohmann::ordered_json part_json(const Prediction& prediction) {
  nlohmann::ordered_json object = {{"number", prediction.asked.part->number},
                                   {"of", prediction.asked.part->of}};
  if (!prediction.part) {
    return object;
  }
  auto& asked = object["asked"] = nlohmann::ordered_json::object();
  for (const AskedKind kind : kAskedKinds) {
    auto list = nlohmann::ordered_json::array();
    for (const auto& [places, window] : prediction.part->asked.of(kind).all()) {
      auto entry = nlohmann::ordered_json::array();
      entry.push_back(window == predict::AskedPlaces::kNever ? nlohmann::ordered_json(nullptr)
                                                             : nlohmann::ordered_json(window));
      for (const uint64_t place : places) {
        entry.push_back(place);
      }
      list.push_back(std::move(entry));
    }
    asked[name_of(kind)] = std::move(list);
  }
  auto dropped = nlohmann::ordered_json::array();
  for (const DroppedFinding& one : prediction.part->dropped) {
    dropped.push_back(
        {{"kind", name_of(one.kind)}, {"why", name_of(one.why)}, {"in", places_json(one.in)}});
  }
  object["dropped"] = std::move(dropped);
  if (!prediction.part->not_counted.empty()) {
    object["not_counted"] = prediction.part->not_counted;
  }
  return object;
}

std::string left_out_note(uint64_t left_out) {
  return fmt::format("{} more were found and are not listed: a stop was asked for", left_out);
}

std::string left_out_text(uint64_t left_out) {
  return left_out == 0 ? "" : "note: " + left_out_note(left_out) + "\n";
}

std::string races_text(const Prediction& prediction, Listing* listing) {
  std::string text;
  for_each_shown(prediction, prediction.races.races, listing, [&](const Race& race) {
    text += "race:\n" + accesses_text(prediction, {race.first, race.second}, race.witness,
                                      race.brief, listing->shape);
  });
  return text;
}

std::string deadlocks_text(const Prediction& prediction, Listing* listing) {
  std::string text;
  for_each_shown(prediction, prediction.deadlocks.deadlocks, listing,
                 [&](const predict::Deadlock& deadlock) {
                   const bool lost = deadlock.kind == predict::DeadlockKind::kLostNotification;
                   text += lost ? "deadlock, the notification comes before the wait:\n"
                                : "deadlock, each waits for the next:\n";
                   if (lost) {
                     text += accesses_text(prediction, deadlock.holders, {}, {}, listing->shape);
                   }
                   text += accesses_text(prediction, deadlock.requests, deadlock.witness,
                                         deadlock.brief, listing->shape);
                 });
  return text;
}

std::string violations_text(const Prediction& prediction, Listing* listing) {
  std::string text;
  for_each_shown(prediction, prediction.atomicity.violations, listing,
                 [&](const predict::AtomicityViolation& violation) {
                   text += fmt::format("not atomic{}:\n", unit_text(prediction, violation)) +
                           accesses_text(prediction, accesses_of(violation), violation.witness,
                                         violation.brief, listing->shape);
                 });
  return text;
}

std::string uses_text(const Prediction& prediction, const std::vector<predict::UseAfterEnd>& uses,
                      const char* after, Listing* listing) {
  std::string text;
  for_each_shown(prediction, uses, listing, [&](const predict::UseAfterEnd& use) {
    text += fmt::format("use after {}{}:\n", after, use.happened ? ", as it happened" : "") +
            accesses_text(prediction, {use.end, use.use}, use.witness, use.brief, listing->shape);
  });
  return text;
}

std::string uses_text(const Prediction& prediction, Listing* listing) {
  return uses_text(prediction, prediction.lifetimes.after_free, "free", listing) +
         uses_text(prediction, prediction.lifetimes.after_destroy, "destroy", listing);
}

}  // namespace

std::string predictions_text(const Prediction& prediction, HiddenFindings* hidden,
                             const TextShape& shape) {
  Listing listing(hidden, shape);
  const std::string text = races_text(prediction, &listing) + deadlocks_text(prediction, &listing) +
                           violations_text(prediction, &listing) + uses_text(prediction, &listing);
  return text + left_out_text(listing.left_out);
}

std::string prediction_text(const Prediction& prediction, HiddenFindings* hidden,
                            const TextShape& shape) {
  const predict::RaceResult& races = prediction.races;
  const predict::DeadlockResult& deadlocks = prediction.deadlocks;
  const predict::AtomicityResult& atomicity = prediction.atomicity;
  Listing listing(hidden, shape);
  const HappenedDeadlock happened =
      happened_deadlock(prediction.stuck, prediction.trace.symbols, prediction.names);
  std::string text = happened.any() && !listing.hidden.hide(happened.places())
                         ? prediction.input + ": " + happened.text()
                         : "";
  text += fmt::format("{}: {} (branches {})\n", prediction.input, verdict_name(prediction),
                      branches_name(prediction.branches));
  if (prediction.asked.races) {
    text += fmt::format("data races: {} ({} pairs of locations asked about, {} refused)\n",
                        races.races.size(), races.candidates, races.refused) +
            races_text(prediction, &listing);
  }
  if (prediction.asked.deadlocks) {
    text += fmt::format("deadlocks: {} ({} circles of locations asked about, {} refused)\n",
                        deadlocks.deadlocks.size(), deadlocks.candidates, deadlocks.refused) +
            deadlocks_text(prediction, &listing);
  }
  if (prediction.asked.atomicity) {
    text +=
        fmt::format("atomicity violations: {} ({} tuples of locations asked about, {} refused)\n",
                    atomicity.violations.size(), atomicity.candidates, atomicity.refused) +
        violations_text(prediction, &listing);
  }
  const predict::LifetimeResult& lifetimes = prediction.lifetimes;
  if (lifetimes.candidates > 0) {
    text += fmt::format(
                "uses after free: {}, after destroy: {} ({} pairs of locations asked about, "
                "{} refused)\n",
                lifetimes.after_free.size(), lifetimes.after_destroy.size(), lifetimes.candidates,
                lifetimes.refused) +
            uses_text(prediction, &listing);
  }
  for (const Shortfall& shortfall : prediction.shortfalls) {
    text += shortfall_lines(shortfall);
  }
  for (const std::string& note : prediction.notes) {
    text += "note: " + note + "\n";
  }
  if (const std::string left = listing.hidden.text(); !left.empty()) {
    text += left + "\n";
  }
  return text + left_out_text(listing.left_out);
}

ListedJson prediction_json(const std::string& file, const Prediction& prediction,
                           HiddenFindings* hidden) {
  const predict::RaceResult& races = prediction.races;
  const predict::DeadlockResult& deadlocks = prediction.deadlocks;
  auto kinds = nlohmann::ordered_json::array();
  JsonEntries race_list;
  JsonEntries deadlock_list;
  JsonEntries atomicity_list;
  if (prediction.asked.races) {
    kinds.push_back("races");
  }
  if (prediction.asked.deadlocks) {
    kinds.push_back("deadlocks");
  }
  if (prediction.asked.atomicity) {
    kinds.push_back("atomicity");
  }
  if (prediction.asked.uses_after_free) {
    kinds.push_back("use-after-free");
  }
  if (prediction.asked.uses_after_destroy) {
    kinds.push_back("use-after-destroy");
  }
  Listing listing(hidden);
  const auto uses_json = [&](const std::vector<predict::UseAfterEnd>& uses) {
    JsonEntries list;
    for_each_listed(uses, &listing, [&](const predict::UseAfterEnd& use) {
      auto entry = entry_json(prediction, {use.end, use.use}, use.tier, use.witness, use.brief);
      entry["happened"] = use.happened;
      list.add(marked(prediction, use, std::move(entry), &listing));
    });
    return list;
  };
  for_each_listed(races.races, &listing, [&](const Race& race) {
    race_list.add(marked(
        prediction, race,
        entry_json(prediction, events_of(race), race.tier, race.witness, race.brief), &listing));
  });
  for_each_listed(deadlocks.deadlocks, &listing, [&](const predict::Deadlock& deadlock) {
    auto entry =
        entry_json(prediction, deadlock.requests, deadlock.tier, deadlock.witness, deadlock.brief);
    std::vector<uint64_t> holders;
    std::vector<std::string> threads;
    std::vector<std::string> locations;
    for (const ReportedAccess& holder : reported_of(prediction, deadlock.holders)) {
      holders.push_back(holder.index);
      threads.push_back(holder.thread);
      locations.push_back(holder.place.text);
    }
    entry["holders"] = std::move(holders);
    entry["holder_threads"] = std::move(threads);
    entry["holder_locations"] = std::move(locations);
    entry["kind"] =
        deadlock.kind == predict::DeadlockKind::kCircle ? "circle" : "lost-notification";
    deadlock_list.add(marked(prediction, deadlock, std::move(entry), &listing));
  });
  const predict::AtomicityResult& atomicity = prediction.atomicity;
  for_each_listed(atomicity.violations, &listing,
                  [&](const predict::AtomicityViolation& violation) {
                    auto entry = entry_json(prediction, accesses_of(violation), violation.tier,
                                            violation.witness, violation.brief);
                    entry["label"] = label_of(prediction, violation);
                    atomicity_list.add(marked(prediction, violation, std::move(entry), &listing));
                  });
  nlohmann::ordered_json object = {
      {"file", file},
      {"events", prediction.events},
      {"kinds", std::move(kinds)},
      {"model", prediction.asked.store_buffers ? "tso" : "sc"},
      {"branches", branches_name(prediction.branches)},
      {"verdict", verdict_name(prediction)},
      {"complete", prediction.complete()},
      {"candidates", races.candidates + deadlocks.candidates + atomicity.candidates +
                         prediction.lifetimes.candidates},
      {"refused",
       races.refused + deadlocks.refused + atomicity.refused + prediction.lifetimes.refused},
      {"races", nlohmann::ordered_json::array()},
      {"deadlocks", nlohmann::ordered_json::array()},
      {"atomicity_violations", nlohmann::ordered_json::array()},
      {"uses_after_free", nlohmann::ordered_json::array()},
      {"uses_after_destroy", nlohmann::ordered_json::array()}};
  JsonEntries after_free = uses_json(prediction.lifetimes.after_free);
  JsonEntries after_destroy = uses_json(prediction.lifetimes.after_destroy);
  if (!prediction.stuck.empty()) {
    const HappenedDeadlock happened =
        happened_deadlock(prediction.stuck, prediction.trace.symbols, prediction.names);
    auto& deadlock = object["deadlock"] = happened.json();
    listing.hidden.mark(happened.places(), &deadlock);
  }
  listing.hidden.add_to(&object);
  if (prediction.windows > 1) {
    object["windows"] = prediction.windows;
    object["window_events"] = prediction.asked.window_events;
  }
  std::vector<std::string> notes = prediction.notes;
  if (listing.left_out != 0) {
    object["not_listed"] = listing.left_out;
    notes.push_back(left_out_note(listing.left_out));
  }
  if (!prediction.shortfalls.empty()) {
    object["shortfalls"] = shortfalls_json(prediction.shortfalls);
  }
  if (!notes.empty()) {
    object["notes"] = std::move(notes);
  }
  if (prediction.asked.part) {
    object["part"] = part_json(prediction);
  }
  return {std::move(object),
          {{"races", std::move(race_list)},
           {"deadlocks", std::move(deadlock_list)},
           {"atomicity_violations", std::move(atomicity_list)},
           {"uses_after_free", std::move(after_free)},
           {"uses_after_destroy", std::move(after_destroy)}}};
}

}  // namespace tsomon
