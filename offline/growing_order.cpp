#include "offline/growing_order.h"

namespace tsomon {

GrowingOrder::GrowingOrder(const PartialOrder& order)
    : size_(order.size()),
      words_((order.size() + 63) / 64),
      after_(size_ * words_, 0),
      before_(size_ * words_, 0),
      implications_(size_) {
  for (uint32_t i = 0; i < size_; ++i) {
    order.for_each_after(i, [&](uint32_t j) {
      after_[row(i) + j / 64] |= uint64_t{1} << (j % 64);
      before_[row(j) + i / 64] |= uint64_t{1} << (i % 64);
    });
  }
}

PartialOrder GrowingOrder::current() const {
  PartialOrder order(size_);
  for (uint32_t i = 0; i < size_; ++i) {
    order.set_row(i, {after_.data() + row(i), words_});
  }
  return order;
}

bool GrowingOrder::merge(bool before, uint32_t target, uint32_t source) {
  std::vector<uint64_t>& rows = before ? before_ : after_;
  bool changed = false;
  work_ += words_;
  for (size_t word = 0; word < words_; ++word) {
    const size_t at = row(target) + word;
    const uint64_t merged = rows[at] | rows[row(source) + word];
    if (merged != rows[at]) {
      trail_.push_back({before, at, rows[at]});
      rows[at] = merged;
      changed = true;
    }
  }
  return changed;
}

void GrowingOrder::draw(uint32_t element) {
  for (const Implication& implication : implications_[element]) {
    if (reaches(element, implication.target) &&
        !reaches(implication.then.from, implication.then.to)) {
      pending_.push_back(implication.then);
    }
  }
}

bool GrowingOrder::drain() {
  while (!pending_.empty()) {
    const Edge edge = pending_.back();
    pending_.pop_back();
    if (reaches(edge.from, edge.to)) {
      continue;
    }
    if (reaches(edge.to, edge.from)) {
      pending_.clear();
      return false;
    }
    // What one end knows of the other, it knows of all behind that.
    for_each_before(edge.from, [&](uint32_t i) {
      ++work_;
      if (!reaches(i, edge.to) && merge(false, i, edge.to)) {
        draw(i);
      }
    });
    for_each_after(edge.to, [&](uint32_t j) {
      ++work_;
      if (((before_[row(j) + edge.from / 64] >> (edge.from % 64)) & 1) == 0) {
        merge(true, j, edge.from);
      }
    });
  }
  return true;
}

bool GrowingOrder::settle() {
  for (uint32_t i = 0; i < size_; ++i) {
    draw(i);
  }
  return drain();
}

bool GrowingOrder::insert(uint32_t from, uint32_t to) {
  pending_.push_back({from, to});
  return drain();
}

void GrowingOrder::undo(size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) {
    const Change& change = trail_.back();
    (change.before ? before_ : after_)[change.word] = change.old;
  }
}

}  // namespace tsomon
