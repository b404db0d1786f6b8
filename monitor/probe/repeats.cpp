#include "monitor/probe/repeats.h"

#include "monitor/probe/chunk_writer.h"
#include "monitor/probe/runtime.h"

namespace tsomon::probe {
namespace {

constexpr uint32_t kRecorded = 3;  // loads of a run that are recorded as ever
constexpr uint32_t kTokens = 12;   // room for what is held back, and one load more
constexpr uint64_t kBefore = 4;    // bits of the word
constexpr uint64_t kLoads = 3;
constexpr uint64_t kLongest = uint64_t{1} << 25;  // cycles

void barrier() { asm volatile("" : : : "memory"); }

// By one instruction: no handler comes in between.
bool replace(volatile uint64_t* word, uint64_t before, uint64_t after) {
  bool replaced = false;
  asm volatile("cmpxchgq %3, %1"
               : "=@ccz"(replaced), "+m"(*word), "+a"(before)
               : "r"(after)
               : "memory");
  return replaced;
}

// Whether the load that comes may be held back, where the word is as it was; its stamp is recent
// then.
bool goes_on(Context& context, uint64_t word) {
  Repeats& repeats = context.repeats;
  const uint64_t last = word >> 3;
  const uint64_t now = __builtin_ia32_rdtsc();
  if (now - last < options.stamp_max_age) {
    return true;
  }
  if (now - repeats.began > kLongest || finishing()) {
    return false;
  }
  uint64_t taken = stamp_in_order(context);
  if (taken < last) {
    note_backwards(last - taken);
    taken = last;
  }
  replace(&repeats.word, word, taken << 3 | ((word & (kBefore | kLoads)) != 0 ? kBefore : 0));
  return true;
}

void hold_back(Context& context) {
  context.repeats.began = __builtin_ia32_rdtsc();
  announce_stamp(context);
  context.encoder.capacity = 0;  // whoever wants to record asks for room (writable_slow)
  barrier();
  context.repeats.word = context.encoder.stamp << 3;
}

}  // namespace

Context* begin_load(uint64_t key, const volatile void* address) {
  Context* const context = local.context;
  const Repeats& repeats = context->repeats;
  const uint64_t word = repeats.word;
  if (TSOMON_UNLIKELY(word != 0) && repeats.key == key && repeats.address == address &&
      goes_on(*context, word)) {
    return context;
  }
  return begin_open(true);
}

__attribute__((noinline)) uint64_t put_load(Context* context, uint64_t key,
                                            const volatile void* address, uint64_t value) {
  Repeats& repeats = context->repeats;
  capture::Encoder& encoder = context->encoder;
  std::atomic<bool>& unrecorded = local.thread->unrecorded;
  const uint64_t word = repeats.word;
  const bool held = word != 0;
  const bool was_unrecorded = held && unrecorded.load(std::memory_order_relaxed);
  if (held) {
    if (value == repeats.value &&
        ((word & kLoads) == kLoads || replace(&repeats.word, word, word + 1))) {
      return value;
    }
    // Another value, or a handler came.
    unrecorded.store(true, std::memory_order_relaxed);
    record_held(*context);
  }
  const bool again = repeats.end == encoder.end && !capture::has_run(encoder) &&
                     repeats.key == key && repeats.address == address && repeats.value == value;
  const uint32_t before = encoder.end;
  put_open(context, key, address, value);
  repeats.key = key;
  repeats.address = address;
  repeats.value = value;
  repeats.recorded = again ? repeats.recorded + 1 : 1;
  repeats.end = encoder.end;
  if (held) {
    unrecorded.store(was_unrecorded, std::memory_order_relaxed);
  }
  if (again && repeats.recorded >= kRecorded && !options.all_repeats &&
      capture::is_cached_open(encoder, before) && capture::has_room(encoder, kTokens)) {
    hold_back(*context);
  }
  return value;
}

void record_held(Context& context) {
  Repeats& repeats = context.repeats;
  repeats.ending = true;
  barrier();
  const uint64_t word = repeats.word;
  if (word != 0) {
    capture::Encoder& encoder = context.encoder;
    const auto address = reinterpret_cast<uint64_t>(repeats.address);
    if ((word & kBefore) != 0) {
      capture::put_open(encoder, repeats.key, address, repeats.value);
    }
    if (word >> 3 != encoder.stamp || (word & kBefore) != 0) {
      capture::put_stamp(encoder, word >> 3);
    }
    for (uint64_t i = 0; i < (word & kLoads); ++i) {
      capture::put_open(encoder, repeats.key, address, repeats.value);
    }
    repeats.end = kNowhere;
    barrier();
    repeats.word = 0;
    barrier();
    encoder.capacity = chunk_room;
    if (TSOMON_UNLIKELY(controlled)) {
      std::atomic_thread_fence(std::memory_order_seq_cst);
      if (finishing()) {
        encoder.capacity = 0;  // end_slice() may have come before
      }
    }
  }
  barrier();
  repeats.ending = false;
}

uint32_t copy_held(const Context& context, uint32_t end, uint8_t* to) {
  const volatile Context& seen = context;
  const uint64_t word = seen.repeats.word;
  // While it is held back nothing is added to the chunk.
  if (word == 0 || seen.encoder.end != end) {
    return 0;
  }
  uint8_t* at = to;
  if ((word & kBefore) != 0) {
    at = capture::put_cached_open(at);
  }
  at = capture::put_whole_stamp(at, word >> 3);
  for (uint64_t i = 0; i < (word & kLoads); ++i) {
    at = capture::put_cached_open(at);
  }
  return static_cast<uint32_t>(at - to);
}

}  // namespace tsomon::probe
