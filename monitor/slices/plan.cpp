#include "monitor/slices/plan.h"

#include <algorithm>

namespace tsomon {
namespace {

using std::chrono::microseconds;

constexpr double kNew = 0.25;           // weight of the last slice in what slices cost
constexpr double kLeastRate = 0.01;     // processors
constexpr uint64_t kLeastBytes = 4096;  // that a slice of kCold may record

double count(microseconds time) { return static_cast<double>(time.count()); }

}  // namespace

const char* name_of(SliceKind kind) {
  return kind == SliceKind::kAll     ? "all"
         : kind == SliceKind::kFocus ? "focus"
         : kind == SliceKind::kCold  ? "cold"
                                     : "trigger";
}

Plan::Plan(const PlanOptions& options) : options_(options), random_(options.seed) {
  const bool others = options.focus || options.cold;
  of(SliceKind::kAll).part = others ? 0.5 : 1;
  const double rest = options.focus && options.cold ? 0.25 : 0.5;
  of(SliceKind::kFocus).part = options.focus ? rest : 0;
  of(SliceKind::kCold).part = options.cold ? rest : 0;
  for (const SliceKind kind : {SliceKind::kAll, SliceKind::kFocus}) {
    of(kind).time = is_bounded() ? std::min(kShortest, options.slice) : options.slice;
  }
  of(SliceKind::kCold).time = options.slice * kLonger;
}

bool Plan::has_use(SliceKind kind) const {
  if (kind == SliceKind::kAll || of(kind).part == 0) {
    return kind == SliceKind::kAll;
  }
  return of(SliceKind::kAll).cost > 0 &&
         (kind == SliceKind::kFocus ? !heat_.empty() : !rests_.empty() || all_slices_ >= kQuiet);
}

// A slice of everything costs the share of time that it is; the others what they cost beside that.
double Plan::mean_gap(const Kind& kind) const {
  const Kind& all = of(SliceKind::kAll);
  double budget = all.cost / all.length * options_.share;  // for each microsecond
  if (is_bounded()) {
    budget = std::min(budget, options_.max_overhead * rate_);
  } else if (options_.share >= 1) {
    return 0;
  }
  return std::max(0.0, kind.cost / (kind.part * budget) - kind.length);
}

PlannedSlice Plan::next(double rate) {
  rate_ = std::max(rate, kLeastRate);
  SliceKind earliest = SliceKind::kAll;
  for (size_t i = 0; i < kSliceKinds; ++i) {
    const auto which = static_cast<SliceKind>(i);
    Kind& kind = of(which);
    if (!has_use(which)) {
      continue;
    }
    if (!kind.scheduled) {
      const double mean = kind.cost == 0 ? 0 : mean_gap(kind);
      const double gap = std::uniform_real_distribution<double>(0, 2 * mean)(random_);
      kind.due = now_ + microseconds(static_cast<int64_t>(gap));
      kind.scheduled = true;
    }
    if (kind.due < of(earliest).due) {
      earliest = which;
    }
  }
  PlannedSlice slice;
  slice.kind = earliest;
  slice.begin = of(earliest).due;
  slice.time = of(earliest).time;
  if (earliest == SliceKind::kAll && is_bounded() && of(earliest).cost == 0) {
    slice.most_bytes = kFirstBytes;
  }
  if (earliest == SliceKind::kFocus) {
    slice.functions.which = WatchedFunctions::Which::kOnly;
    for (const auto& [entry, heat] : heat_) {
      slice.functions.entries.push_back(entry);
    }
  } else if (earliest == SliceKind::kCold) {
    slice.most_bytes = std::max(static_cast<uint64_t>(bytes_), kLeastBytes);
    slice.functions.which = WatchedFunctions::Which::kBut;
    for (const auto& [entry, rest] : rests_) {
      if (rest.until > cold_slices_ || rest.quiet > all_slices_) {
        slice.functions.entries.push_back(entry);
      }
    }
  }
  return slice;
}

void Plan::learn(const WatchedSlice& slice) {
  now_ = std::max(now_, slice.ended);
  Kind& kind = of(slice.kind);
  kind.scheduled = false;
  const double cost = std::max(1.0, count(slice.cost));
  const double length = std::max(1.0, count(slice.watched));
  kind.length = kind.cost == 0 ? length : kind.length * (1 - kNew) + length * kNew;
  kind.cost = kind.cost == 0 ? cost : kind.cost * (1 - kNew) + cost * kNew;
  learn_length(slice, &kind);
  if (slice.kind == SliceKind::kAll) {
    const auto bytes = static_cast<double>(slice.bytes);
    bytes_ = bytes_ == 0 ? bytes : bytes_ * (1 - kNew) + bytes * kNew;
  }
  learn_heat(slice);
  learn_rest(slice);
}

void Plan::learn_length(const WatchedSlice& slice, Kind* kind) const {
  if (!is_bounded() || (slice.kind != SliceKind::kAll && slice.kind != SliceKind::kFocus)) {
    return;
  }
  constexpr double kMostShorter = 1.0 / 16;
  constexpr double kMostLonger = 4;
  constexpr double kSecond = 1e6;
  const double most =
      std::max(count(kLittle), options_.max_overhead * rate_ * kind->part * kSecond);
  const bool too_short = 2 * slice.cut_units > slice.units;
  const double longer =
      too_short ? kMostLonger
                : std::clamp(most / std::max(1.0, count(slice.cost)), kMostShorter, kMostLonger);
  const auto time = microseconds(static_cast<int64_t>(count(kind->time) * longer));
  kind->time = std::clamp(time, std::min(kShortest, options_.slice), options_.slice);
}

void Plan::leave_out(SliceKind kind, microseconds ended) {
  now_ = std::max(now_, ended);
  of(kind).scheduled = false;
}

void Plan::learn_heat(const WatchedSlice& slice) {
  if (slice.kind == SliceKind::kAll) {
    for (auto& [entry, heat] : heat_) {
      heat /= 2;
    }
    std::erase_if(heat_, [](const auto& function) { return function.second < kKept; });
  }
  for (const uint64_t entry : slice.met) {
    if (options_.focus) {
      heat_[entry] = 1;
    }
  }
}

void Plan::learn_rest(const WatchedSlice& slice) {
  if (!options_.cold) {
    return;
  }
  const bool was_cold = slice.kind == SliceKind::kCold;
  cold_slices_ += was_cold ? 1 : 0;
  all_slices_ += slice.kind == SliceKind::kAll ? 1 : 0;
  for (auto& [entry, rest] : rests_) {
    const bool shown = std::binary_search(slice.shown.begin(), slice.shown.end(), entry);
    if (was_cold && !shown && rest.until < cold_slices_ && rest.quiet <= all_slices_) {
      rest.length = std::max(rest.length / 2, 1U);
    }
  }
  for (const uint64_t entry : slice.shown) {
    const auto [found, is_new] = rests_.try_emplace(entry);
    Rest& rest = found->second;
    if (!is_new && rest.until <= cold_slices_) {
      rest.length = std::min(rest.length * 2, kMostRest);
    }
    rest.until = cold_slices_ + rest.length;
    if (slice.kind == SliceKind::kAll) {
      rest.quiet = all_slices_ + kQuiet;
    }
  }
}

}  // namespace tsomon
