#include "offline/completion.h"

#include <utility>

namespace tsomon {
namespace {

constexpr uint64_t kStepsPerRefusal = 50;  // an execution was looked for

}  // namespace

// Nodes order units and units order nodes until neither says more.
bool Completion::propagate() {
  if (classes_ == nullptr) {
    return true;
  }
  for (bool changed = true; changed;) {
    changed = false;
    // Out of bounds, what follows does not matter any more.
    for (size_t i = 0; i < problem_.open.size() && !model_.order.exhausted(); ++i) {
      const uint32_t a = class_of_[problem_.open[i].from];
      const uint32_t b = class_of_[problem_.open[i].to];
      if (a == b) {
        continue;
      }
      const bool forward = model_.implied(model_.forward[i]);
      if (forward || model_.implied(model_.backward[i])) {
        const uint32_t from = forward ? a : b;
        const uint32_t to = forward ? b : a;
        if (!classes_->reaches(from, to)) {
          if (!classes_->insert(from, to)) {
            return false;
          }
          changed = true;
        }
      } else if (const bool in_order = classes_->reaches(a, b);
                 in_order || classes_->reaches(b, a)) {
        // One alternative that is left has to be.
        const std::vector<Edge>* left = nullptr;
        size_t count = 0;
        for (const auto& alternative : model_.direction(i, in_order)) {
          if (!model_.impossible(alternative)) {
            left = &alternative;
            ++count;
          }
        }
        if (count == 0 || (count == 1 && !model_.insert(*left))) {
          return false;
        }
        changed = changed || count == 1;
      }
    }
  }
  return true;
}

Answer Completion::run(uint64_t* steps, uint64_t max_steps) {
  decisions_.clear();
  const size_t nodes = model_.order.mark();
  const size_t classes = classes_ == nullptr ? 0 : classes_->mark();
  const Answer answer = search(steps, max_steps);
  model_.order.undo(nodes);
  if (classes_ != nullptr) {
    classes_->undo(classes);
  }
  return answer;
}

bool Completion::try_next() {
  Decision& last = decisions_.back();
  const std::vector<Edge> alternative = std::move(last.alternatives.back());
  last.alternatives.pop_back();
  return model_.insert(alternative) && propagate();
}

Answer Completion::search(uint64_t* steps, uint64_t max_steps) {
  bool fits = propagate();
  size_t at = 0;
  while (true) {
    if (fits) {
      if (model_.order.exhausted()) {
        return Answer::kUnknown;  // not all that follows has been drawn
      }
      while (at < problem_.open.size() && !is_open(at)) {
        ++at;
      }
      if (at == problem_.open.size()) {
        found_.clear();
        for (size_t i = 0; i < problem_.open.size(); ++i) {
          found_.push_back(model_.implied(model_.forward[i]));
        }
        if (is_valid(problem_, found_)) {
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
      Decision decision{at, model_.order.mark(), classes_ == nullptr ? 0 : classes_->mark(), {}};
      const bool hint = problem_.hint[at] != 0;
      for (const bool direction : {!hint, hint}) {
        const auto& alternatives = model_.direction(at, direction);
        decision.alternatives.insert(decision.alternatives.end(), alternatives.rbegin(),
                                     alternatives.rend());
      }
      decisions_.push_back(std::move(decision));
      fits = try_next();
      continue;
    }
    while (!decisions_.empty() && decisions_.back().alternatives.empty()) {
      decisions_.pop_back();
    }
    if (decisions_.empty()) {
      return Answer::kNo;
    }
    const Decision& last = decisions_.back();
    model_.order.undo(last.nodes);
    if (classes_ != nullptr) {
      classes_->undo(last.classes);
    }
    at = last.edge;
    fits = try_next();
  }
}

}  // namespace tsomon
