#include "offline/linearizability/container.h"

#include <algorithm>

namespace tsomon::linearizability {
namespace {

bool at_front(Step step) {
  return step == Step::kPushFront || step == Step::kPopFront || step == Step::kPeekFront;
}

}  // namespace

bool Line::apply(const Op& op) {
  const bool front = at_front(op.step);
  if (is_push(op.step)) {
    put(front, op.a);
    return true;
  }
  if (op.step == Step::kIsEmpty) {
    return values_.empty();
  }
  if (values_.empty()) {
    return false;
  }
  const HistoryValue value = front ? values_.front() : values_.back();
  if (!op.pending && value != op.a) {
    return false;
  }
  if (is_pop(op.step)) {
    drop(front);
    if (op.pending) {
      taken_.push_back(value);
    }
  }
  return true;
}

void Line::undo(const Op& op) {
  const bool front = at_front(op.step);
  if (is_push(op.step)) {
    drop(front);
  } else if (is_pop(op.step)) {
    put(front, op.pending ? taken_.back() : op.a);
    if (op.pending) {
      taken_.pop_back();
    }
  }
}

uint64_t Line::hash() const {
  constexpr size_t kEnds = 4;
  uint64_t hash = mix(values_.size() + 1);
  const size_t ends = std::min(kEnds, values_.size());
  for (size_t i = 0; i < ends; ++i) {
    hash = mix(hash ^ static_cast<uint64_t>(values_[i]));
    hash = mix(hash ^ static_cast<uint64_t>(values_[values_.size() - 1 - i]));
  }
  return hash;
}

bool PriorityQueue::apply(const Op& op) {
  if (is_push(op.step)) {
    values_.insert(op.a);
    hash_ += mix(static_cast<uint64_t>(op.a));
    return true;
  }
  if (op.step == Step::kIsEmpty) {
    return values_.empty();
  }
  if (values_.empty()) {
    return false;
  }
  const auto at = at_front(op.step) ? std::prev(values_.end()) : values_.begin();
  const HistoryValue value = *at;
  if (!op.pending && value != op.a) {
    return false;
  }
  if (is_pop(op.step)) {
    values_.erase(at);
    hash_ -= mix(static_cast<uint64_t>(value));
    if (op.pending) {
      taken_.push_back(value);
    }
  }
  return true;
}

void PriorityQueue::undo(const Op& op) {
  if (is_push(op.step)) {
    values_.erase(values_.find(op.a));
    hash_ -= mix(static_cast<uint64_t>(op.a));
  } else if (is_pop(op.step)) {
    const HistoryValue value = op.pending ? taken_.back() : op.a;
    if (op.pending) {
      taken_.pop_back();
    }
    values_.insert(value);
    hash_ += mix(static_cast<uint64_t>(value));
  }
}

}  // namespace tsomon::linearizability
