#include "monitor/explore/quiet_waits.h"

#include <algorithm>

namespace tsomon::explore {
namespace {

constexpr size_t kMaxWaits = 64;
constexpr size_t kMaxWays = 4;

bool comes_back(Program& program, Model model, const std::vector<Choice>& way) {
  Request request;
  request.model = model;
  request.policy = Policy::kContinue;
  request.prefix = way;
  const Run& run = program.run(request);
  return std::any_of(run.waiting.begin(), run.waiting.end(), [&](const Waiting& waiting) {
    return waiting.thread == way.back().thread && waiting.op == Op::kAnswer;
  });
}

}  // namespace

void QuietWaits::note(const Run& run) {
  std::vector<Choice> way;
  // By thread, how much of it ends with the thread's last step: the next one is its answer then.
  std::map<uint16_t, size_t> ends;
  for (const Step& step : run.steps) {
    if (step.waits) {
      continue;
    }
    if (step.op == Op::kAnswer && (step.read >> kSpurious & 1) != 0 &&
        (step.a >> kSpurious & 1) == 0 && waits_.size() <= kMaxWaits) {
      Wait& wait = waits_[static_cast<uint64_t>(step.initial)];
      wait.pc = step.pc;
      if (wait.ways.size() < kMaxWays) {
        const auto end = way.begin() + static_cast<ptrdiff_t>(ends[step.choice.thread]);
        wait.ways.emplace_back(way.begin(), end).push_back({step.choice.thread, 0, kSpurious});
      }
    }
    way.push_back(step.choice);
    if (step.choice.commit == 0) {
      ends[step.choice.thread] = way.size();
    }
  }
}

std::optional<uint64_t> QuietWaits::outside_loops(Program& program, Model model) const {
  if (waits_.size() > kMaxWaits) {
    return 0;
  }
  for (const auto& [state, wait] : waits_) {
    if (std::none_of(wait.ways.begin(), wait.ways.end(),
                     [&](const auto& way) { return comes_back(program, model, way); })) {
      return wait.pc;
    }
  }
  return std::nullopt;
}

}  // namespace tsomon::explore
