#include "offline/explore/naive_search.h"

namespace tsomon::explore {
namespace {

bool is_enabled(const Step& step, Choice choice) {
  return (((choice.commit != 0 ? step.commits : step.enabled) >> choice.thread) & 1) != 0;
}

// Whether `choice` leaves the thread of the last execution while it could go on.
bool preempts(const Step& step, int last, Choice choice) {
  return choice.commit == 0 && last >= 0 && choice.thread != last &&
         is_enabled(step, {static_cast<uint16_t>(last), 0});
}

}  // namespace

std::optional<std::vector<Choice>> NaiveSearch::give() {
  size_t left = 0;
  for (const Frame& frame : stack_) {
    left += frame.others.size();
  }
  if (left < 2) {
    return std::nullopt;
  }
  std::vector<Choice> start;
  for (Frame& frame : stack_) {
    if (!frame.others.empty()) {
      start.push_back(frame.others.front());
      frame.others.erase(frame.others.begin());
      break;
    }
    start.push_back(frame.taken);
  }
  return start;
}

const Run& NaiveSearch::next() {
  Request request;
  request.model = model_;
  if (started_) {
    while (stack_.back().others.empty()) {
      stack_.pop_back();
    }
    stack_.back().taken = stack_.back().others.back();
    stack_.back().others.pop_back();
    for (const Frame& frame : stack_) {
      request.prefix.push_back(frame.taken);
    }
  } else {
    request.prefix = start_;
  }
  started_ = true;
  const Run& run = program_.run(request);
  int last = -1;
  uint32_t preemptions = 0;
  for (size_t i = 0; i < run.steps.size(); ++i) {
    const Step& step = run.steps[i];
    if (i >= stack_.size()) {
      Frame frame{step.choice, {}};
      // What else the given beginning could have done is searched by another.
      const uint16_t threads = i < start_.size() ? uint16_t{0} : uint16_t{kMaxThreads};
      for (uint16_t thread = threads; thread-- > 0;) {
        for (const uint16_t commit : {uint16_t{0}, uint16_t{1}}) {
          const Choice other{thread, commit};
          if (other == step.choice || !is_enabled(step, other)) {
            continue;
          }
          if (preemptions + (preempts(step, last, other) ? 1 : 0) > preemptions_) {
            bounded_ = true;
            continue;
          }
          frame.others.push_back(other);
        }
      }
      stack_.push_back(std::move(frame));
    }
    preemptions += preempts(step, last, step.choice) ? 1 : 0;
    last = step.choice.commit != 0 ? last : step.choice.thread;
  }
  while (!stack_.empty() && stack_.back().others.empty()) {
    stack_.pop_back();
  }
  return run;
}

}  // namespace tsomon::explore
