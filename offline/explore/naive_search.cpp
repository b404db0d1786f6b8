#include "offline/explore/naive_search.h"

#include <algorithm>
#include <iterator>
#include <utility>

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

std::vector<Choice> choices_of(const std::vector<Choice>& run, size_t length, Choice other) {
  std::vector<Choice> choices(run.begin(), run.begin() + static_cast<ptrdiff_t>(length));
  choices.push_back(other);
  return choices;
}

}  // namespace

std::optional<std::vector<Choice>> NaiveSearch::give() {
  if (left_.size() < 2) {
    return std::nullopt;
  }
  const auto shortest =
      std::min_element(left_.begin(), left_.end(),
                       [](const Beginning& a, const Beginning& b) { return a.length < b.length; });
  std::vector<Choice> start = choices_of(*shortest->run, shortest->length, shortest->other);
  left_.erase(shortest);
  return start;
}

void NaiveSearch::make_ready() {
  constexpr size_t kReady = 16;
  Request request;
  request.model = model_;
  if (!started_) {
    request.prefix = start_;
    ready_.push_back(request);
  }
  std::vector<Request> expected;
  while (started_ && expected.size() < kReady && !left_.empty()) {
    const Beginning next = std::move(left_.back());
    left_.pop_back();
    request.prefix = choices_of(*next.run, next.length, next.other);
    expected.push_back(request);
  }
  if (!expected.empty()) {
    program_.expect(expected);
    ready_.assign(std::make_move_iterator(expected.rbegin()),
                  std::make_move_iterator(expected.rend()));
  }
  started_ = true;
}

const Run& NaiveSearch::next() {
  if (ready_.empty()) {
    make_ready();
  }
  const Request request = std::move(ready_.back());
  ready_.pop_back();
  const Run& run = program_.run(request);
  add_others(run, request.prefix.size());
  return run;
}

// What else could have been done from step `from` on.
void NaiveSearch::add_others(const Run& run, size_t from) {
  auto choices = std::make_shared<std::vector<Choice>>();
  for (const Step& step : run.steps) {
    choices->push_back(step.choice);
  }
  int last = -1;
  uint32_t preemptions = 0;
  for (size_t i = 0; i < run.steps.size(); ++i) {
    const Step& step = run.steps[i];
    // The last step of the prefix is new; its other answers are, where it has the first.
    if (step.op == Op::kAnswer && step.choice.answer == 0 && i + 1 >= from) {
      for (uint8_t answer = 1; step.a >> answer != 0; ++answer) {
        if ((step.a >> answer & 1) != 0) {
          left_.push_back({choices, i, {step.choice.thread, 0, answer}});
        }
      }
    }
    for (uint16_t thread = i < from ? 0 : kMaxThreads; thread-- > 0;) {
      for (const uint8_t commit : {uint8_t{0}, uint8_t{1}}) {
        const Choice other{thread, commit};
        if ((thread == step.choice.thread && commit == step.choice.commit) ||
            !is_enabled(step, other)) {
          continue;
        }
        if (preemptions + (preempts(step, last, other) ? 1 : 0) > preemptions_) {
          bounded_ = true;
          continue;
        }
        left_.push_back({choices, i, other});
      }
    }
    preemptions += preempts(step, last, step.choice) ? 1 : 0;
    last = step.choice.commit != 0 ? last : step.choice.thread;
  }
}

}  // namespace tsomon::explore
