#include "offline/check/completion.h"

#include <numeric>
#include <utility>

#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr uint64_t kStepsPerRefusal = 50;  // an execution was looked for

}  // namespace

// Nodes order units, units order nodes, and values order nodes, until none says more.
bool Completion::propagate() {
  if (classes_ == nullptr) {
    return model_.draw_values();
  }
  for (bool changed = true; changed && !exhausted();) {
    changed = false;
    if (!model_.draw_values()) {
      return false;
    }
    // Out of bounds, what follows does not matter any more.
    for (size_t at = 0; at < unsettled_ && !exhausted();) {
      spend(4);
      const uint32_t i = edges_[at];
      const uint32_t a = class_of_[problem_.open[i].from];
      const uint32_t b = class_of_[problem_.open[i].to];
      bool settled = a == b;
      if (!settled) {
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
          settled = true;
        } else if (const bool in_order = classes_->reaches(a, b);
                   in_order || classes_->reaches(b, a)) {
          if (!model_.insert_last(model_.direction(i, in_order), &settled)) {
            return false;
          }
          changed = changed || settled;
        }
      }
      if (settled) {
        std::swap(edges_[at], edges_[--unsettled_]);
      } else {
        ++at;
      }
    }
  }
  return true;
}

Answer Completion::run(uint64_t* steps, uint64_t max_steps) {
  decisions_.clear();
  edges_.resize(problem_.open.size());
  std::iota(edges_.begin(), edges_.end(), 0U);
  unsettled_ = edges_.size();
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
  return model_.insert(*last.ways[--last.untried]) && propagate();
}

Answer Completion::search(uint64_t* steps, uint64_t max_steps) {
  bool fits = propagate();
  size_t at = 0;
  while (true) {
    if (fits) {
      if (exhausted()) {
        return Answer::kUnknown;
      }
      while (at < problem_.open.size() && !is_open(at)) {
        spend(2);
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
      Decision decision{at, model_.order.mark(), classes_ == nullptr ? 0 : classes_->mark(),
                        unsettled_};
      const bool hint = problem_.hint[at] != 0;
      for (const bool direction : {!hint, hint}) {
        const auto& ways = model_.direction(at, direction);
        for (size_t i = ways.size(); i-- > 0;) {
          decision.ways[decision.untried++] = ways.begin() + i;
        }
      }
      decisions_.push_back(decision);
      fits = try_next();
      continue;
    }
    while (!decisions_.empty() && decisions_.back().untried == 0) {
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
    unsettled_ = last.unsettled;
    at = last.edge;
    fits = try_next();
  }
}

}  // namespace tsomon
