#include "online/order/order_list.h"

#include <algorithm>

#include <fmt/format.h>

namespace tsomon {

void OrderList::grow(Id bound) {
  if (bound > labels_.size()) {
    labels_.resize(bound, 0);
    links_.resize(bound);
  }
}

void OrderList::move_after(Id place, std::span<const Id> ids) {
  unlink(ids);
  link(place, links_[place].next, ids);
}

void OrderList::move_before(Id place, std::span<const Id> ids) {
  unlink(ids);
  link(links_[place].prev, place, ids);
}

void OrderList::unlink(std::span<const Id> ids) {
  for (const Id id : ids) {
    unlink(id);
  }
}

// `front` and `behind` are neighbours.
void OrderList::link(Id front, Id behind, std::span<const Id> ids) {
  if (ids.empty()) {
    return;
  }
  Id at = front;
  for (const Id id : ids) {
    links_[at].next = id;
    links_[id].prev = at;
    at = id;
  }
  links_[at].next = behind;
  links_[behind].prev = at;
  label_run(ids.front(), at, ids.size());
}

// Labels for `count` linked elements in a row, between those of their neighbours.
void OrderList::label_run(Id first, Id last, size_t count) {
  const Id front = links_[first].prev;
  const Id behind = links_[last].next;
  uint64_t label = 0;
  uint64_t step = stride();
  if (behind == kEnd) {
    // Not below a label that was in use: erased places stay unused.
    if ((kMaxLabel - last_label_) >> stride_bits_ < count) {
      spread_all();
      return;
    }
    label = last_label_;
    last_label_ += stride() * count;
  } else if (front == kEnd) {
    if ((labels_[behind] - 1) >> stride_bits_ < count) {
      spread_all();
      return;
    }
    label = labels_[behind] - stride() * (count + 1);
  } else {
    const uint64_t gap = labels_[behind] - labels_[front];
    if (gap <= count) {
      spread_around(first, last, count);
      return;
    }
    label = labels_[front];
    step = gap / (count + 1);
  }
  for (Id id = first;; id = links_[id].next) {
    label += step;
    labels_[id] = label;
    if (id == last) {
      return;
    }
  }
}

// Spreads the labels of the smallest aligned window around the run first..last (which has no labels
// yet) that is empty enough: 4^j labels, at most 2^j elements.
void OrderList::spread_around(Id first, Id last, size_t count) {
  const uint64_t center = labels_[links_[first].prev];
  for (unsigned j = 1; j < 32; ++j) {
    const uint64_t width = uint64_t{1} << (2 * j);
    const uint64_t base = center & ~(width - 1);
    for (Id id = links_[first].prev; id != kEnd && labels_[id] >= base;) {
      first = id;
      ++count;
      id = links_[id].prev;
    }
    for (Id id = links_[last].next; id != kEnd && labels_[id] - base < width;) {
      last = id;
      ++count;
      id = links_[id].next;
    }
    if (count > uint64_t{1} << j) {
      continue;
    }
    const uint64_t step = width / (count + 1);
    uint64_t label = base;
    for (Id id = first;; id = links_[id].next) {
      label += step;
      labels_[id] = label;
      if (id == last) {
        break;
      }
    }
    last_label_ = std::max(last_label_, label);
    return;
  }
  spread_all();
}

void OrderList::spread_all() {
  size_t count = 0;
  for (Id id = first(); id != kEnd; id = next(id)) {
    ++count;
  }
  // At least a quarter of all labels stays free at either end.
  const uint64_t step = std::min(stride(), kMiddle / (count + 1));
  uint64_t label = kMiddle - step / 2 * count;
  for (Id id = first(); id != kEnd; id = next(id)) {
    label += step;
    labels_[id] = label;
  }
  last_label_ = label;
}

std::string OrderList::check_invariants() const {
  size_t linked = 0;
  uint64_t label = 0;
  Id at = kEnd;
  for (Id id = first(); id != kEnd; id = next(id)) {
    if (id >= labels_.size() || ++linked > labels_.size()) {
      return "the order does not end";
    }
    if (prev(id) != at) {
      return fmt::format("element {} is behind {}, which does not lead to it", id, at);
    }
    if (labels_[id] <= label) {
      return fmt::format("the label of {} is not above that of {}", id, at);
    }
    label = labels_[id];
    at = id;
  }
  if (last() != at) {
    return fmt::format("the last element is {}, not {}", at, last());
  }
  if (label > last_label_) {
    return fmt::format("the label of {} is above the highest", at);
  }
  for (const uint64_t other : labels_) {
    linked -= other != 0 ? 1 : 0;
  }
  return linked == 0 ? "" : "an element with a label is not in the order";
}

}  // namespace tsomon
