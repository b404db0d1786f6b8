// The recording core: what a thread writes into, and how it reaches the file.
//
// Path of a record: the thread's encoder, which packs it into the thread's chunk (plain memory of
// its own, no lock, no atomic instruction) -> ConcurrentQueue of full chunks -> one writer thread
// that compresses and appends -> back to the thread, or to the queue of empty chunks. All memory is
// taken when the program and its threads start, or with mmap.
//
// Publication  The encoder keeps a position up to which everything is readable at any time, by
//              another thread and by a signal handler (decoders/capture/encoder.h).
// Signals      A handler may interrupt a hook anywhere and run hooks itself. Handing over and all
//              locks run with signals blocked. Handlers run inside enter_handler/leave_handler:
//              a handler has an encoder and chunks of its own, placed in the thread's stream at
//              the point of the interruption (ChunkStart), so the interrupted hook finds its
//              encoder as it left it.
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

#include "decoders/capture/encoder.h"
#include "monitor/probe/last_stamps.h"
#include "monitor/probe/messages.h"
#include "monitor/probe/options.h"
#include "monitor/probe/repeats.h"
#include "monitor/probe/stamp.h"

// Programs that `tsomon explore` controls (monitor/explore/runtime).
namespace tsomon::explore {
extern bool active;
void plain(bool store, const volatile void* address, uint32_t size, uint64_t pc);
}  // namespace tsomon::explore

#define TSOMON_LIKELY(x) __builtin_expect(!!(x), 1)
#define TSOMON_UNLIKELY(x) __builtin_expect(!!(x), 0)

namespace tsomon::probe {

using capture::RecordType;

struct Thread;

// 64 KiB; `start` and the tokens behind it are the payload.
struct Chunk {
  static constexpr size_t kTokens = 65536 - 64 - sizeof(capture::ChunkStart);

  Thread* owner = nullptr;
  uint64_t sequence = 0;
  // The writer thread's: 1 + the sequence when it looked last, and how much of the payload it told.
  uint64_t looked = 0;
  capture::Position told;
  uint32_t size = 0;  // of the payload; 0: nothing to write
  alignas(64) capture::ChunkStart start;
  uint8_t tokens[kTokens];
};
static_assert(sizeof(Chunk) == 65536);

// What a thread records into, or a signal handler.
struct Context {
  capture::Encoder encoder;
  Chunk* chunk;               // nullptr: there was none to take
  Context* outer;             // that was interrupted
  capture::ChunkStart start;  // of all its chunks
  uint64_t since;             // accesses since the last stamp
  uint64_t floor;             // no stamp is smaller: of what came before the chunk
  uint32_t announced;         // 1 + the place of the token that will hold the stamp taken last
  // Places in the chunk; kNowhere: none.
  uint32_t stamped;        // all before has been performed before the last stamp, but for a drain
  uint32_t begun;          // behind a unit's beginning that did not look at the clock
  uint32_t owed;           // behind a locked operation that left its stamp to what comes next
  uint32_t locked;         // behind a locked operation
  uint32_t locked_slot;    // ... of which this is the place in
  Repeats repeats;         // loads at the end of it
  bool load_follows[256];  // whether an atomic load came next the last time (done_locked)
};
inline constexpr uint32_t kNowhere = ~0U;
extern Context inactive;  // does not record

// Initial-exec by construction: the runtime is linked into the executable.
struct Local {
  Context* context = &inactive;
  uint32_t interruptions = 0;  // by signal handlers
  uint32_t units = 0;          // open ones; more or fewer after siglongjmp
  uint32_t lock_code = 0;      // how deep in annotated code of a lock (tsan_interface.cpp)
  Thread* thread = nullptr;
  Thread* own = nullptr;  // that the kernel runs, while `thread` is a fiber
  bool off = false;       // a thread of the runtime, which has no `thread`, or one that has ended
};
extern __thread Local local;

struct Thread {
  uint32_t number = 0;
  Context* context = nullptr;  // innermost; nullptr: not begun, or ended
  Context* spare = nullptr;    // for handlers, linked by `outer`
  std::atomic<uint64_t> sequence{0};
  uint64_t bytes = 0;                    // in the chunks that were closed
  std::atomic<Chunk*> emptied{nullptr};  // that came back
  std::atomic<bool> busy{false};         // changes chunks; finish() waits for it
  uint32_t returned = 0;  // emptied chunks when there was none to take (on_full=drop)
  bool muted = false;     // ended, or in a signal handler that has nowhere to record
  std::atomic<uint64_t> lost{0};
  uint64_t lost_reported = 0;
  std::atomic<bool> unrecorded{false};  // live: performs what it will record later
  uint64_t told_chunk = 0;  // live: 1 + sequence of the chunk that was told last, and how far
  capture::Position told;
  uint64_t began = 0;  // stamps: no event is earlier, and, when it has ended, none is later
  uint64_t ended = 0;
  pthread_t handle = 0;
  pid_t id = 0;  // the kernel's; of a fiber, that of the thread that runs it
  bool is_fiber = false;
  bool has_begun = false;
  uint32_t generation = 0;
  uint32_t units = 0;  // Local::units of a fiber that does not run
  struct {
    void* block = nullptr;
    int depth = 0;
    uint32_t deeper = 0;
  } calls;            // likewise, for patterns.cpp
  bool gone = false;  // joined or detached: the handle may name another thread
  void* token = nullptr;
  Thread* next = nullptr;
  Thread* next_in_round = nullptr;  // the writer thread's
};

extern Options options;

// Not everything is recorded: accesses=sets (watched.h), outside=stores.
extern bool selective;

// False: nothing is recorded in this process (no output, or it could not be opened).
extern bool recording;

// Where to record; nullptr when this thread does not. Two records fit.
Context* writable_slow();
inline Context* writable() {
  Context* const context = local.context;
  return TSOMON_LIKELY(capture::has_room(context->encoder)) ? context : writable_slow();
}

// A stamp that was just taken, in the order of those before it (stamp.h).
inline uint64_t in_order(const Context& context, uint64_t now) {
  const uint64_t last =
      context.encoder.stamp > context.floor ? context.encoder.stamp : context.floor;
  if (TSOMON_LIKELY(now >= last)) {
    return now;
  }
  note_backwards(last - now);
  return last;
}

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
  return in_order(context, stamp());
}

// What was not foreseen, of a thread that is recorded.
void access_slow(uint64_t address, uint64_t key);
void access_expired();

// The hook of a plain access. size <= capture::kMaxSize.
inline __attribute__((always_inline)) void access(RecordType type, const volatile void* pointer,
                                                  uint32_t size, uint64_t pc) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  const uint64_t key = capture::make_key(type, size, pc);
  const uint64_t slot = capture::plain_code(type, size) < 0 ? 8 * capture::key_slot(key)
                                                            : pc & (8 * capture::kSlots - 8);
  switch (capture::foresee(local.context->encoder, address, key, slot)) {
    case capture::Foreseen::kYes:
      return;
    case capture::Foreseen::kNo:
      // A program that is not recorded always comes here: nothing but this test.
      if (TSOMON_LIKELY(local.thread == nullptr)) {
        if (TSOMON_UNLIKELY(explore::active)) {
          return explore::plain(type == RecordType::kWrite, pointer, size, pc);
        }
        return;
      }
      return access_slow(address, key);
    case capture::Foreseen::kExpired:
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
// The drain of a locked instruction between the record of put_point_now with the stamp `released`,
// not 0, and the thread's next stamp.
void put_drain(uint64_t released, uint64_t pc);
// An object begins. Likewise.
void put_object(uint64_t address, uint64_t size, uint64_t pc);
// Ends the intervals of what came before; what follows begins here.
void put_stamp_now();
// Locks that the program annotates (tsan_interface.cpp): behind the acquisition, in front of the
// release.
void lock_acquired(const volatile void* lock, bool shared, uint64_t pc);
void lock_released(const volatile void* lock, bool shared, uint64_t pc);
// Before the thread may sleep (sleeping.cpp): empties the store buffer, and records that.
void drain_before_sleeping(uint64_t pc);
// A unit boundary. It has a stamp unless there is a recent one. Looking at the clock costs nearly
// as much as a stamp, so it does not look where it knows the answer or another stamp comes anyway:
// at an end, when no access was recorded since the last stamp (a lock was just given back); at a
// beginning, when no plain access came next the last time (a lock is taken next): should one come
// all the same, it looks itself.
void put_boundary(RecordType type, uint64_t address, uint64_t pc);
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

// Starts recording when this is the first unit or thread.
void activate();
bool activated();
void put_known_objects();  // those that are there when recording starts
void start();

// Threads. begin_thread runs on the new thread.
void prepare_threads();
void count_threads_after_fork();
void use_alternate_stack();    // so that a handler can run when the stack is full
void leave_alternate_stack();  // when the thread ends
Thread* new_thread();
void begin_thread(Thread* thread);
void end_thread();
void abandon_thread(Thread* thread);
// The calling thread goes on as `to`, which no other thread runs; the one that it leaves stays as
// it is. It should have drained its stores.
void switch_thread(Thread* to);
// False: a fork has left it behind.
bool is_of_this_process(const Thread* thread);
// A fiber that does not run and never will.
void end_fiber(Thread* fiber);
// In the capture, and in reports. At most 255 bytes count.
void name_thread(const Thread* thread, const char* name);
void forget_thread_names();  // after fork

// Writes everything recorded so far and the trailer; later calls do nothing. Async-signal-safe.
void finish();

// Around fork: no lock is held by another thread in the child, which begins with nothing recorded.
void lock_for_fork();
void unlock_after_fork();
void reset_after_fork();
void lock_labels();
void unlock_labels();
void lock_sets();
void unlock_sets();

// Declares the globals that the option set= names. When there is none for one of the patterns there
// is a message, and if one is `required` the answer is false.
bool declare_named_sets(bool required);

struct HandlerFrame {
  Context* context;  // that was interrupted; nullptr: there is nothing to go back to
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

// Memory that a thread gives back when it ends. Its contents are undefined; nullptr: there is none.
inline constexpr size_t kBlockSize = 65536;
void* take_block();
void give_block(void* block);

// Id of a label, interned by its text.
uint32_t label_id(const char* name, size_t size);

#define TSOMON_HOOK extern "C" __attribute__((visibility("default"), used))
#define TSOMON_PC() reinterpret_cast<uint64_t>(__builtin_return_address(0))

}  // namespace tsomon::probe
