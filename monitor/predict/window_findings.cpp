#include "monitor/predict/window_findings.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "offline/predict/witness.h"

namespace tsomon {
namespace {

template <typename Change>
void each_of(std::vector<uint32_t>* events, const Change& change) {
  for (uint32_t& event : *events) {
    event = change(event & ~predict::kCommit) | (event & predict::kCommit);
  }
}

// event = change(event) for each event of what was found; of short witnesses `brief` does it.
template <typename Change, typename Brief>
void each_event(Prediction* found, const Change& change, const Brief& brief) {
  const auto witness = [&](auto* finding) {
    each_of(&finding->witness, change);
    brief(&finding->brief);
    each_of(&finding->brief.tail, change);
  };
  for (predict::Race& race : found->races.races) {
    race.first = change(race.first);
    race.second = change(race.second);
    witness(&race);
  }
  for (auto* const uses : {&found->lifetimes.after_free, &found->lifetimes.after_destroy}) {
    for (predict::UseAfterEnd& use : *uses) {
      use.end = change(use.end);
      use.use = change(use.use);
      witness(&use);
    }
  }
  for (predict::Deadlock& deadlock : found->deadlocks.deadlocks) {
    each_of(&deadlock.requests, change);
    each_of(&deadlock.holders, change);
    witness(&deadlock);
  }
  for (predict::AtomicityViolation& violation : found->atomicity.violations) {
    for (uint32_t* event : {&violation.first, &violation.to, &violation.from, &violation.last}) {
      *event = change(*event);
    }
    each_of(&violation.via, change);
    witness(&violation);
  }
}

template <typename Findings>
void append(Findings* all, Findings&& more) {
  all->insert(all->end(), std::make_move_iterator(more.begin()),
              std::make_move_iterator(more.end()));
}

}  // namespace

uint32_t WindowFindings::keep(uint64_t number, const Event& event, uint64_t line) {
  const auto next = static_cast<uint32_t>(numbers_.size());
  const auto [at, is_new] = kept_.try_emplace(number, next);
  if (is_new) {
    numbers_.push_back(number);
    found_.trace.events.push_back(event);
    found_.lines.push_back(line);
  }
  return at->second;
}

void WindowFindings::begin_window(uint64_t number) {
  window_ = number;
  for (const AskedKind kind : kAskedKinds) {
    asked_.of(kind).begin_window(number);
  }
}

void WindowFindings::add(Prediction part, const WindowReader& reader) {
  const auto only_new = [&](auto* findings, const predict::AskedPlaces& asked) {
    for (auto& one : *findings) {
      one.in.window = window_;
    }
    std::erase_if(*findings, [&](const auto& one) { return asked.found_before(one.in); });
  };
  only_new(&part.races.races, asked_.races);
  only_new(&part.deadlocks.deadlocks, asked_.deadlocks);
  only_new(&part.atomicity.violations, asked_.violations);
  only_new(&part.lifetimes.after_free, asked_.lifetimes);
  only_new(&part.lifetimes.after_destroy, asked_.lifetimes);
  const auto change = [&](uint32_t event) {
    return keep(reader.number(event), reader.window().events[event], reader.line(event));
  };
  // The threads that have done nothing in the window are where they were before it.
  const auto brief = [&](predict::ShortWitness* witness) {
    std::set<ThreadId> acted;
    const auto is_carried = [&](uint32_t entry) {
      return (entry & ~predict::kCommit) < reader.carried();  // done before the window
    };
    std::erase_if(witness->last, is_carried);
    std::erase_if(witness->tail, is_carried);
    for (uint32_t& event : witness->last) {
      acted.insert(reader.window().events[event].thread);
      event = change(event);
    }
    for (const auto& last : reader.start().last_events()) {
      if (acted.count(last.event.thread) == 0) {
        witness->last.push_back(keep(last.number, last.event, last.line));
      }
    }
  };
  each_event(&part, change, brief);
  ends_[window_] = reader.number(static_cast<uint32_t>(reader.window().events.size()));
  append(&found_.races.races, std::move(part.races.races));
  append(&found_.deadlocks.deadlocks, std::move(part.deadlocks.deadlocks));
  append(&found_.atomicity.violations, std::move(part.atomicity.violations));
  append(&found_.lifetimes.after_free, std::move(part.lifetimes.after_free));
  append(&found_.lifetimes.after_destroy, std::move(part.lifetimes.after_destroy));
  found_.lifetimes.add_bounds(part.lifetimes);
  found_.races.add_bounds(part.races);
  found_.deadlocks.add_bounds(part.deadlocks);
  found_.atomicity.add_bounds(part.atomicity);
  found_.late_releases = found_.late_releases || part.late_releases;
  found_.late_units = found_.late_units || part.late_units;
  found_.ended = found_.ended ? found_.ended : part.ended;
  found_.branches = part.branches;
  found_.work += part.work;
}

void WindowFindings::finish(const predict::OutsideEvents& all, bool knows_atomics,
                            Prediction* whole) {
  const std::vector<Event>& events = found_.trace.events;
  auto& races = found_.races.races;
  const uint64_t exchanged = whole->drop_if(&races, Dropped::kExchanged, [&](const auto& race) {
    return !knows_atomics && all.exchanged(events[race.first], events[race.second]);
  });
  auto& deadlocks = found_.deadlocks.deadlocks;
  const uint64_t notified = whole->drop_if(&deadlocks, Dropped::kRefused, [&](const auto& one) {
    return one.kind == predict::DeadlockKind::kLostNotification &&
           all.notified(events[one.requests.front()], ends_[one.in.window]);
  });
  found_.races.candidates = asked_.races.size() - exchanged;
  found_.races.refused = asked_.races.refused();
  found_.deadlocks.candidates = asked_.deadlocks.size();
  found_.deadlocks.refused = asked_.deadlocks.refused() + notified;
  found_.atomicity.candidates = asked_.violations.size();
  found_.atomicity.refused = asked_.violations.refused();
  found_.lifetimes.candidates = asked_.lifetimes.size();
  found_.lifetimes.refused = asked_.lifetimes.refused();

  // Their order is that of the run again.
  std::vector<uint32_t> order(numbers_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return numbers_[a] < numbers_[b]; });
  std::vector<uint32_t> place(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    whole->trace.events.push_back(events[order[i]]);
    whole->lines.push_back(found_.lines[order[i]]);
    if (whole->part) {
      whole->part->numbers.push_back(numbers_[order[i]]);
    }
  }
  const auto change = [&](uint32_t event) { return place[event]; };
  each_event(&found_, change,
             [&](predict::ShortWitness* witness) { each_of(&witness->last, change); });
  std::sort(races.begin(), races.end(), [](const predict::Race& a, const predict::Race& b) {
    return std::tie(a.first, a.second) < std::tie(b.first, b.second);
  });
  std::sort(deadlocks.begin(), deadlocks.end(),
            [](const predict::Deadlock& a, const predict::Deadlock& b) {
              return a.requests < b.requests;
            });
  auto& violations = found_.atomicity.violations;
  using predict::AtomicityViolation;
  std::sort(violations.begin(), violations.end(),
            [](const AtomicityViolation& a, const AtomicityViolation& b) {
              return std::tie(a.first, a.last, a.to, a.from) <
                     std::tie(b.first, b.last, b.to, b.from);
            });
  for (auto* const uses : {&found_.lifetimes.after_free, &found_.lifetimes.after_destroy}) {
    std::sort(uses->begin(), uses->end(),
              [](const predict::UseAfterEnd& a, const predict::UseAfterEnd& b) {
                return std::tie(a.end, a.use) < std::tie(b.end, b.use);
              });
  }
  whole->lifetimes = std::move(found_.lifetimes);
  whole->races = std::move(found_.races);
  whole->deadlocks = std::move(found_.deadlocks);
  whole->atomicity = std::move(found_.atomicity);
  whole->late_releases = found_.late_releases;
  whole->late_units = found_.late_units;
  whole->ended = whole->ended ? whole->ended : found_.ended;
  whole->branches = found_.branches;
  whole->work = found_.work;
  if (whole->part) {
    whole->part->asked = std::move(asked_);
  }
}

}  // namespace tsomon
