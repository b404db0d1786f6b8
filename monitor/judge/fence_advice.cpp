#include "monitor/judge/fence_advice.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "monitor/findings/event_text.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

std::string label_of(const FenceAdvice& advice, const Symbols& symbols) {
  return advice.label == Interner::kNone || advice.label >= symbols.labels.size()
             ? std::string()
             : std::string(unit_label(symbols.labels.text(advice.label)));
}

nlohmann::ordered_json json_of(const FenceAdvice& advice, const Symbols& symbols,
                               const ReportNames& names) {
  const ReportedAccess store = reported_access(advice.after, advice.store, symbols, names);
  return {{"thread", thread_text(advice.thread, symbols)},
          {"label", label_of(advice, symbols)},
          {"first", advice.first},
          {"last", advice.last},
          {"after", advice.after},
          {"location", store.place.text},
          {"units", advice.units},
          {"is_unit", advice.label != Interner::kNone},
          {"store", access_json(store)}};
}

std::string line_of(const FenceAdvice& advice, const Symbols& symbols, const ReportNames& names) {
  const ReportedAccess store = reported_access(advice.after, advice.store, symbols, names);
  const std::string label = printable(label_of(advice, symbols));
  const std::string location = printable(store.place.text);
  return fmt::format("{} {}: a fence is missing after #{} store {}{}{}{}",
                     printable(thread_text(advice.thread, symbols)),
                     advice.label == Interner::kNone ? "event of its own"
                     : label.empty()                 ? "unit without a label"
                                                     : "unit " + label,
                     advice.after,
                     printable(store.variable.empty() ? store.operand : store.variable),
                     location.empty() ? "" : " ", location,
                     advice.units == 1 ? "" : fmt::format(" ({} such units)", advice.units));
}

}  // namespace

void add_fence_advice(const Analysis& analysis, const EventBlock& events, const UnitTable& units,
                      const std::vector<uint64_t>* index, std::vector<FenceAdvice>* advice) {
  const auto place = [&](uint32_t e) { return index == nullptr ? e : (*index)[e]; };
  for (const UnfencedUnit& unfenced : analysis.unfenced) {
    const Unit& unit = units[unfenced.unit];
    FenceAdvice one{unit.thread,
                    unit.label,
                    place(unit.first_event),
                    place(unit.last_event),
                    place(unfenced.after),
                    events.events[unfenced.after],
                    1};
    one.store.has_hi = one.store.has_read_value = one.store.has_write_value = 0;
    const auto same = std::find_if(advice->begin(), advice->end(), [&](const FenceAdvice& other) {
      return one.store.location != Event::kNoLocation && other.label == one.label &&
             other.store.location == one.store.location;
    });
    if (same != advice->end()) {
      ++same->units;
    } else if (advice->size() < kMaxFenceAdvice) {
      advice->push_back(one);
    }
  }
}

std::vector<ReportedFence> reported(const std::vector<FenceAdvice>& advice, const Symbols& symbols,
                                    const ReportNames& names) {
  std::vector<ReportedFence> result;
  result.reserve(advice.size());
  for (const FenceAdvice& each : advice) {
    result.push_back({json_of(each, symbols, names), line_of(each, symbols, names)});
  }
  return result;
}

}  // namespace tsomon
