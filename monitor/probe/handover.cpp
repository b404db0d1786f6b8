#include "monitor/probe/handover.h"

#include <cerrno>
#include <climits>
#include <cstring>
#include <new>

#include <concurrentqueue/concurrentqueue.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "decoders/capture/writer.h"
#include "monitor/probe/modules.h"
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
std::atomic<uint32_t> state{0};     // 0 recording, 1 finishing, 2 finished
std::atomic<bool> writer_sleeps{false};
std::atomic<uint32_t> takers_wait{0};
pid_t writer_id = 0;
uint32_t labels_written = 0;
uint64_t modules_seen = 0;

void wait_while(std::atomic<uint32_t>* word, uint32_t value, long milliseconds) {
  timespec time{milliseconds / 1000, (milliseconds % 1000) * 1000000};
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, milliseconds < 0 ? nullptr : &time, nullptr,
          0);
}
void wake(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void wake_writer() {
  given.fetch_add(1, std::memory_order_seq_cst);
  if (writer_sleeps.load(std::memory_order_seq_cst)) {
    wake(&given);
  }
}

// `pack`: with zstd, only on the writer thread; otherwise async-signal-safe.
void write(capture::ChunkType type, uint32_t thread, uint64_t sequence, const void* data,
           size_t size, bool pack) {
  if (pack && options.level != 0) {
    handover->file.write(type, thread, sequence, data, size);
  } else {
    handover->file.write_raw(type, thread, sequence, data, size);
  }
}

void write_labels(bool pack) {
  char buffer[4096];
  for (;;) {
    char* const end = copy_labels(&labels_written, buffer, buffer + sizeof buffer);
    if (end == buffer) {
      return;
    }
    write(capture::ChunkType::kLabels, capture::kNoThread, 0, buffer,
          static_cast<size_t>(end - buffer), pack);
  }
}

void write_parts(Chunk* chunk, bool pack) {
  for (uint32_t i = 0; i < chunk->part_count; ++i) {
    const Part& part = chunk->parts[i];
    write(capture::ChunkType::kEvents, chunk->thread, part.sequence, chunk->words + chunk->first,
          (part.end - chunk->first) * sizeof(uint64_t), pack);
    chunk->first = part.end;
  }
  chunk->part_count = 0;
}

void drain(bool pack, bool recycle) {
  Chunk* chunk = nullptr;
  while (handover->full.try_dequeue(chunk)) {
    write_labels(pack);
    write_parts(chunk, pack);
    if (recycle) {
      handover->empty.enqueue(handover->returning, chunk);
      returned.fetch_add(1, std::memory_order_seq_cst);
      if (takers_wait.load(std::memory_order_seq_cst) != 0) {
        wake(&returned);
      }
    }
  }
}

// Records that lie after the cut may have seen what other threads' streams no longer hold.
const uint64_t* cut_at(const uint64_t* at, const uint64_t* end, uint64_t cut) {
  while (at < end) {
    const uint32_t aux = capture::aux_of(at[0]);
    const RecordType type = capture::type_of(at[0]);
    const bool stamped = type != RecordType::kRangeRead && type != RecordType::kRangeWrite &&
                         type != RecordType::kLost && aux != 0;
    const uint64_t time = type == RecordType::kStamp ? at[1] : stamped ? at[2] : 0;
    if (time > cut) {
      return at;
    }
    at += 2 + aux;
  }
  return end;
}

void write_open(Thread* thread, Chunk* chunk, const uint64_t* end, uint64_t cut, bool pack) {
  write_parts(chunk, pack);
  const uint64_t* const begin = chunk->words + chunk->first;
  end = cut_at(begin, end, cut);
  thread->words += static_cast<uint64_t>(end - chunk->words);
  write(capture::ChunkType::kEvents, chunk->thread, chunk->open_sequence, begin,
        static_cast<size_t>(end - begin) * sizeof(uint64_t), pack);
}

void flush_everything(bool pack, bool recycle) {
  // A thread that is changing chunks finishes that first; the limit is for one that cannot.
  for (Thread* thread = threads(); thread != nullptr; thread = thread->next) {
    for (int tries = 0; thread->busy.load(std::memory_order_seq_cst) && tries < 2000; ++tries) {
      drain(pack, recycle);
      const timespec millisecond{0, 1000000};
      syscall(SYS_nanosleep, &millisecond, nullptr);
    }
  }
  const uint64_t cut = stamp();
  drain(pack, false);
  write_labels(pack);
  alignas(capture::EndEntry) char ends[64 * sizeof(capture::EndEntry)];
  size_t count = 0;
  for (Thread* thread = threads(); thread != nullptr; thread = thread->next) {
    const Local* const where = thread->where;
    if (where != nullptr) {
      for (Chunk* outer = thread->outer; outer != nullptr; outer = outer->next) {
        write_open(thread, outer, outer->interrupted, cut, pack);
      }
      const uint64_t* const cur = *const_cast<uint64_t* const volatile*>(&where->cur);
      if (thread->chunk != nullptr && cur != nullptr) {
        write_open(thread, thread->chunk, cur, cut, pack);
      }
    }
    capture::EndEntry entry;
    entry.thread = thread->number;
    entry.chunks = thread->sequence.load(std::memory_order_relaxed);
    entry.words = thread->words;
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

void write_modules_of_process() {
  size_t size = 0;
  const char* const data = describe_modules(&modules_seen, &size);
  if (data != nullptr) {
    write(capture::ChunkType::kModules, capture::kNoThread, 0, data, size, false);
  }
}

void* writer_thread(void*) {
  local.off = true;
  writer_id = static_cast<pid_t>(syscall(SYS_gettid));
  for (;;) {
    const uint32_t seen = given.load(std::memory_order_seq_cst);
    drain(true, true);
    if (state.load(std::memory_order_seq_cst) == 1) {
      flush_everything(true, true);
      state.store(2, std::memory_order_seq_cst);
      wake(&state);
    }
    writer_sleeps.store(true, std::memory_order_seq_cst);
    if (given.load(std::memory_order_seq_cst) == seen) {
      wait_while(&given, seen, -1);
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

Chunk* take_empty_chunk() {
  Chunk* chunk = nullptr;
  while (!handover->empty.try_dequeue(chunk)) {
    if (options.drop_when_full || finishing()) {
      return nullptr;
    }
    const uint32_t seen = returned.load(std::memory_order_seq_cst);
    takers_wait.fetch_add(1, std::memory_order_seq_cst);
    const bool found = handover->empty.try_dequeue(chunk);
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

void give_full_chunk(Thread* thread, Chunk* chunk) {
  auto* const token = static_cast<moodycamel::ProducerToken*>(thread->token);
  // The first needs memory only when more chunks are under way than the queue was made for.
  if (token != nullptr) {
    handover->full.enqueue(*token, chunk);
  } else {
    handover->full.enqueue(chunk);
  }
  wake_writer();
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
  writer_id = 0;
  labels_written = 0;
  modules_seen = 0;
  static char command_line[65536];
  capture::Writer::Options file_options;
  file_options.level = options.level;
  const int arguments = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (arguments >= 0) {
    const ssize_t size = ::read(arguments, command_line, sizeof command_line);
    file_options.command_line = command_line;
    file_options.command_line_size = size > 0 ? static_cast<size_t>(size) : 0;
    ::close(arguments);
  }
  file_options.keep_existing = options.keep_existing;
  int error = handover->file.open(path, file_options);
  if (error == EEXIST) {
    static char own_path[Options::kMaxText + 16];
    snprintf(own_path, sizeof own_path, "%s.%d", path, static_cast<int>(getpid()));
    path = own_path;
    file_options.keep_existing = false;  // of a process that ended long ago
    error = handover->file.open(path, file_options);
  }
  if (error != 0) {
    complain("cannot record to '%s': %s", path, strerror(error));
    return false;
  }
  write_modules_of_process();
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
  return true;
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
      for (int tries = 0; tries < 100 && state.load(std::memory_order_seq_cst) != 2; ++tries) {
        wait_while(&state, 1, 100);
      }
    }
    if (state.load(std::memory_order_seq_cst) != 2) {
      flush_everything(false, false);
      state.store(2, std::memory_order_seq_cst);
    }
    const int failed = handover->file.error();
    if (failed != 0) {
      complain("the capture is incomplete: writing failed with error %d", failed);
    }
  }
  errno = saved_errno;
}

}  // namespace tsomon::probe
