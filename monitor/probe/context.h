// What a thread of the program writes into: its chunk, encoder and place in the stream.
//
// Thread-safety: a Context belongs to its thread, and to the handlers that interrupt it; what
// others may look at is atomic, or in decoders/capture/encoder.h. No allocation.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <pthread.h>

#include "decoders/capture/encoder.h"
#include "monitor/probe/options.h"
#include "monitor/probe/repeats.h"

#define TSOMON_LIKELY(x) __builtin_expect(!!(x), 1)
#define TSOMON_UNLIKELY(x) __builtin_expect(!!(x), 0)

namespace tsomon::probe {

using capture::RecordType;

struct Thread;

// Where the frame of a signal handler is.
struct HandlerPlace {
  uint64_t address;
  bool on_alternate;  // on the alternate stack
};

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
  HandlerPlace handler;       // of a handler's
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
// Of tokens, in chunks: less than a chunk has in slices of few bytes, so that these end in time.
inline constexpr uint32_t kMostRoom = Chunk::kTokens - capture::kMaxToken;
inline constexpr uint32_t kLeastRoom = 8192;
extern uint32_t chunk_room;
inline constexpr uint32_t kNowhere = ~0U;
extern Context inactive;  // does not record

// The beginning of a unit that is recorded with what comes first in it, if anything comes (slices.h).
struct WaitingUnit {
  uint32_t label;
  uint64_t pc;
};
inline constexpr uint32_t kMostWaiting = 4;

// Initial-exec by construction: the runtime is linked into the executable.
struct Local {
  Context* context = &inactive;
  uint32_t interruptions = 0;  // by signal handlers
  uint32_t unrecorded = 0;     // how deep in functions that record what they have done (Unrecorded)
  uint32_t units = 0;          // open ones; more or fewer after siglongjmp
  uint32_t lock_code = 0;      // how deep in annotated code of a lock (tsan_interface.cpp)
  uint64_t allocates = 0;  // where the operator new or delete returns to that calls the allocator
  uint32_t ignored_loads = 0;  // how deep in code whose accesses are not to be reported
  uint32_t ignored_stores = 0;
  Thread* thread = nullptr;
  Thread* own = nullptr;   // that the kernel runs, while `thread` is a fiber
  bool off = false;        // a thread of the runtime, which has no `thread`, or one that has ended
  HandlerPlace handler{};  // slices.h: of the outermost one that runs; address 0: none
  uint32_t waiting =
      0;  // slices.h: open units of which nothing was recorded; `context` is `inactive`
  WaitingUnit waits[kMostWaiting] = {};
};
extern __thread Local local;

struct Thread {
  uint32_t number = 0;
  std::atomic<uint32_t> slice{0};  // slices.h: what it belongs to
  const Local* state = nullptr;    // of the thread, while it lives; under threads_lock
  uint32_t life = 0;               // how often this memory was another thread before
  Context* context = nullptr;      // innermost; nullptr: not begun, or ended
  Context* spare = nullptr;        // for handlers, linked by `outer`
  std::atomic<uint64_t> sequence{0};
  uint64_t bytes = 0;                    // in the chunks that were closed
  std::atomic<Chunk*> emptied{nullptr};  // that came back
  std::atomic<bool> busy{false};         // changes chunks; finish() waits for it
  uint64_t blocked = 0;                  // the signals that were, before it began to change chunks
  bool enters_handler = false;  // changes chunks to record a signal handler, which waits for that
  uint32_t returned = 0;        // emptied chunks when there was none to take (on_full=drop)
  bool muted = false;           // ended, or in a signal handler that has nowhere to record, ...
  HandlerPlace muted_in = {};   // ... which is this one
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
  } calls;            // likewise, for function_units.cpp
  bool gone = false;  // joined or detached: the handle may name another thread
  void* token = nullptr;
  void* token_memory = nullptr;   // where it is, or was
  std::atomic<bool> over{false};  // the thread touches nothing of this any more
  Thread* next = nullptr;
  Thread* next_in_round = nullptr;  // the writer thread's
};

// Thread::emptied of one that ended.
inline Chunk* const kEnded = reinterpret_cast<Chunk*>(1);

extern Options options;

// Not everything is recorded: accesses=sets (watched_memory.h), outside=stores.
extern bool selective;

// Atomic loads and stores by a mov are recorded and performed without more ado: no noise, no choice of memory, stamps
// that are shared.
extern bool simple_atomics;

// False: nothing is recorded in this process (no output, or it could not be opened).
extern bool recording;

// Recording ended before the program did: no system calls are made for it any more.
extern bool ended_early;

}  // namespace tsomon::probe
