#include "offline/explain/violation.h"

#include <algorithm>
#include <map>
#include <set>

#include "tso/support/work.h"

namespace tsomon::explain {

ViolatedSlice::ViolatedSlice(const Trace& trace, const std::vector<EventRange>& members,
                             const std::vector<uint32_t>& labels, const AnalysisOptions& options)
    : unit_of_(trace.events.size(), UnitTable::kNone) {
  uint32_t first = UINT32_MAX;
  uint32_t last = 0;
  for (uint32_t unit = 0; unit < members.size(); ++unit) {
    const EventRange& range = members[unit];
    first = std::min(first, range.first);
    last = std::max(last, range.last);
    for (uint32_t e = range.first; e <= range.last; ++e) {
      spend(1);
      if (trace.events[e].thread == range.thread) {
        unit_of_[e] = unit;
      }
    }
  }
  const auto ask = [&](uint32_t around) {
    question_ = cut_out(trace, first, last, around, options);
    late_stores_.clear();
    find_late_stores(members);
    if (!labels.empty()) {
      question_ = with_units(question_, labels, unit_of_);
    } else {
      question_.options.only = members;
      for (EventRange& range : question_.options.only) {
        range.first -= question_.origin.front();
        range.last -= question_.origin.front();
      }
    }
    before_ = violations_left(question_);
    return can_ask();
  };
  // With much around it a violation may be too large to be decided; all of its cycles then, those of its neighbours
  // among them, are no question that a repair of it answers.
  if (ask(kAround) || ask(kNear)) {
    return;
  }
  ask(kAround);
  if (!can_ask() && !question_.options.only.empty()) {
    question_.options.only.clear();  // the cycle leads through other events, too
    before_ = violations_left(question_);
  }
  if (!can_ask() && question_.options.values) {
    question_.options.values = false;  // of a slice they may not fit
    before_ = violations_left(question_);
  }
}

void ViolatedSlice::find_late_stores(const std::vector<EventRange>& ranges) {
  const auto& events = question_.trace.events;
  const uint32_t begin = question_.origin.front();
  struct Member {
    uint32_t first = UINT32_MAX;
    uint32_t last = 0;
  };
  std::map<ThreadId, Member> members;
  for (const EventRange& range : ranges) {
    Member& member = members[range.thread];
    member.first = std::min(member.first, range.first - begin);
    member.last = std::max(member.last, range.last - begin);
  }
  std::map<ThreadId, std::vector<uint32_t>> pending;
  std::map<ThreadId, uint32_t> undrained;  // a store that its thread has done nothing after
  for (uint32_t e = 0; e < events.size(); ++e) {
    spend(2);
    const auto member = members.find(events[e].thread);
    if (member == members.end() || !is(events[e], kinds::kNodes)) {
      continue;
    }
    std::vector<uint32_t>& mine = pending[events[e].thread];
    const bool drains = is(events[e], kinds::kDrains);
    if (const auto before = undrained.find(events[e].thread); before != undrained.end()) {
      if (!drains) {
        mine.push_back(before->second);
      }
      undrained.erase(before);
    }
    if (drains && e < member->second.first) {
      mine.clear();
    }
    if (is(events[e], kinds::kStores) && e <= member->second.last) {
      undrained[events[e].thread] = e;
    }
  }
  for (const auto& [thread, store] : undrained) {
    pending[thread].push_back(store);
  }
  for (const auto& [thread, stores] : pending) {
    for (const uint32_t store : stores) {
      late_stores_.push_back(begin + store);
    }
  }
  std::sort(late_stores_.begin(), late_stores_.end());
}

std::vector<uint32_t> ViolatedSlice::smallest(uint64_t max_questions, bool* complete) const {
  const auto& events = question_.trace.events;
  constexpr uint32_t kUnits = kind_mask(EventKind::kUnitBegin) | kind_mask(EventKind::kUnitEnd);
  std::vector<bool> keep(events.size(), true);
  const auto violated = [&](const std::vector<bool>& some) {
    if (max_questions == 0) {
      *complete = false;
      return false;
    }
    --max_questions;
    const Left left = violations_left(with_only(question_, some));
    return left == Left::kSome || left == Left::kAlways;
  };
  // First all that is not of the violation, then ever smaller pieces.
  std::vector<bool> own(events.size());
  std::vector<uint32_t> rest;
  for (uint32_t e = 0; e < events.size(); ++e) {
    own[e] = is(events[e], kUnits) || has(question_.origin[e]);
  }
  if (violated(own)) {
    keep = own;
  }
  for (uint32_t e = 0; e < events.size(); ++e) {
    if (keep[e] && !is(events[e], kUnits)) {
      rest.push_back(e);
    }
  }
  for (size_t piece = std::max<size_t>(1, rest.size() / 2);; piece /= 2) {
    bool less = false;
    for (size_t begin = 0; begin < rest.size();) {
      const size_t end = std::min(rest.size(), begin + piece);
      std::vector<bool> without = keep;
      for (size_t i = begin; i < end; ++i) {
        without[rest[i]] = false;
      }
      if (violated(without)) {
        keep = std::move(without);
        rest.erase(rest.begin() + static_cast<ptrdiff_t>(begin),
                   rest.begin() + static_cast<ptrdiff_t>(end));
        less = true;
      } else {
        begin = end;
      }
    }
    if (piece == 1 && !less) {
      break;
    }
    piece = less && piece == 1 ? 2 : std::max<size_t>(piece, 2);
  }
  for (uint32_t& e : rest) {
    e = question_.origin[e];
  }
  return rest;
}

Left ViolatedSlice::with_fences_after(std::vector<uint32_t> stores, FenceTime time) const {
  std::sort(stores.begin(), stores.end());
  return violations_left(with_fences(question_, stores, time));
}

Left ViolatedSlice::with_blocks(uint32_t blocks, const std::vector<uint32_t>& unit_of) const {
  std::vector<uint32_t> inside(unit_of);
  for (size_t e = 0; e < inside.size(); ++e) {
    inside[e] = unit_of_[e] == UnitTable::kNone ? UnitTable::kNone : inside[e];
  }
  return violations_left(with_units(question_, std::vector<uint32_t>(blocks, 0), inside));
}

std::optional<bool> ViolatedSlice::interrupts(uint32_t blocks,
                                              const std::vector<uint32_t>& unit_of) const {
  switch (can_ask() ? with_blocks(blocks, unit_of) : Left::kUnknown) {
    case Left::kAlways:
    case Left::kNoExecution:
      return true;
    case Left::kSome:
      return definite() ? std::optional(false) : std::nullopt;
    case Left::kNothing:
      return false;
    default:
      return std::nullopt;
  }
}

}  // namespace tsomon::explain
