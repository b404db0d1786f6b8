#include "offline/completion.h"

namespace tsomon {
namespace {

constexpr uint64_t kStepsPerRefusal = 50;  // an execution was looked for

}  // namespace

bool Completion::is_open(size_t edge) const {
  const MixedEdge& open = problem_.open[edge];
  return !events_.reaches(open.from, open.to) && !events_.reaches(open.to, open.from);
}

bool Completion::orient(size_t edge, bool forward) {
  const MixedEdge& open = problem_.open[edge];
  return forward ? events_.insert(open.from, open.to) : events_.insert(open.to, open.from);
}

// Events order units and units order events until neither says more.
bool Completion::propagate() {
  if (classes_ == nullptr) {
    return true;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const MixedEdge& open : problem_.open) {
      const uint32_t a = class_of_[open.from];
      const uint32_t b = class_of_[open.to];
      if (a == b) {
        continue;
      }
      const bool forward = events_.reaches(open.from, open.to);
      if (forward || events_.reaches(open.to, open.from)) {
        const uint32_t from = forward ? a : b;
        const uint32_t to = forward ? b : a;
        if (!classes_->reaches(from, to)) {
          if (!classes_->insert(from, to)) {
            return false;
          }
          changed = true;
        }
        if (classes_->reaches(to, from)) {
          return false;
        }
      } else if (const bool in_order = classes_->reaches(a, b);
                 in_order || classes_->reaches(b, a)) {
        if (!(in_order ? events_.insert(open.from, open.to) : events_.insert(open.to, open.from))) {
          return false;
        }
        changed = true;
      }
    }
  }
  return true;
}

Answer Completion::run(uint64_t* steps, uint64_t max_steps) {
  decisions_.clear();
  const size_t events = events_.mark();
  const size_t classes = classes_ == nullptr ? 0 : classes_->mark();
  const Answer answer = search(steps, max_steps);
  events_.undo(events);
  if (classes_ != nullptr) {
    classes_->undo(classes);
  }
  return answer;
}

Answer Completion::search(uint64_t* steps, uint64_t max_steps) {
  bool fits = propagate();
  size_t at = 0;
  while (true) {
    if (fits) {
      while (at < problem_.open.size() && !is_open(at)) {
        ++at;
      }
      if (at == problem_.open.size()) {
        found_.clear();
        for (const MixedEdge& open : problem_.open) {
          found_.push_back(events_.reaches(open.from, open.to));
        }
        if (!problem_.accept || problem_.accept(found_)) {
          return Answer::kYes;
        }
        fits = false;
        *steps += kStepsPerRefusal;
        if (*steps > max_steps) {
          return Answer::kUnknown;
        }
        continue;
      }
      if (++*steps > max_steps) {
        return Answer::kUnknown;
      }
      decisions_.push_back({at, events_.mark(), classes_ == nullptr ? 0 : classes_->mark(), true});
      fits = orient(at, problem_.hint[at] != 0) && propagate();
      continue;
    }
    while (!decisions_.empty() && !decisions_.back().first) {
      decisions_.pop_back();
    }
    if (decisions_.empty()) {
      return Answer::kNo;
    }
    Decision& last = decisions_.back();
    events_.undo(last.events);
    if (classes_ != nullptr) {
      classes_->undo(last.classes);
    }
    last.first = false;
    at = last.edge;
    fits = orient(at, problem_.hint[at] == 0) && propagate();
  }
}

}  // namespace tsomon
