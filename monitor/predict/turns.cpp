#include "monitor/predict/turns.h"

#include <utility>

#include <fmt/format.h>

#include "monitor/findings/reported_cycle.h"

namespace tsomon {
namespace {

// The store was issued before, and this is not right after that.
bool late_commit(const std::vector<uint32_t>& witness, size_t at) {
  return (witness[at] & predict::kCommit) != 0 &&
         (at == 0 || witness[at - 1] != (witness[at] & ~predict::kCommit));
}

// Of a thread: events that follow each other. Commits that come late are turns.
struct Turn {
  std::string thread;
  uint64_t first = 0;
  uint64_t last = 0;
  bool late = false;
};

// The last ones, at most `most`; `*before` are there besides.
std::vector<Turn> turns_of(const Prediction& prediction, const std::vector<uint32_t>& witness,
                           size_t most, size_t* before) {
  const Trace& trace = prediction.trace;
  const auto event = [&](size_t at) { return witness[at] & ~predict::kCommit; };
  std::vector<std::pair<size_t, size_t>> ranges;  // of the witness
  for (size_t at = 0; at < witness.size();) {
    const ThreadId thread = trace.events[event(at)].thread;
    const bool late = late_commit(witness, at);
    size_t end = at + 1;
    while (!late && end < witness.size() && trace.events[event(end)].thread == thread &&
           !late_commit(witness, end)) {
      ++end;
    }
    ranges.emplace_back(at, end);
    at = end;
  }
  *before = ranges.size() > most ? ranges.size() - most : 0;
  std::vector<Turn> turns;
  for (size_t i = *before; i < ranges.size(); ++i) {
    const auto [at, end] = ranges[i];
    const uint64_t first = prediction.line(event(at));
    turns.push_back({reported_access(first, trace.events[event(at)], trace.symbols, {}).thread,
                     first, prediction.line(event(end - 1)), late_commit(witness, at)});
  }
  return turns;
}

}  // namespace

std::string schedule_text(const Prediction& prediction, const std::vector<uint32_t>& witness) {
  constexpr size_t kShown = 6;
  size_t before = 0;
  std::vector<std::string> turns;
  for (const Turn& turn : turns_of(prediction, witness, kShown, &before)) {
    turns.push_back(turn.late ? fmt::format("{} commits #{}", turn.thread, turn.first)
                    : turn.first == turn.last
                        ? fmt::format("{} #{}", turn.thread, turn.first)
                        : fmt::format("{} #{}..#{}", turn.thread, turn.first, turn.last));
  }
  const std::string text = before > 0 ? fmt::format("... {} turns, then ", before) : "";
  return text + fmt::format("{}", fmt::join(turns, ", "));
}

void add_turns(const Prediction& prediction, const std::vector<uint32_t>& witness,
               nlohmann::ordered_json* entry) {
  constexpr size_t kListed = 40;
  size_t before = 0;
  auto list = nlohmann::ordered_json::array();
  for (const Turn& turn : turns_of(prediction, witness, kListed, &before)) {
    list.push_back({{"thread", turn.thread}});
    if (turn.late) {
      list.back()["commit"] = turn.first;
    } else {
      list.back()["first"] = turn.first;
      list.back()["last"] = turn.last;
    }
  }
  if (!list.empty()) {
    (*entry)["turns"] = std::move(list);
    (*entry)["turns_before"] = before;
  }
}

}  // namespace tsomon
