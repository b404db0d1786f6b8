#include "monitor/probe/blocks.h"

#include <atomic>

#include "monitor/probe/record_stamps.h"

namespace tsomon::probe {
namespace {

constexpr uint32_t kPageShift = 12;
constexpr uint64_t kEntries = 1024;
// The word of an entry: the page above 29 bits, the owner (0: none) above 13, how often it changed.
constexpr uint32_t kPageAt = 29;
constexpr uint32_t kOwnerAt = 13;
constexpr uint64_t kOwners = 0xFFFF;
constexpr uint64_t kChanges = (uint64_t{1} << kOwnerAt) - 1;

struct Entry {
  std::atomic<uint64_t> word{0};
  std::atomic<uint64_t> stamp{0};  // the last one of who changed it
};
Entry pages[kEntries];

uint64_t owner_of(uint64_t word) { return word >> kOwnerAt & kOwners; }
uint64_t page_of(uint64_t word) { return word >> kPageAt; }
uint64_t changed(uint64_t word, uint64_t page, uint64_t owner) {
  return page << kPageAt | owner << kOwnerAt | ((word + 1) & kChanges);
}
uint64_t myself() { return 1 + local.thread->number % kOwners; }
bool is_mine(uint64_t word, uint64_t page) {
  return page_of(word) == page && owner_of(word) == myself();
}

// A record between the stamps around it, as a plain access.
void put_unstamped(Context& context, RecordType type, uint64_t address, uint32_t bytes,
                   uint64_t pc) {
  if (TSOMON_UNLIKELY(context.encoder.end == context.begun)) {
    look_at_clock(context);
  } else if (stamp_due(context)) {
    put_stamp(context);
  }
  ++context.since;
  if (!capture::put_bare_cached(context.encoder, type, address, pc, bytes)) {
    capture::put_bare(context.encoder, type, address, pc, bytes);
  }
}

// A record with a stamp that is later than `last`.
void put_stamped(Context& context, RecordType type, uint64_t address, uint64_t bytes, uint64_t pc,
                 uint64_t last) {
  uint64_t now = new_stamp(context);
  now = now > last ? now : last + 1;
  if (bytes <= capture::kMaxSize) {
    capture::put_record(
        context.encoder,
        {type, static_cast<uint32_t>(bytes), capture::kSeparates, 1, address, pc, {now}});
  } else {
    capture::put_record(context.encoder,
                        {type, 0, capture::kSeparates, 3, address, pc, {now, now, bytes}});
  }
  context.stamped = context.encoder.end;
}

// Memory of the page is given back.
void give_back(uint64_t page, uint64_t stamp) {
  Entry& entry = pages[page % kEntries];
  uint64_t word = entry.word.load(std::memory_order_relaxed);
  if (is_mine(word, page)) {
    entry.stamp.store(stamp, std::memory_order_relaxed);
    return;
  }
  while (!entry.word.compare_exchange_weak(word, changed(word, page, 0))) {
  }
  entry.stamp.store(stamp, std::memory_order_relaxed);
}

// Nobody owns any of the pages.
void give_back_many(uint64_t first, uint64_t last) {
  for (uint64_t i = 0; i < kEntries && first + i <= last; ++i) {
    Entry& entry = pages[(first + i) % kEntries];
    uint64_t word = entry.word.load(std::memory_order_relaxed);
    while (page_of(word) >= first && page_of(word) <= last && owner_of(word) != 0 &&
           !entry.word.compare_exchange_weak(word, changed(word, page_of(word), 0))) {
    }
  }
}

}  // namespace

void block_begins(uint64_t address, uint64_t bytes, uint64_t pc) {
  if (local.thread == nullptr) {
    return;
  }
  Context* const context = writable();
  if (context == nullptr) {
    return;
  }
  const uint64_t first = address >> kPageShift;
  const uint64_t last = (address + bytes - 1) >> kPageShift;
  if (bytes > capture::kMaxSize || last - first > 1) {
    return put_stamped(*context, RecordType::kBlock, address, bytes, pc, 0);
  }
  Entry* const entries[] = {&pages[first % kEntries], &pages[last % kEntries]};
  const uint64_t numbers[] = {first, last};
  uint64_t words[] = {entries[0]->word.load(std::memory_order_acquire),
                      entries[1]->word.load(std::memory_order_acquire)};
  if (is_mine(words[0], first) && is_mine(words[1], last)) {
    return put_unstamped(*context, RecordType::kBlock, address, static_cast<uint32_t>(bytes), pc);
  }
  uint64_t floor = 0;
  for (int i = 0; i < 2; ++i) {
    const uint64_t stamp = entries[i]->stamp.load(std::memory_order_relaxed);
    floor = page_of(words[i]) == numbers[i] && stamp > floor ? stamp : floor;
  }
  put_stamped(*context, RecordType::kBlock, address, bytes, pc, floor);
  for (int i = 0; i <= (first == last ? 0 : 1); ++i) {
    // What somebody else has given back there since may be the next block.
    if (!is_mine(words[i], numbers[i]) && entries[i]->word.compare_exchange_strong(
                                              words[i], changed(words[i], numbers[i], myself()))) {
      entries[i]->stamp.store(last_stamp(*context), std::memory_order_relaxed);
    }
  }
}

void block_ends(uint64_t address, uint64_t bytes, uint64_t pc) {
  if (local.thread == nullptr) {
    return;
  }
  Context* const context = writable();
  if (context == nullptr) {
    return;
  }
  const uint64_t first = address >> kPageShift;
  if (bytes > capture::kMaxSize) {
    put_stamped(*context, RecordType::kBlockEnd, address, bytes, pc, 0);
    return give_back_many(first, (address + bytes - 1) >> kPageShift);
  }
  put_unstamped(*context, RecordType::kBlockEnd, address, static_cast<uint32_t>(bytes), pc);
  const uint64_t last = bytes == 0 ? first : (address + bytes - 1) >> kPageShift;
  give_back(first, last_stamp(*context));
  if (last != first) {
    give_back(last, last_stamp(*context));
  }
}

}  // namespace tsomon::probe
