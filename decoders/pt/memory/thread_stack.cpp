#include "decoders/pt/memory/thread_stack.h"

#include <algorithm>
#include <limits>

namespace tsomon::pt {
namespace {

constexpr int64_t kHighest = std::numeric_limits<int64_t>::max() / 2;
constexpr int64_t kRedZone = 128;  // bytes below the stack pointer that are in use

int64_t place(SymbolicValue term) { return static_cast<int64_t>(term.offset); }

}  // namespace

void ThreadStack::restart(uint32_t node) {
  regions_.resize(1);
  regions_[0].node = node;
  regions_changed();
  regions_[0].words.words.clear();
  frames_.clear();
  frames_.push_back({0, kHighest, !options_.assumed});
  stack_ = 0;
  asks_ = !options_.assumed;
}

void ThreadStack::answer(std::optional<int64_t> return_address) {
  asks_ = false;
  if (return_address) {
    frames_.push_back({0, *return_address, false});
  }
}

void ThreadStack::regions_changed() {
  nodes_ = 0;
  last_node_ = regions_.back().node;
  last_region_ = regions_.size() - 1;
  for (const Region& region : regions_) {
    nodes_ |= uint64_t{1} << (region.node & 63U);
  }
}

bool ThreadStack::is_region(uint32_t node) const {
  return std::any_of(regions_.begin(), regions_.end(),
                     [&](const Region& region) { return region.node == node; });
}

void ThreadStack::move_outside(SymbolicValue to, const SymbolicValues& terms) {
  if (owns(to.node)) {
    const size_t region = region_of(to.node);
    regions_.resize(region + 1);
    regions_changed();
    while (frames_.size() > 1 && frames_.back().region > region) {
      frames_.pop_back();
    }
    stack_ = place(to);
    return;
  }
  const SymbolicValues::Node made = terms.node(to.node);
  const bool below =
      to.node != 0 && to.offset == 0 &&
      (made.operation == x86::Operation::kAnd || made.operation == x86::Operation::kSub) &&
      owns(made.a.node) && regions_.size() < 64;
  if (!below) {
    restart(to.node);
    stack_ = place(to);
    return;
  }
  // What was left below the stack pointer is written over.
  const bool exposed = frame_of(regions_.size() - 1, stack_).exposed;
  regions_.back().stack = stack_;
  const int64_t kept = regions_.back().words.index((stack_ >> 2) - 1);
  auto& words = regions_.back().words.words;
  if (kept >= 0 && kept < static_cast<int64_t>(words.size())) {
    words.resize(static_cast<size_t>(kept));
  }
  Region region;
  region.node = to.node;
  region.words.above = kAboveOthers;
  regions_.push_back(std::move(region));
  regions_changed();
  frames_.push_back({static_cast<uint32_t>(regions_.size() - 1), kHighest, exposed});
  stack_ = 0;
}

void ThreadStack::call(int64_t return_address) {
  const auto region = static_cast<uint32_t>(regions_.size() - 1);
  while (frames_.size() > 1 && frames_.back().region == region &&
         frames_.back().top <= return_address) {
    frames_.pop_back();
  }
  frames_.push_back({region, return_address, false});
}

void ThreadStack::leave(int64_t return_address) {
  const auto region = static_cast<uint32_t>(regions_.size() - 1);
  while (frames_.size() > 1 && frames_.back().region == region &&
         frames_.back().top <= return_address) {
    if (frames_.back().exposed) {
      regions_.back().words.forget(stack_ - kRedZone, static_cast<uint64_t>(std::max<int64_t>(
                                                          return_address - stack_ + kRedZone, 0)));
    }
    frames_.pop_back();
  }
  asks_ = frames_.size() == 1 && !options_.assumed;
}

SymbolicValue ThreadStack::load(SymbolicValue at, unsigned size, SymbolicValues& terms) {
  const size_t region = region_of(at.node);
  SymbolicMemory<Storage>& words = regions_[region].words;
  const Frame& frame = frame_of(region, place(at));
  const SymbolicWord* word = words.get(place(at), size);
  if (word != nullptr) {
    const bool own = !frame.exposed || word->pushed || (options_.alone && word->epoch == epoch_);
    if (own) {
      SymbolicValue value = terms.resolve(word->value);
      value = size < word->size ? terms.cut(value, size) : value;
      value.via = value.via | kViaStack;
      return value;
    }
  }
  SymbolicValue leaf = terms.leaf(size);
  leaf.via = kViaStack;
  if ((!frame.exposed || options_.alone) && (word != nullptr || !words.any(place(at), size))) {
    if (SymbolicWord* kept = words.put(place(at), size, leaf)) {
      kept->epoch = epoch_;
    }
  }
  return leaf;
}

void ThreadStack::store(SymbolicValue at, unsigned size, SymbolicValue value, bool pushed,
                        SymbolicValues& terms) {
  value = terms.cut(value, size);
  const size_t region = region_of(at.node);
  const Frame& frame = frame_of(region, place(at));
  if (frame.exposed && !pushed) {
    leak(value);
  }
  if (SymbolicWord* word = regions_[region].words.put(place(at), size, value)) {
    word->epoch = epoch_;
    word->pushed = pushed;
  } else {
    leak(value);
  }
}

void ThreadStack::store_unknown(SymbolicValue at, uint64_t size) {
  regions_[region_of(at.node)].words.forget(place(at), size);
}

void ThreadStack::forget_all() {
  for (Region& region : regions_) {
    region.words.words.clear();
  }
}

void ThreadStack::store_around(SymbolicValue at) {
  const size_t region = region_of(at.node);
  const Frame& frame = frame_of(region, place(at));
  SymbolicMemory<Storage>& words = regions_[region].words;
  const int64_t top = std::min(frame.top, kAbove);
  // Of its own frame, and of those below where the object's start may lie outside of the pointer.
  for (int64_t unit = words.from((std::min(place(at), stack_) - kRedZone) >> 2); unit < top >> 2;
       ++unit) {
    SymbolicWord* word = regions_[region].words.find(unit);
    if (word != nullptr && word->size != 0 && word->size != SymbolicWord::kTail && !word->pushed) {
      regions_[region].words.forget(unit * 4, 4);
    }
  }
}

void ThreadStack::expose(Frame& frame) {
  if (frame.exposed) {
    return;
  }
  frame.exposed = true;
  // What it holds can be read through the pointer.
  const uint32_t region = frame.region;
  const int64_t top = std::min(frame.top, kAbove);
  const size_t inner = static_cast<size_t>(&frame - frames_.data()) + 1;
  const int64_t bottom = inner < frames_.size() && frames_[inner].region == region
                             ? frames_[inner].top + 8
                         : region + 1 == regions_.size() ? stack_ - kRedZone
                                                         : regions_[region].stack - kRedZone;
  const SymbolicMemory<Storage>& words = regions_[region].words;
  const int64_t from = words.from(bottom >> 2);
  // Leaks change what is pushed, and where it is not; the words stay where they are.
  for (int64_t unit = words.upto((top >> 2) - 1); unit >= from; --unit) {
    const SymbolicWord& word = words.words[static_cast<size_t>(words.index(unit))];
    if (word.size == 8 && !word.pushed) {
      leak(word.value);
    }
  }
}

void ThreadStack::leak(SymbolicValue pointer) {
  if (!owns(pointer.node)) {
    return;
  }
  const size_t region = region_of(pointer.node);
  if (SymbolicWord* word = regions_[region].words.find(place(pointer) >> 2)) {
    if (word->size == SymbolicWord::kTail) {
      word = regions_[region].words.find((place(pointer) >> 2) - 1);
    }
    if (word != nullptr) {
      word->pushed = false;
    }
  }
  expose(frame_of(region, place(pointer)));
}

void ThreadStack::leak_content(SymbolicValue at, uint64_t size) {
  const size_t region = region_of(at.node);
  const int64_t from = regions_[region].words.from(place(at) >> 2);
  const int64_t to = regions_[region].words.upto((place(at) + static_cast<int64_t>(size) - 1) >> 2);
  for (int64_t unit = from; unit <= to; ++unit) {
    const SymbolicWord* word = regions_[region].words.find(unit);
    if (word != nullptr && word->size == 8) {
      leak(word->value);
    }
  }
}

void ThreadStack::forget_below(SymbolicValue stack) {
  SymbolicMemory<Storage>& words = regions_[region_of(stack.node)].words;
  const int64_t kept = words.index(((place(stack) - kRedZone) >> 2) - 1);
  if (kept >= 0 && kept < static_cast<int64_t>(words.words.size())) {
    words.words.resize(static_cast<size_t>(kept));
  }
}

}  // namespace tsomon::pt
