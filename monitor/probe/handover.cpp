#include "monitor/probe/handover.h"

#include <cerrno>
#include <climits>
#include <cstring>
#include <new>

#include <concurrentqueue/concurrentqueue.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "decoders/capture/writer.h"
#include "monitor/probe/copy.h"
#include "monitor/probe/modules.h"
#include "monitor/probe/not_instrumented.h"
#include "monitor/probe/packing.h"
#include "monitor/probe/process_clock.h"
#include "monitor/probe/real.h"

namespace tsomon::probe {

namespace {

// The queues take their memory from the kernel: the program may have replaced malloc.
struct QueueTraits : moodycamel::ConcurrentQueueDefaultTraits {
  static void* malloc(size_t size) { return take_memory(size); }
  static void free(void*) {
  }  // only at the end of the process, blocks are reused by the queue itself
};
using Queue = moodycamel::ConcurrentQueue<Chunk*, QueueTraits>;

struct Handover {
  Queue full{4096};
  Queue empty{4096};
  moodycamel::ProducerToken returning{empty};  // of the writer thread
  moodycamel::ProducerToken adding{empty};     // of add_chunks
  capture::Writer file;
};

alignas(Handover) char storage[sizeof(Handover)];
Handover* handover = nullptr;

// Futex words.
std::atomic<uint32_t> given{0};     // counts full chunks and requests to finish
std::atomic<uint32_t> returned{0};  // counts emptied chunks
std::atomic<uint32_t> unheard{0};   // full chunks of ended threads for which nobody was woken
std::atomic<uint32_t> state{0};     // 0 recording, 1 finishing, 2 finished
std::atomic<bool> writer_sleeps{false};
std::atomic<uint32_t> takers_wait{0};
pid_t writer_id = 0;
std::atomic<uint32_t> placed{0};  // where the file's descriptor is: not yet, kApart or kShared
constexpr uint32_t kApart = 1;
constexpr uint32_t kShared = 2;
uint32_t labels_written = 0;
uint32_t sets_written = 0;
size_t modules_written = 0;
Thread* in_rounds = nullptr;       // threads that have not ended, linked by next_in_round
Thread* last_in_rounds = nullptr;  // the first of threads() when `in_rounds` was made
Packing packing;

void wait_while(std::atomic<uint32_t>* word, uint32_t value, long milliseconds) {
  timespec time{milliseconds / 1000, (milliseconds % 1000) * 1000000};
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, milliseconds < 0 ? nullptr : &time, nullptr,
          0);
}
void wake(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

constexpr uint32_t kMostUnheard = 16;

void wake_writer() {
  unheard.store(0, std::memory_order_relaxed);
  given.fetch_add(1, std::memory_order_seq_cst);
  if (writer_sleeps.load(std::memory_order_seq_cst)) {
    wake(&given);
  }
}

// `pack`: with zstd, only on the writer thread; otherwise async-signal-safe.
void write(capture::ChunkType type, uint32_t thread, uint64_t sequence, const void* data,
           size_t size, bool pack) {
  if (pack &&
      (type == capture::ChunkType::kEvents ? packing.wanted(options, size) : options.level != 0)) {
    handover->file.write(type, thread, sequence, data, size);
  } else {
    handover->file.write_raw(type, thread, sequence, data, size);
  }
}

void write_labels(bool pack) {
  char buffer[4096];
  while (char* const end = copy_sets(&sets_written, buffer, buffer + sizeof buffer)) {
    write(capture::ChunkType::kSets, capture::kNoThread, 0, buffer,
          static_cast<size_t>(end - buffer), pack);
  }
  for (char* end = nullptr; (end = copy_thread_names(buffer, buffer + sizeof buffer)) != buffer;) {
    write(capture::ChunkType::kThreadNames, capture::kNoThread, 0, buffer,
          static_cast<size_t>(end - buffer), pack);
  }
  for (;;) {
    char* const end = copy_labels(&labels_written, buffer, buffer + sizeof buffer);
    if (end == buffer) {
      return;
    }
    write(capture::ChunkType::kLabels, capture::kNoThread, 0, buffer,
          static_cast<size_t>(end - buffer), pack);
  }
}

void write_modules() {
  size_t size = 0;
  if (const char* const data = noted_modules(&modules_written, &size)) {
    write(capture::ChunkType::kModules, capture::kNoThread, 0, data, size, false);
  }
  char buffer[4096];
  for (char* end = nullptr;
       (end = copy_not_instrumented(buffer, buffer + sizeof buffer)) != buffer;) {
    write(capture::ChunkType::kNotInstrumented, capture::kNoThread, 0, buffer,
          static_cast<size_t>(end - buffer), false);
  }
}

// Its owner ended: Thread::emptied.
Chunk* const kEnded = reinterpret_cast<Chunk*>(1);

void recycle(Chunk* chunk) {
  Chunk* none = nullptr;
  if (!chunk->owner->emptied.compare_exchange_strong(none, chunk, std::memory_order_acq_rel)) {
    handover->empty.enqueue(handover->returning, chunk);
  }
  returned.fetch_add(1, std::memory_order_seq_cst);
  if (takers_wait.load(std::memory_order_seq_cst) != 0) {
    wake(&returned);
  }
}

// The measurement that was made last.
void write_clock() {
  if (const capture::ClockEntry* const entry = clock_entry()) {
    write(capture::kClockChunk, capture::kNoThread, 0, entry, sizeof *entry, false);
  }
}

void drain(bool pack, bool keep) {
  Chunk* chunk = nullptr;
  while (handover->full.try_dequeue(chunk)) {
    if (chunk->size != 0) {
      write_labels(pack);
      write(capture::ChunkType::kEvents, chunk->owner->number, chunk->sequence, &chunk->start,
            chunk->size, pack);
    }
    if (!keep) {
      recycle(chunk);
    }
  }
}

// What lies in a chunk whose owner may be going on.
void write_open(Thread* thread, const Context& context, bool pack) {
  alignas(64) static uint8_t payload[sizeof(Chunk) + kMostHeld];
  capture::Position position;
  if (context.chunk == nullptr || !capture::snapshot(context.encoder, &position)) {
    return;
  }
  const Chunk& chunk = *context.chunk;
  size_t size = sizeof chunk.start + position.end;
  copy(payload, &chunk.start, size);
  if (position.count != 0) {
    size += capture::put_end(payload + size, position);
  } else {
    size += copy_held(context, position.end, payload + size);
  }
  thread->bytes += size;
  write(capture::ChunkType::kEvents, thread->number, chunk.sequence, payload, size, pack);
}

void flush_everything(bool pack, bool keep) {
  // A thread that is changing chunks finishes that first; the limit is for one that cannot.
  for (Thread* thread = threads(); thread != nullptr; thread = thread->next) {
    for (int tries = 0; thread->busy.load(std::memory_order_seq_cst) && tries < 2000; ++tries) {
      drain(pack, keep);
      const timespec millisecond{0, 1000000};
      syscall(SYS_nanosleep, &millisecond, nullptr);
    }
  }
  const uint64_t cut = stamp();
  if (pack && next_measurement() >= 0 && measure_clock(true)) {
    write_clock();
  }
  drain(pack, true);
  write_labels(pack);
  write_modules();
  alignas(capture::EndEntry) char ends[64 * sizeof(capture::EndEntry)];
  size_t count = 0;
  for (Thread* thread = threads(); thread != nullptr; thread = thread->next) {
    for (const Context* context = thread->context; context != nullptr; context = context->outer) {
      write_open(thread, *context, pack);
    }
    capture::EndEntry entry;
    entry.thread = thread->number;
    entry.chunks = thread->sequence.load(std::memory_order_relaxed);
    entry.bytes = thread->bytes;
    entry.cut = cut;
    entry.lost = thread->lost.load(std::memory_order_relaxed) - thread->lost_reported;
    std::memcpy(ends + count * sizeof entry, &entry, sizeof entry);
    if (++count == 64) {
      write(capture::ChunkType::kEnd, capture::kNoThread, 0, ends, sizeof ends, false);
      count = 0;
    }
  }
  write(capture::ChunkType::kEnd, capture::kNoThread, 0, ends, count * sizeof(capture::EndEntry),
        false);
}

// Live: what the thread has recorded so far, and what that says about its accesses. False: the
// thread promises nothing now.
//
// All threads passed a full barrier after `since` was taken. What a thread stored before its
// barrier is seen here; so what is not seen was stored after it, and comes after `since`, as do the
// accesses that follow a record. A stamp is taken before it is recorded, and a load of an atomic
// performed: `announced` tells.
bool observe(Thread* thread, uint64_t since) {
  alignas(64) static uint8_t payload[sizeof(capture::OpenEntry) + sizeof(Chunk)];
  if (thread->busy.load(std::memory_order_seq_cst)) {
    return false;
  }
  Context* const context = *const_cast<Context* volatile*>(&thread->context);
  if (context == nullptr) {
    return true;  // not begun, or ended: its chunks are in the queue
  }
  Chunk* const chunk = *const_cast<Chunk* volatile*>(&context->chunk);
  if (chunk == nullptr) {
    return true;  // nothing can be recorded before the next chunk, which begins with a stamp
  }
  const volatile Context& seen = *context;
  const uint32_t announced_at = seen.announced;
  const bool announced = announced_at == seen.encoder.end + 1 || seen.encoder.before != 0 ||
                         thread->unrecorded.load(std::memory_order_relaxed) ||
                         seen.repeats.word != 0;
  capture::Position position;
  if (context->outer != nullptr || !capture::snapshot(context->encoder, &position) ||
      position.count == capture::kMaxCount) {
    return false;
  }
  capture::OpenEntry entry;
  size_t size = sizeof entry;
  const bool changed = thread->told_chunk != chunk->sequence + 1 ||
                       thread->told.end != position.end || thread->told.slot != position.slot ||
                       thread->told.count != position.count;
  if (changed) {
    copy(payload + size, &chunk->start, sizeof chunk->start + position.end);
    size += sizeof chunk->start + position.end;
    if (position.count != 0) {
      size += capture::put_end(payload + size, position);
    }
  }
  const uint64_t sequence = chunk->sequence;
  entry.since = announced ? 0 : since;
  entry.until = stamp();
  copy(payload, &entry, sizeof entry);
  // A chunk that was changed meanwhile has another address: none is used again before drain().
  if (thread->busy.load(std::memory_order_seq_cst) ||
      *const_cast<Context* volatile*>(&thread->context) != context ||
      *const_cast<Chunk* volatile*>(&context->chunk) != chunk) {
    return false;
  }
  drain(true, false);  // what stands before it
  write_labels(true);
  write(capture::ChunkType::kOpen, thread->number, sequence, payload, size, true);
  thread->told_chunk = sequence + 1;
  thread->told = position;
  return !announced;
}

// Of a thread that fills its chunks slowly: what its chunk, and those of handlers, have got since
// the last look. A chunk is looked at when it is the same as at the look before: what it holds
// may be that old.
void write_parts(Thread* thread) {
  alignas(64) static uint8_t payload[sizeof(capture::PartEntry) + sizeof(Chunk) + kMostHeld];
  for (const Context* context = *const_cast<Context* volatile*>(&thread->context);
       context != nullptr; context = context->outer) {
    Chunk* const chunk = *const_cast<Chunk* volatile*>(&context->chunk);
    capture::Position position;
    if (thread->busy.load(std::memory_order_seq_cst) || chunk == nullptr ||
        !capture::snapshot(context->encoder, &position)) {
      return;
    }
    const uint64_t sequence = chunk->sequence;
    if (chunk->looked != sequence + 1) {
      chunk->looked = sequence + 1;
      chunk->told = {};
      continue;
    }
    const auto size = static_cast<uint32_t>(sizeof chunk->start + position.end);
    const bool holds = context->repeats.word != 0;
    if (!holds && chunk->told.end == size && chunk->told.slot == position.slot &&
        chunk->told.count == position.count) {
      continue;
    }
    capture::PartEntry entry;
    entry.from = chunk->told.end;
    uint8_t* const bytes = payload + sizeof entry;
    copy(bytes, reinterpret_cast<const uint8_t*>(&chunk->start) + entry.from, size - entry.from);
    size_t all = sizeof entry + size - entry.from;
    if (position.count != 0) {
      entry.tail = capture::put_end(payload + all, position);
    } else {
      entry.tail = copy_held(*context, position.end, payload + all);
    }
    all += entry.tail;
    copy(payload, &entry, sizeof entry);
    // None of it is used again before drain(), which this thread does.
    if (thread->busy.load(std::memory_order_seq_cst) ||
        *const_cast<Chunk* volatile*>(&context->chunk) != chunk || chunk->sequence != sequence) {
      return;
    }
    write_labels(true);
    write(capture::ChunkType::kPart, thread->number, sequence, payload, all, true);
    chunk->told = {size, position.slot, position.count};
  }
}

// The threads of a round. Not all there ever were: programs start millions.
void follow_threads() {
  Thread* const newest = threads();
  for (Thread* thread = newest; thread != last_in_rounds; thread = thread->next) {
    thread->next_in_round = in_rounds;
    in_rounds = thread;
  }
  last_in_rounds = newest;
  for (Thread** link = &in_rounds; *link != nullptr;) {
    if ((*link)->emptied.load(std::memory_order_acquire) == kEnded) {
      *link = (*link)->next_in_round;
    } else {
      link = &(*link)->next_in_round;
    }
  }
}

void write_round() {
  constexpr uint32_t kMax = 4096;
  alignas(8) static struct {
    capture::RoundEntry entry;
    uint32_t silent[kMax];
  } round;
  round.entry.since = stamp();
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) {
    return;
  }
  uint32_t count = 0;
  follow_threads();
  for (Thread* thread = in_rounds; thread != nullptr; thread = thread->next_in_round) {
    if (!observe(thread, round.entry.since)) {
      if (count == kMax) {
        return;  // too many to say so
      }
      round.silent[count++] = thread->number;
    }
  }
  drain(true, false);
  write(capture::ChunkType::kRound, capture::kNoThread, 0, &round,
        sizeof round.entry + count * sizeof(uint32_t), false);
}

// So that a process that is killed leaves all that is older than a second. Live rounds tell what
// threads do outside of signal handlers.
constexpr long kLook = 400;  // milliseconds: twice that, and the time of writing
void look_at_parts() {
  follow_threads();
  for (Thread* thread = in_rounds; thread != nullptr; thread = thread->next_in_round) {
    const Context* const context = *const_cast<Context* volatile*>(&thread->context);
    if (context != nullptr && (options.live == 0 || context->outer != nullptr)) {
      write_parts(thread);
    }
  }
}

uint64_t milliseconds() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000 + static_cast<uint64_t>(time.tv_nsec) / 1000000;
}

void* writer_thread(void*) {
  local.off = true;
  writer_id = static_cast<pid_t>(syscall(SYS_gettid));
  placed.store(handover->file.file().keep_apart() ? kApart : kShared, std::memory_order_seq_cst);
  wake(&placed);
  uint64_t next_round = 0;
  uint64_t next_look = 0;
  for (;;) {
    const uint32_t seen = given.load(std::memory_order_seq_cst);
    drain(true, false);
    const bool finishes = state.load(std::memory_order_seq_cst) == 1;
    note_modules();
    write_modules();
    if (finishes) {
      flush_everything(true, false);
      state.store(2, std::memory_order_seq_cst);
      wake(&state);
    }
    const bool records = state.load(std::memory_order_seq_cst) == 0;
    if (records && next_measurement() == 0) {
      write_clock();  // again: what stands before it comes before the new one (clock_margin.h)
      if (measure_clock(false)) {
        write_clock();
      }
    }
    const bool live = options.live != 0 && records;
    if (live && milliseconds() >= next_round) {
      write_round();
      next_round = milliseconds() + options.live;
    }
    const bool over = state.load(std::memory_order_seq_cst) != 0;
    if (!over && milliseconds() >= next_look) {
      look_at_parts();
      next_look = milliseconds() + kLook;
    }
    writer_sleeps.store(true, std::memory_order_seq_cst);
    if (given.load(std::memory_order_seq_cst) == seen) {
      const long clock = records ? next_measurement() : -1;
      long wait = over ? -1 : kLook;
      for (const long other : {clock, live ? static_cast<long>(options.live) : -1}) {
        wait = other >= 0 && (wait < 0 || other < wait) ? other : wait;
      }
      wait_while(&given, seen, wait);
    }
    writer_sleeps.store(false, std::memory_order_seq_cst);
  }
  return nullptr;
}

}  // namespace

void* take_memory(size_t size) {
  static std::atomic<uint64_t> next{0};
  static std::atomic<uint64_t> last{0};
  constexpr size_t kBlock = size_t{1} << 20;
  size = (size + 63) & ~size_t{63};
  if (size < kBlock / 4) {
    // A race for a new block wastes what is left of one of them.
    const uint64_t limit = last.load(std::memory_order_acquire);
    const uint64_t at = next.fetch_add(size, std::memory_order_acq_rel);
    if (at != 0 && at + size <= limit && at + kBlock >= limit) {
      return reinterpret_cast<void*>(at);
    }
  }
  const size_t wanted = size < kBlock / 4 ? kBlock : size;
  void* const memory = mmap(nullptr, wanted, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return nullptr;
  }
  if (wanted == kBlock && size < kBlock / 4) {
    const auto base = reinterpret_cast<uint64_t>(memory);
    last.store(0, std::memory_order_release);
    next.store(base + size, std::memory_order_release);
    last.store(base + kBlock, std::memory_order_release);
  }
  return memory;
}

void wait_until_finished() {
  while (state.load(std::memory_order_seq_cst) == 1) {
    wait_while(&state, 1, 100);
  }
}

bool finishing() { return state.load(std::memory_order_seq_cst) != 0; }

uint32_t chunks_returned() { return returned.load(std::memory_order_relaxed); }

Chunk* take_empty_chunk(Thread* thread) {
  // One that came back is still in the caches.
  Chunk* chunk = thread->emptied.exchange(nullptr, std::memory_order_acq_rel);
  if (chunk != nullptr) {
    return chunk;
  }
  while (!handover->empty.try_dequeue(chunk)) {
    if (unheard.load(std::memory_order_relaxed) != 0) {
      wake_writer();
    }
    if (options.drop_when_full || finishing()) {
      return nullptr;
    }
    const uint32_t seen = returned.load(std::memory_order_seq_cst);
    takers_wait.fetch_add(1, std::memory_order_seq_cst);
    chunk = thread->emptied.exchange(nullptr, std::memory_order_acq_rel);
    const bool found = chunk != nullptr || handover->empty.try_dequeue(chunk);
    if (!found) {
      wait_while(&returned, seen, 100);
    }
    takers_wait.fetch_sub(1, std::memory_order_seq_cst);
    if (found) {
      break;
    }
  }
  return chunk;
}

void give_up_emptied(Thread* thread) {
  Chunk* const chunk = thread->emptied.exchange(kEnded, std::memory_order_acq_rel);
  if (chunk != nullptr) {
    chunk->size = 0;
    give_full_chunk(thread, chunk, true);
  }
}

void give_full_chunk(Thread* thread, Chunk* chunk, bool ends) {
  auto* const token = static_cast<moodycamel::ProducerToken*>(thread->token);
  // The first needs memory only when more chunks are under way than the queue was made for.
  if (token != nullptr) {
    handover->full.enqueue(*token, chunk);
  } else {
    handover->full.enqueue(chunk);
  }
  if (!ends || unheard.fetch_add(1, std::memory_order_relaxed) + 1 >= kMostUnheard ||
      handover->empty.size_approx() < kMostUnheard) {
    wake_writer();
  }
}

void add_chunks(size_t count) {
  if (count == 0) {
    return;
  }
  auto* const memory =
      static_cast<char*>(mmap(nullptr, count * sizeof(Chunk), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (memory == MAP_FAILED) {
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    auto* const chunk = reinterpret_cast<Chunk*>(memory + i * sizeof(Chunk));  // zeroed
    handover->empty.enqueue(handover->adding, chunk);
  }
}

void* new_token() {
  void* const memory = take_memory(sizeof(moodycamel::ProducerToken));
  return memory != nullptr ? new (memory) moodycamel::ProducerToken(handover->full) : nullptr;
}
void free_token(void* token) {
  if (token != nullptr) {
    static_cast<moodycamel::ProducerToken*>(token)->~ProducerToken();
  }
}

bool start_handover(const char* path) {
  handover = new (storage) Handover;
  state.store(0, std::memory_order_relaxed);
  writer_sleeps.store(false, std::memory_order_relaxed);
  takers_wait.store(0, std::memory_order_relaxed);
  unheard.store(0, std::memory_order_relaxed);
  writer_id = 0;
  placed.store(0, std::memory_order_relaxed);
  labels_written = 0;
  sets_written = 0;
  modules_written = 0;
  forget_not_instrumented();
  in_rounds = nullptr;
  last_in_rounds = nullptr;
  packing = Packing();
  static char command_line[65536];
  capture::Writer::Options file_options;
  file_options.level = options.level;
  file_options.unordered_stamps = options.clock_unused;
  file_options.selection = (options.only_sets ? capture::kFileOnlySets : 0) |
                           (options.stores_outside ? capture::kFileStoresOutside : 0);
  file_options.may_cancel = may_cancel_units();
  const int arguments = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (arguments >= 0) {
    const ssize_t size = ::read(arguments, command_line, sizeof command_line);
    file_options.command_line = command_line;
    file_options.command_line_size = size > 0 ? static_cast<size_t>(size) : 0;
    ::close(arguments);
  }
  file_options.keep_existing = options.keep_existing;
  file_options.live = options.live != 0;
  if (options.live != 0 &&
      syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0) {
    complain("live recording needs membarrier(2), which this kernel refuses: %s", strerror(errno));
    return false;
  }
  int error = handover->file.open(path, file_options);
  struct stat existing {};
  if (error == EEXIST && ::stat(path, &existing) == 0 && !S_ISREG(existing.st_mode)) {
    complain("cannot record to '%s': it is no file", path);
    return false;
  }
  if (error == EEXIST) {
    static char own_path[Options::kMaxText + 16];
    snprintf(own_path, sizeof own_path, "%s.%d", path, static_cast<int>(getpid()));
    path = own_path;
    file_options.keep_existing = false;  // of a process that ended long ago
    error = handover->file.open(path, file_options);
  }
  if (error != 0) {
    complain("cannot record to '%s': %s", path,
             error == capture::kNotACapture ? "it exists and is not a capture" : strerror(error));
    return false;
  }
  write_clock();
  note_modules();
  write_modules();
  add_chunks(options.buffer / sizeof(Chunk) + 1);

  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  real_pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_t thread{};
  const int failed = real_pthread_create(&thread, nullptr, writer_thread, nullptr);
  real_pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (failed != 0) {
    complain("cannot start the thread that writes the capture: %s", strerror(failed));
    return false;
  }
  pthread_detach(thread);
  while (placed.load(std::memory_order_seq_cst) == 0) {
    wait_while(&placed, 0, -1);
  }
  if (placed.load(std::memory_order_relaxed) == kApart) {
    handover->file.file().leave_program();
  }
  return true;
}

void leave_handover() {
  if (handover != nullptr) {
    handover->file.file().close_inherited();
  }
}

void finish() {
  if (!recording || handover == nullptr) {
    return;
  }
  const int saved_errno = errno;
  uint32_t expected = 0;
  state.compare_exchange_strong(expected, 1, std::memory_order_seq_cst);
  if (expected != 2) {
    const bool on_writer = static_cast<pid_t>(syscall(SYS_gettid)) == writer_id;
    if (!on_writer) {
      wake_writer();
      // A crashed program may have stopped the writer thread: then this thread does its work.
      // In a pipe two writers would tear each other's chunks: there it is waited for longer.
      const int most = options.live != 0 ? 6000 : 100;
      for (int tries = 0; tries < most && state.load(std::memory_order_seq_cst) != 2; ++tries) {
        wait_while(&state, 1, 100);
      }
    }
    if (state.load(std::memory_order_seq_cst) != 2) {
      flush_everything(false, true);
      state.store(2, std::memory_order_seq_cst);
    }
    const int failed = handover->file.error();
    if (failed != 0) {
      complain("the capture is incomplete: %s",
               failed == EBADF ? "the program closed its descriptor, and the file is not at its "
                                 "path any more"
                               : strerrordesc_np(failed));
    }
  }
  errno = saved_errno;
}

}  // namespace tsomon::probe
