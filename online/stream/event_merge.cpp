#include "online/stream/event_merge.h"

#include <algorithm>
#include <utility>

#include "tso/support/result.h"

namespace tsomon {

void EventMerge::grow() {
  leaves_ = leaves_ == 0 ? 4 : 2 * leaves_;
  keys_.resize(leaves_);
  winners_.assign(2 * leaves_, 0);
  for (size_t i = 0; i < leaves_; ++i) {
    winners_[leaves_ + i] = static_cast<Stream>(i);
  }
  for (size_t node = leaves_ - 1; node != 0; --node) {
    const Stream left = winners_[2 * node];
    const Stream right = winners_[2 * node + 1];
    winners_[node] = keys_[right] < keys_[left] ? right : left;
  }
}

EventMerge::Stream EventMerge::open(uint64_t rank, int64_t since) {
  Stream stream = 0;
  if (!free_.empty()) {
    stream = free_.back();
    free_.pop_back();
  } else {
    stream = static_cast<Stream>(states_.size());
    states_.emplace_back();
    if (states_.size() > leaves_) {
      grow();
    }
  }
  State& state = states_[stream];
  state.rank = rank;
  state.time = state.promised = since;
  state.first_item = state.next_event = 0;
  state.open = true;
  state.closed = false;
  ++open_;
  update(stream);
  return stream;
}

void EventMerge::push(Stream stream, EventBlock&& block) {
  State& state = states_[stream];
  TSOMON_CHECK(state.open && !state.closed, "events of a stream that is not open");
  if (block.events.empty()) {
    spare_.push_back(std::move(block));
    return;
  }
  state.promised = std::max(state.promised, block.events.back().lo);
  const bool was_empty = !state.has_item();
  state.items.push_back({std::move(block), {}, false});
  ++statistics_.held;
  if (was_empty) {
    update(stream);
  }
}

void EventMerge::lose(Stream stream, const EventLoss& loss) {
  State& state = states_[stream];
  TSOMON_CHECK(state.open && !state.closed, "events of a stream that is not open");
  state.items.push_back({{}, loss, true});
  update(stream);
}

void EventMerge::promise(Stream stream, int64_t time) {
  State& state = states_[stream];
  if (time > state.promised) {
    state.promised = time;
    if (!state.has_item()) {
      update(stream);
    }
  }
}

void EventMerge::close(Stream stream) {
  State& state = states_[stream];
  TSOMON_CHECK(state.open && !state.closed, "a stream is closed twice");
  state.closed = true;
  if (!state.has_item()) {
    update(stream);
  }
}

void EventMerge::update(Stream stream) {
  State& state = states_[stream];
  Key& key = keys_[stream];
  if (state.has_item()) {
    const Item& item = state.items[state.first_item];
    // A loss has no time: it is due when everything before it was given out.
    const int64_t time = item.is_loss ? kTimeMin : item.block.events[state.next_event].lo;
    key = {std::max(state.time, time), state.rank};
  } else if (state.closed) {
    if (state.open) {
      state.open = false;
      --open_;
      free_.push_back(stream);
    }
    key = {};
  } else {
    key = {std::max(state.time, state.promised), state.rank};
  }
  for (size_t node = (leaves_ + stream) / 2; node != 0; node /= 2) {
    const Stream left = winners_[2 * node];
    const Stream right = winners_[2 * node + 1];
    winners_[node] = keys_[right] < keys_[left] ? right : left;
  }
}

// The smallest key of all others: those that the winner beat on its way up.
EventMerge::Key EventMerge::runner_up(Stream winner) const {
  Key best;
  for (size_t node = leaves_ + winner; node != 1; node /= 2) {
    const Key& key = keys_[winners_[node ^ 1]];
    best = key < best ? key : best;
  }
  return best;
}

void EventMerge::pop_item(State& state) {
  Item& item = state.items[state.first_item++];
  state.next_event = 0;
  if (!item.is_loss) {
    item.block.clear();
    spare_.push_back(std::move(item.block));
    --statistics_.held;
  }
  if (state.first_item == state.items.size()) {
    state.items.clear();
    state.first_item = 0;
  } else if (state.first_item >= 16 && 2 * state.first_item >= state.items.size()) {
    state.items.erase(state.items.begin(),
                      state.items.begin() + static_cast<ptrdiff_t>(state.first_item));
    state.first_item = 0;
  }
}

// Copies events of the first item while they are before `until`, at least one.
void EventMerge::copy(State& state, const Key& until, EventBlock& out, size_t max_events) {
  const EventBlock& block = state.items[state.first_item].block;
  const size_t begin = state.next_event;
  const size_t limit = std::min(block.events.size(), begin + std::max<size_t>(max_events, 1));
  int64_t high = high_;
  int64_t time = state.time;
  uint64_t late = 0;
  bool extras = false;
  size_t end = begin;
  do {
    const Event& event = block.events[end];
    late += event.lo < high ? 1 : 0;
    high = std::max(high, event.lo);
    time = std::max(time, event.lo);
    extras |= event.has_extras();
    ++end;
  } while (end != limit && Key{std::max(time, block.events[end].lo), state.rank} < until);
  high_ = high;
  state.time = time;
  state.next_event = end;
  statistics_.late += late;
  statistics_.events += end - begin;

  const size_t first = out.events.size();
  out.events.insert(out.events.end(), block.events.begin() + static_cast<ptrdiff_t>(begin),
                    block.events.begin() + static_cast<ptrdiff_t>(end));
  if (!extras) {
    return;
  }
  for (size_t i = first; i != out.events.size(); ++i) {
    Event& event = out.events[i];
    if (event.has_extras()) {
      const auto from = block.extras.begin() + event.span_or_extra;
      event.span_or_extra = static_cast<uint32_t>(out.extras.size());
      out.extras.insert(out.extras.end(), from,
                        from + event.has_hi + event.has_read_value + event.has_write_value);
    }
  }
}

bool EventMerge::overtake() {
  if (statistics_.held <= max_held_ || !waiting_for()) {
    return false;
  }
  // As far as the block that ends first.
  Key until;
  for (Stream stream = 0; stream < states_.size(); ++stream) {
    const State& state = states_[stream];
    if (state.open && state.has_item()) {
      const Item& item = state.items[state.first_item];
      const int64_t last = item.is_loss ? state.time : item.block.events.back().lo;
      const Key key{std::max(last, keys_[stream].time), state.rank};
      until = key < until ? key : until;
    }
  }
  for (Stream stream = 0; stream < states_.size(); ++stream) {
    State& state = states_[stream];
    if (state.open && !state.has_item() && keys_[stream] < until) {
      // As if it had promised: what it brings below that is late.
      state.promised = std::max(state.promised, until.time + (until.time != kTimeMax ? 1 : 0));
      ++statistics_.overtaken;
      update(stream);
    }
  }
  return true;
}

bool EventMerge::next(EventBlock& out, std::vector<EventLoss>& losses, size_t max_events) {
  const size_t before = out.events.size();
  bool any_loss = false;
  while (open_ != 0 && out.events.size() - before < max_events) {
    const Stream winner = winners_[1];
    State& state = states_[winner];
    if (!state.has_item()) {
      break;
    }
    if (state.items[state.first_item].is_loss) {
      if (out.events.size() != before) {
        break;
      }
      const EventLoss loss = state.items[state.first_item].loss;
      losses.push_back(loss);
      any_loss = true;
      ++statistics_.losses;
      statistics_.lost += loss.events;
      pop_item(state);
    } else {
      copy(state, runner_up(winner), out, max_events - (out.events.size() - before));
      if (state.next_event == state.items[state.first_item].block.events.size()) {
        pop_item(state);
      }
    }
    update(winner);
  }
  return any_loss || out.events.size() != before;
}

std::optional<EventMerge::Stream> EventMerge::waiting_for() const {
  if (open_ == 0 || states_[winners_[1]].has_item()) {
    return std::nullopt;
  }
  return winners_[1];
}

EventBlock EventMerge::take_block() {
  if (spare_.empty()) {
    return {};
  }
  EventBlock block = std::move(spare_.back());
  spare_.pop_back();
  return block;
}

}  // namespace tsomon
