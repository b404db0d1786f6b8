#include "tso/model/lifetimes.h"

#include <algorithm>

namespace tsomon {
namespace {

uint32_t bit_of(uint64_t page) {
  return static_cast<uint32_t>((page * 0x9E3779B97F4A7C15U) >> 48U);
}

bool concerns(const Event& event) {
  constexpr uint32_t kLocks = kinds::kLocks | kinds::kHandOvers | kind_mask(EventKind::kCount) |
                              kind_mask(EventKind::kDestroy) | kind_mask(EventKind::kTry) |
                              kind_mask(EventKind::kRequest) | kind_mask(EventKind::kWait) |
                              kind_mask(EventKind::kNotify);
  return event.size != 0 ? is(event, kinds::kAccesses)
                         : event.address >> 32U != 0 && is(event, kLocks);
}

}  // namespace

uint16_t Lifetimes::generation(uint64_t address) const {
  const uint64_t number = address >> kPageBits;
  const uint32_t bit = bit_of(number);
  if ((any_[bit / 64] >> (bit % 64) & 1) == 0) {
    return 0;
  }
  const uint32_t* const place = places_.find(number);
  if (place == nullptr) {
    return 0;
  }
  const Page& found = pages_[*place];
  return found.each == nullptr ? found.all
                               : (*found.each)[address % (1U << kPageBits) >> kGranuleBits];
}

Lifetimes::Page& Lifetimes::page(uint64_t number) {
  const auto [place, is_new] = places_.try_emplace(number, static_cast<uint32_t>(pages_.size()));
  if (is_new) {
    pages_.emplace_back();
    const uint32_t bit = bit_of(number);
    any_[bit / 64] |= uint64_t{1} << (bit % 64);
  }
  return pages_[*place];
}

void Lifetimes::give_back(uint64_t begin, uint64_t end) {
  constexpr uint64_t kPage = uint64_t{1} << kPageBits;
  if (end - begin > kMost) {
    return;
  }
  const auto next = [](uint16_t generation) {
    return static_cast<uint16_t>(generation == kTags ? 1 : generation + 1);
  };
  for (uint64_t at = begin; at < end;) {
    Page& here = page(at >> kPageBits);
    const uint64_t first = at & ~(kPage - 1);
    const uint64_t stop = std::min(end, first + kPage);
    if (at == first && stop == first + kPage && here.each == nullptr) {
      here.all = next(here.all);
    } else {
      if (here.each == nullptr) {
        here.each = std::make_unique<Granules>();
        here.each->fill(here.all);
      }
      for (uint64_t granule = (at - first) >> kGranuleBits;
           granule <= (stop - 1 - first) >> kGranuleBits; ++granule) {
        (*here.each)[granule] = next((*here.each)[granule]);
      }
    }
    at = stop;
  }
}

void Lifetimes::follow_object(const EventBlock& block, const Event& event) {
  const uint64_t size = event.size != 0 ? event.size : block.write_value(event).value_or(0);
  if (event.kind() == EventKind::kFree && size == 0) {
    if (const auto object = live_.find(event.address); object != live_.end()) {
      give_back(object->first, object->second);
      live_.erase(object);
    }
    return;
  }
  const uint64_t end = std::max(event.address + size, event.address);
  auto object = live_.lower_bound(event.address);
  if (object != live_.begin() && std::prev(object)->second > event.address) {
    --object;
  }
  bool ended = false;
  while (object != live_.end() && object->first < end) {
    ended = true;
    give_back(object->first, object->second);
    object = live_.erase(object);
  }
  if (event.kind() == EventKind::kAllocate) {
    live_.emplace(event.address, end);
  } else if (!ended) {
    give_back(event.address, end);  // it was there before all this
  }
}

const EventBlock& Lifetimes::follow(const EventBlock& block, EventBlock* own) {
  constexpr uint32_t kObjects = kind_mask(EventKind::kAllocate) | kind_mask(EventKind::kFree);
  bool copied = false;
  for (size_t i = 0; i < block.events.size(); ++i) {
    const Event& event = block.events[i];
    if (is(event, kObjects)) {
      follow_object(block, event);
      continue;
    }
    if (pages_.empty() || !concerns(event)) {
      continue;
    }
    if (const uint16_t tag = generation(event.address); tag != 0) {
      if (!copied) {
        own->events = block.events;
        own->extras = block.extras;
        copied = true;
      }
      own->events[i].address |= uint64_t{tag} << kTagShift;
    }
  }
  return copied ? *own : block;
}

void follow_lifetimes(Trace& trace) {
  EventBlock own;
  Lifetimes lifetimes;
  if (&lifetimes.follow(trace, &own) == &own) {
    trace.events = std::move(own.events);
  }
}

}  // namespace tsomon
