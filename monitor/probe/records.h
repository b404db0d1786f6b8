// What hooks record: accesses, points in time, boundaries, each packed into the thread's chunk.
//
// Cost        A cached access some 20 instructions, others some 50 (decoders/capture/encoder.h),
//             and the stamps.
// Thread-safety: each thread for itself. Async-signal-safe inside of enter_handler and
// leave_handler.
#pragma once

#include <cstddef>
#include <cstdint>

#include <semaphore.h>

#include "decoders/capture/encoder.h"
#include "monitor/probe/context.h"
#include "monitor/probe/last_stamps.h"
#include "monitor/probe/stamp.h"
#include "tso/model/waited.h"

// Programs that `tsomon explore` controls (monitor/explore/runtime).
namespace tsomon::explore {
extern bool active;
void plain(bool store, const volatile void* address, uint32_t size, uint64_t pc);
}  // namespace tsomon::explore

#define TSOMON_LIKELY(x) __builtin_expect(!!(x), 1)
#define TSOMON_UNLIKELY(x) __builtin_expect(!!(x), 0)

namespace tsomon::probe {

extern bool controlled;  // slices.h

// Where to record; nullptr when this thread does not. Two records fit.
Context* writable_slow();
inline Context* writable() {
  Context* const context = local.context;
  return TSOMON_LIKELY(capture::has_room(context->encoder)) ? context : writable_slow();
}

inline uint64_t last_stamp(const Context& context) {
  return context.encoder.stamp > context.floor ? context.encoder.stamp : context.floor;
}
// Of a stamp that is older than an earlier one of its thread, and was taken when so many signal
// handlers had recorded: the one to record.
uint64_t stamp_again(const Context& context, uint64_t now, uint32_t interruptions);

// A stamp that is taken now, in the order of those before it (stamp.h). `locked`: behind a locked
// instruction or MFENCE.
inline __attribute__((always_inline)) uint64_t stamp_in_order(const Context& context,
                                                              bool locked = false) {
  const uint32_t interruptions = *const_cast<volatile uint32_t*>(&local.interruptions);
  const uint64_t now = locked ? stamp_after_locked() : stamp();
  return TSOMON_LIKELY(now >= last_stamp(context)) ? now : stamp_again(context, now, interruptions);
}

// While this lives, what is recorded next may have been done already: a signal handler that comes
// in between says so (decoders/capture/format.h).
class Unrecorded {
 public:
  Unrecorded() { add(1); }
  ~Unrecorded() { add(~uint32_t{0}); }
  Unrecorded(const Unrecorded&) = delete;
  Unrecorded& operator=(const Unrecorded&) = delete;

 private:
  static void add(uint32_t more) {
    auto& depth = *const_cast<volatile uint32_t*>(&local.unrecorded);
    depth = depth + more;
    asm volatile("" : : : "memory");
  }
};

// Before a stamp is taken, or a load performed, that the next record tells of.
inline void announce_stamp(Context& context) {
  *const_cast<volatile uint32_t*>(&context.announced) = context.encoder.end + 1;
}

// Whether the last stamp will do for the start of an interval. Any earlier stamp is a valid lower
// bound, and what lies between a store and a load should be as short as in the program itself, or
// their reordering disappears.
inline bool stamped_within(const Context& context, uint64_t cycles) {
  return __builtin_ia32_rdtsc() - context.encoder.stamp < cycles;
}
// Where `load_follows` has a locked operation that returns to `pc`.
inline uint32_t slot_of(uint64_t pc) { return (pc ^ (pc >> 8)) & 0xFF; }
// Whether the last record is a locked operation without its second stamp (Operation::done_locked).
inline bool owes_stamp(const Context& context) { return context.encoder.end == context.owed; }
// The last stamp if it is recent, else a new one. With kHoweverOld it does not look at the clock.
inline constexpr uint64_t kHoweverOld = ~uint64_t{0};
inline uint64_t recent_stamp(Context& context, uint64_t cycles) {
  if (!owes_stamp(context) && (cycles == kHoweverOld || stamped_within(context, cycles))) {
    return context.encoder.stamp;
  }
  context.since = 0;
  announce_stamp(context);
  return stamp_in_order(context);
}

// What was not cached, of a thread that is recorded.
void access_slow(uint64_t address, uint64_t key);
void access_expired();
void access_unrecorded(uint64_t address, uint64_t key);  // of a thread that may join a slice

// The hook of a plain access. size <= capture::kMaxSize.
inline __attribute__((always_inline)) void access(RecordType type, const volatile void* pointer,
                                                  uint32_t size, uint64_t pc) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  const uint64_t key = capture::make_key(type, size, pc);
  const uint64_t slot = capture::plain_code(type, size) < 0 ? 8 * capture::key_slot(key)
                                                            : pc & (8 * capture::kSlots - 8);
  switch (capture::look_up_site(local.context->encoder, address, key, slot)) {
    case capture::SiteCache::kHit:
      return;
    case capture::SiteCache::kMiss:
      // A program that is not recorded always comes here: nothing but this test.
      if (TSOMON_LIKELY(local.thread == nullptr)) {
        if (TSOMON_UNLIKELY(explore::active)) {
          return explore::plain(type == RecordType::kWrite, pointer, size, pc);
        }
        return TSOMON_UNLIKELY(controlled) ? access_unrecorded(address, key) : void();
      }
      return access_slow(address, key);
    case capture::SiteCache::kExpired:
      return access_expired();
  }
}

// Of memory that only the runtime's functions access, whatever is chosen to be recorded.
void access_always(RecordType type, const volatile void* pointer, uint32_t size, uint64_t pc);

// Whether a plain access by this thread would be recorded: never while the thread is not.
bool would_be_recorded(uint64_t address, uint64_t size, bool store);
void count_lost();  // one record

// A record with one stamp, which is taken when there is room, so that stamps stay in order also
// when the chunk changes. Returns the stamp; 0: not recording.
uint64_t put_point_now(RecordType type, uint64_t address, uint64_t pc);
// Of what comes after another thread's event with the stamp `last`: the stamp is larger.
uint64_t put_point_after(RecordType type, uint64_t address, uint64_t pc, uint64_t last);
// What orders threads other than by accesses (EventKind::kSend): what comes before a send comes
// before what follows a later receive on the same channel. The send goes before whatever lets the
// other thread go on, and empties the store buffer first; the receive behind it. Stamps of a channel
// grow from send to receive, as those of a lock do. Both keep errno.
void put_send(uint64_t channel, uint64_t pc);
void put_receive(uint64_t channel, uint64_t pc);
// The drain of a locked instruction between the record of put_point_now with the stamp `released`,
// not 0, and the thread's next stamp.
void put_drain(uint64_t released, uint64_t pc);
// An object begins. Likewise.
void put_object(uint64_t address, uint64_t size, uint64_t pc);
// The thread is about to wait for `what` (Waited), which it then gets, or says that it does
// not: `requested_in_vain`.
void put_request(tsomon::Waited what, uint64_t address, uint64_t pc);
void requested_in_vain(uint64_t pc);
// Ends the intervals of what came before; what follows begins here.
void put_stamp_now();
// Locks that the program annotates (tsan_interface.cpp): behind the acquisition, in front of the
// release.
void lock_acquired(const volatile void* lock, bool shared, uint64_t pc);
void lock_released(const volatile void* lock, bool shared, uint64_t pc);
// A promise that what comes before the one comes before what follows the other (likewise). No
// instruction is made of it.
void put_promise(const volatile void* object, uint64_t pc);
void put_promised(const volatile void* object, uint64_t pc);
// What is not to be reported (tso/model/channels.h): accesses of this thread, as Local says; races on
// these bytes.
void put_ignored(uint64_t pc);
// The program's own options say so. Before the first thread begins.
bool asks_for_no_reports();
void put_benign(uint64_t address, size_t size, uint64_t pc);
// The count that the semaphore has now.
void put_count(sem_t* semaphore, uint64_t pc);
// Before the thread may sleep (blocking_calls.cpp): empties the store buffer, and records that.
// `for_a_while`: it goes on by itself.
void drain_before_sleeping(uint64_t pc, bool for_a_while = false);
// A unit boundary. It has a stamp unless there is a recent one. Looking at the clock costs nearly
// as much as a stamp, so it does not look where it knows the answer or another stamp comes anyway:
// at an end, when no access was recorded since the last stamp (a lock was just given back); at a
// beginning, when no plain access came next the last time (a lock is taken next): should one come
// all the same, it looks itself.
void put_boundary(RecordType type, uint64_t address, uint64_t pc);
// What it records, of a thread that does.
void put_boundary_now(RecordType type, uint64_t address, uint64_t pc);
// The same for the beginning of a unit that end_unit() ends: which one that is, never 0.
uint32_t begin_unit(uint32_t label, uint64_t pc);
bool may_cancel_units();  // this program
// Nothing if the unit was ended or cancelled already.
void end_unit(uint32_t unit, uint64_t pc);
void put_range(RecordType type, const volatile void* address, size_t size, uint64_t pc);
// A load and a store of as many bytes, which follow.
void put_copy(const volatile void* to, const volatile void* from, size_t size, uint64_t pc);

// For loads and stores of atomics that are a mov: makes sure that the last stamp is recent and that
// there is room. Then, behind the load or in front of the store, the record. The stamp that a
// locked operation owes comes before a store, but behind a load.
Context* begin_open(bool load);
void put_open(Context* context, uint64_t key, const volatile void* address, uint64_t value);

}  // namespace tsomon::probe
