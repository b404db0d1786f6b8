#include "offline/check/growing_order.h"

#include <algorithm>
#include <array>

#include "tso/support/work.h"

namespace tsomon {
namespace {

using Block = std::array<uint64_t, 64>;

// Bit j of word i becomes bit i of word j: halves change places, then halves of these.
void transpose(Block* block) {
  uint64_t low = 0x00000000FFFFFFFFU;  // of each pair of groups, the lower one
  for (uint32_t width = 32; width != 0; width /= 2, low ^= low << width) {
    for (uint32_t i = 0; i < 64; i = (i + width + 1) & ~width) {
      uint64_t& one = (*block)[i];
      uint64_t& other = (*block)[i + width];
      const uint64_t moved = ((one >> width) ^ other) & low;
      one ^= moved << width;
      other ^= moved;
    }
  }
}

}  // namespace

GrowingOrder::GrowingOrder(const PartialOrder& order)
    : size_(order.size()),
      words_((order.size() + 63) / 64),
      after_(size_ * words_, 0),
      before_(size_ * words_, 0),
      implications_(size_) {
  for (uint32_t i = 0; i < size_; ++i) {
    const auto bits = order.row_of(i);
    std::copy(bits.begin(), bits.end(), after_.begin() + static_cast<ptrdiff_t>(row(i)));
  }
  // 64 rows at a time.
  Block block;
  for (uint32_t first = 0; first < size_; first += 64) {
    spend(128 * words_);
    for (size_t word = 0; word < words_; ++word) {
      for (uint32_t i = 0; i < 64; ++i) {
        block[i] = first + i < size_ ? after_[row(first + i) + word] : 0;
      }
      transpose(&block);
      for (uint32_t i = 0; i < 64 && word * 64 + i < size_; ++i) {
        before_[row(static_cast<uint32_t>(word * 64) + i) + first / 64] = block[i];
      }
    }
  }
}

PartialOrder GrowingOrder::current() const {
  spend(uint64_t{size_} * words_);
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
  spend(words_);
  for (size_t word = 0; word < words_; ++word) {
    const size_t at = row(target) + word;
    const uint64_t merged = rows[at] | rows[row(source) + word];
    if (merged != rows[at]) {
      if (settled_) {
        trail_.push_back({2 * at + (before ? 1 : 0), rows[at]});
      }
      rows[at] = merged;
      changed = true;
    }
  }
  return changed;
}

void GrowingOrder::draw(uint32_t element) {
  spend(implications_[element].size());
  for (const Implication& implication : implications_[element]) {
    if (reaches(element, implication.target) &&
        !reaches(implication.then.from, implication.then.to)) {
      pending_.push_back(implication.then);
    }
  }
}

bool GrowingOrder::drain() {
  while (!pending_.empty() && !exhausted()) {
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
      spend(1);
      if (!reaches(i, edge.to) && merge(false, i, edge.to)) {
        draw(i);
      }
    });
    for_each_after(edge.to, [&](uint32_t j) {
      ++work_;
      spend(1);
      if (((before_[row(j) + edge.from / 64] >> (edge.from % 64)) & 1) == 0) {
        merge(true, j, edge.from);
      }
    });
  }
  pending_.clear();
  return true;
}

bool GrowingOrder::settle() {
  for (uint32_t i = 0; i < size_; ++i) {
    draw(i);
  }
  settled_ = drain();
  return settled_;
}

bool GrowingOrder::insert(uint32_t from, uint32_t to) {
  pending_.push_back({from, to});
  return drain();
}

void GrowingOrder::undo(size_t mark) {
  spend(trail_.size() - std::min(mark, trail_.size()));
  for (; trail_.size() > mark; trail_.pop_back()) {
    const Change& change = trail_.back();
    (change.place % 2 != 0 ? before_ : after_)[change.place / 2] = change.old;
  }
}

}  // namespace tsomon
