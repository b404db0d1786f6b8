// The recording core: what a thread writes into, and how it reaches the file.
//
// Path of a record: the thread's chunk (plain memory of its own, no lock, no atomic instruction)
// -> ConcurrentQueue of full chunks -> one writer thread that packs and appends -> queue of empty
// chunks. All memory is taken when the program and its threads start.
//
// Publication  Local::cur moves only past complete records (x86 stores are ordered), so another
//              thread, or a signal handler, may read everything below it at any time.
// Signals      A handler may interrupt a hook anywhere and run hooks itself. Handing over and all
//              locks run with signals blocked. Handlers run inside enter_handler/leave_handler:
//              what a handler records goes to chunks of its own, placed in the thread's stream at
//              the point of the interruption (Chunk::parts), so the interrupted hook finds its
//              chunk as it left it.
// Start        Nothing is recorded before the process first starts a thread or a unit, atomics
//              included: all that comes before everything else through the fork edge, no cycle goes
//              through it, and the trace begins with the memory it left.
// End          finish() asks the writer thread to take what lies in all chunks and to write the
//              trailer. Threads that run on are cut at that moment.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <pthread.h>
#include <signal.h>

#include "decoders/capture/record.h"
#include "monitor/probe/options.h"
#include "monitor/probe/stamp.h"

#define TSOMON_LIKELY(x) __builtin_expect(!!(x), 1)
#define TSOMON_UNLIKELY(x) __builtin_expect(!!(x), 0)

namespace tsomon::probe {

using capture::RecordType;

inline constexpr size_t kChunkWords = 8192 - 144;  // with its head 64 KiB
inline constexpr uint32_t kMaxParts = 64;
inline constexpr size_t kMaxRecordWords = 8;

// A piece of a thread's stream; the records of one chunk are contiguous in the stream unless a
// signal handler recorded in between.
struct Part {
  uint32_t end = 0;  // word offset
  uint64_t sequence = 0;
};

struct Chunk {
  uint32_t thread = 0;
  uint32_t part_count = 0;
  uint32_t first = 0;          // words below were written already
  uint64_t open_sequence = 0;  // of the words after the last part
  Part parts[kMaxParts];
  Chunk* next = nullptr;            // Thread::outer
  uint64_t* interrupted = nullptr;  // Local::cur when a handler interrupted the thread
  alignas(64) uint64_t words[kChunkWords];
};
static_assert(sizeof(Chunk) <= 65536);

struct Thread;

// Initial-exec by construction: the runtime is linked into the executable.
struct Local {
  uint64_t* cur = nullptr;    // next record; nullptr: not recording
  uint64_t* limit = nullptr;  // plain accesses take the slow path from here on
  uint64_t* end = nullptr;    // of the chunk
  uint64_t stamp = 0;         // the last one
  Thread* thread = nullptr;
  bool off = false;  // a thread of the runtime, or one that has ended
};
extern __thread Local local;

struct Thread {
  uint32_t number = 0;
  Local* where = nullptr;  // nullptr: not begun, or ended
  Chunk* chunk = nullptr;
  Chunk* outer = nullptr;  // chunks that signal handlers interrupted, innermost first
  std::atomic<uint64_t> sequence{0};
  uint64_t words = 0;             // in the chunks that were closed
  std::atomic<bool> busy{false};  // changes chunks; finish() waits for it
  uint32_t returned = 0;          // emptied chunks when there was none to take (on_full=drop)
  bool muted = false;             // in a signal handler that has nowhere to record
  std::atomic<uint64_t> lost{0};
  uint64_t lost_reported = 0;
  pthread_t handle = 0;
  bool gone = false;  // joined or detached: the handle may name another thread
  void* token = nullptr;
  Thread* next = nullptr;
};

extern Options options;

// False: nothing is recorded in this process (no output, or it could not be opened).
extern bool recording;

// Room for a record of `words` words, or nullptr when this thread does not record. The record
// counts when commit() is called.
uint64_t* room_slow(size_t words);
inline uint64_t* room(size_t words) {
  uint64_t* const at = local.cur;
  if (TSOMON_LIKELY(at != nullptr && at + words <= local.end)) {
    return at;
  }
  return room_slow(words);
}
inline void publish(uint64_t* at) {
  asm volatile("" : : : "memory");
  *const_cast<uint64_t* volatile*>(&local.cur) = at;
}
// After a record whose last stamp is `time`: the next stamp of plain accesses is due stamp_every
// accesses later.
inline void publish_stamped(uint64_t* at, uint64_t time) {
  publish(at);
  local.stamp = time;
  uint64_t* limit = local.end - 1;
  const uint64_t words = 2 * options.stamp_every;
  if (words != 0 && limit - at > static_cast<ptrdiff_t>(words)) {  // at may be past limit
    limit = at + words;
  }
  local.limit = limit;
}

// Whether the last stamp will do for the start of an interval. Any earlier stamp is a valid lower
// bound, and what lies between a store and a load should be as short as in the program itself, or
// their reordering disappears.
inline bool stamped_within(uint64_t cycles) {
  return __builtin_ia32_rdtsc() - local.stamp < cycles;
}

void access_slow(uint64_t a, uint64_t b);

// The hook of a plain access.
inline void access(RecordType type, const volatile void* address, uint32_t size, uint64_t pc) {
  const uint64_t a = reinterpret_cast<uint64_t>(address) | (static_cast<uint64_t>(type) << 48);
  const uint64_t b = pc | (static_cast<uint64_t>(size) << 48);
  uint64_t* const at = local.cur;
  if (TSOMON_UNLIKELY(at >= local.limit)) {
    access_slow(a, b);
    return;
  }
  at[0] = a;
  at[1] = b;
  publish(at + 2);
}

// A record with one stamp, which is taken when there is room, so that stamps stay in order also
// when the chunk changes. Returns the stamp; 0: not recording.
uint64_t put_point_now(RecordType type, uint64_t address, uint64_t pc);
// A unit boundary: has a stamp unless the last one is recent.
void put_boundary(RecordType type, uint64_t address, uint64_t pc);
void put_range(RecordType type, const volatile void* address, size_t size, uint64_t pc);

// Starts recording when this is the first unit or thread.
void activate();
void start();

// Threads. begin_thread runs on the new thread.
void prepare_threads();
void use_alternate_stack();  // so that a handler can run when the stack is full
Thread* new_thread();
void begin_thread(Thread* thread);
void end_thread();
void abandon_thread(Thread* thread);

// Writes everything recorded so far and the trailer; later calls do nothing. Async-signal-safe.
void finish();

// Around fork: no lock is held by another thread in the child, which begins with nothing recorded.
void lock_for_fork();
void unlock_after_fork();
void reset_after_fork();
void lock_labels();
void unlock_labels();

struct HandlerFrame {
  uint64_t* cur;
  uint64_t* limit;
  uint64_t* end;
  Chunk* chunk;
  bool muted;
};
void enter_handler(HandlerFrame* frame);
void leave_handler(HandlerFrame* frame);

// Signals blocked and a spin lock held.
class Guard {
 public:
  explicit Guard(std::atomic<uint32_t>* lock);
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  std::atomic<uint32_t>* lock_;
  uint64_t mask_ = 0;
};

// Id of a label, interned by its text.
uint32_t label_id(const char* name, size_t size);

// Message of one line on standard error, prefixed with "tsomon: ".
__attribute__((format(printf, 1, 2))) void complain(const char* format, ...);

#define TSOMON_HOOK extern "C" __attribute__((visibility("default"), used))
#define TSOMON_PC() reinterpret_cast<uint64_t>(__builtin_return_address(0))

}  // namespace tsomon::probe
