#include "monitor/probe/chunk_writer.h"

#include <cerrno>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "decoders/capture/kernel_calls.h"
#include "decoders/capture/writer.h"
#include "monitor/probe/chunk_pool.h"
#include "monitor/probe/copy.h"
#include "monitor/probe/futex.h"
#include "monitor/probe/last_thread.h"
#include "monitor/probe/modules.h"
#include "monitor/probe/not_instrumented.h"
#include "monitor/probe/open_chunks.h"
#include "monitor/probe/packing.h"
#include "monitor/probe/process_clock.h"
#include "monitor/probe/real.h"
#include "monitor/probe/recorded_threads.h"
#include "monitor/probe/slices.h"

TSOMON_REAL(pthread_tryjoin_np)

namespace tsomon::probe {

namespace {

alignas(capture::Writer) char storage[sizeof(capture::Writer)];
capture::Writer* output = nullptr;

std::atomic<uint32_t> state{0};          // a futex word: 0 recording, 1 finishing, 2 finished
std::atomic<bool> writer_leaves{false};  // when all is written
std::atomic<bool> writer_pauses{false};
pthread_t writer{};
pid_t writer_id = 0;
std::atomic<uint32_t> placed{0};  // where the file's descriptor is: not yet, kApart or kShared
constexpr uint32_t kApart = 1;
constexpr uint32_t kShared = 2;
uint32_t labels_written = 0;
uint32_t sets_written = 0;
size_t modules_written = 0;
Packing packing;
bool has_chunks = false;  // for slices

// What a live recording is read by: its state; "": no live recording, or not known.
char reader_state[32];

void note_reader(const char* path) {
  constexpr char kFolder[] = "/proc/";
  reader_state[0] = '\0';
  if (options.live == 0 || std::strncmp(path, kFolder, sizeof kFolder - 1) != 0) {
    return;
  }
  size_t size = sizeof kFolder - 1;
  while (path[size] >= '0' && path[size] <= '9') {
    ++size;
  }
  if (size + sizeof "/stat" <= sizeof reader_state) {
    std::memcpy(reader_state, path, size);
    std::memcpy(reader_state + size, "/stat", sizeof "/stat");
  }
}

bool reader_is_stopped() {
  const char state = reader_state[0] != '\0' ? process_state(reader_state) : '\0';
  return state == 'T' || state == 't';
}

}  // namespace

bool writer_is_gone() {
  return writer_id != 0 && syscall(SYS_tgkill, getpid(), writer_id, 0) != 0 && errno == ESRCH;
}

void write_chunk(capture::ChunkType type, uint32_t thread, uint64_t sequence, const void* data,
                 size_t size, bool pack) {
  if (pack &&
      (type == capture::ChunkType::kEvents ? packing.wanted(options, size) : options.level != 0)) {
    output->write(type, thread, sequence, data, size);
  } else {
    output->write_raw(type, thread, sequence, data, size);
  }
}

void write_labels(bool pack) {
  char buffer[4096];
  while (char* const end = copy_sets(&sets_written, buffer, buffer + sizeof buffer)) {
    write_chunk(capture::ChunkType::kSets, capture::kNoThread, 0, buffer,
                static_cast<size_t>(end - buffer), pack);
  }
  for (char* end = nullptr;
       (end = copy_not_understood(buffer, buffer + sizeof buffer)) != buffer;) {
    write_chunk(capture::ChunkType::kNotInstrumented, capture::kNoThread, 0, buffer,
                static_cast<size_t>(end - buffer), false);
  }
  for (char* end = nullptr; (end = copy_thread_names(buffer, buffer + sizeof buffer)) != buffer;) {
    write_chunk(capture::ChunkType::kThreadNames, capture::kNoThread, 0, buffer,
                static_cast<size_t>(end - buffer), pack);
  }
  for (;;) {
    char* const end = copy_labels(&labels_written, buffer, buffer + sizeof buffer);
    if (end == buffer) {
      return;
    }
    write_chunk(capture::ChunkType::kLabels, capture::kNoThread, 0, buffer,
                static_cast<size_t>(end - buffer), pack);
  }
}

namespace {

void write_modules() {
  size_t size = 0;
  if (const char* const data = noted_modules(&modules_written, &size)) {
    write_chunk(capture::ChunkType::kModules, capture::kNoThread, 0, data, size, false);
  }
  char buffer[4096];
  for (char* end = nullptr;
       (end = copy_not_instrumented(buffer, buffer + sizeof buffer)) != buffer;) {
    write_chunk(capture::ChunkType::kNotInstrumented, capture::kNoThread, 0, buffer,
                static_cast<size_t>(end - buffer), false);
  }
}

uint64_t bytes_of_slice = 0;  // of the thread that writes

// The measurement that was made last.
void write_clock() {
  if (const capture::ClockEntry* const entry = clock_entry()) {
    write_chunk(capture::kClockChunk, capture::kNoThread, 0, entry, sizeof *entry, false);
  }
}

}  // namespace

void drain(bool pack, bool keep) {
  while (Chunk* const chunk = take_full_chunk()) {
    // A thread that was held up while it handed its chunk over does so in the next slice.
    if (chunk->size != 0 && (!controlled || takes_part(chunk->owner))) {
      write_labels(pack);
      bytes_of_slice += chunk->size;
      write_chunk(capture::ChunkType::kEvents, chunk->owner->number, chunk->sequence, &chunk->start,
                  chunk->size, pack);
    }
    if (!keep) {
      recycle_chunk(chunk);
    }
  }
}

namespace {

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
  if (pack && next_measurement() >= 0 &&
      measure_clock(controlled ? ClockLook::kSliceEnds : ClockLook::kEnds)) {
    write_clock();
  }
  drain(pack, !controlled);
  bytes_of_slice = 0;
  write_labels(pack);
  write_modules();
  alignas(capture::EndEntry) char ends[64 * sizeof(capture::EndEntry)];
  size_t count = 0;
  for (Thread* thread = threads(); thread != nullptr; thread = thread->next) {
    if (!takes_part(thread)) {
      continue;
    }
    for (const Context* context = thread->context; context != nullptr; context = context->outer) {
      write_open(thread, *context, pack);
    }
    capture::EndEntry entry;
    entry.thread = thread->number;
    entry.chunks = thread->sequence.load(std::memory_order_relaxed);
    entry.bytes = thread->bytes;
    bytes_of_slice += entry.bytes;
    entry.cut = cut;
    entry.lost = thread->lost.load(std::memory_order_relaxed) - thread->lost_reported;
    std::memcpy(ends + count * sizeof entry, &entry, sizeof entry);
    if (++count == 64) {
      write_chunk(capture::ChunkType::kEnd, capture::kNoThread, 0, ends, sizeof ends, false);
      count = 0;
    }
  }
  write_chunk(capture::ChunkType::kEnd, capture::kNoThread, 0, ends,
              count * sizeof(capture::EndEntry), false);
}

uint64_t milliseconds() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000 + static_cast<uint64_t>(time.tv_nsec) / 1000000;
}

void* writer_thread(void*) {
  local.off = true;
  writer_id = static_cast<pid_t>(syscall(SYS_gettid));
  placed.store(output->file().keep_apart() ? kApart : kShared, std::memory_order_seq_cst);
  futex_wake(&placed);
  uint64_t next_round = 0;
  uint64_t next_look = 0;
  bool alone = false;
  for (;;) {
    const uint32_t seen = chunks_given();
    if (writer_leaves.load(std::memory_order_seq_cst) &&
        state.load(std::memory_order_seq_cst) == 2) {
      return nullptr;
    }
    drain(true, false);
    if (writer_pauses.load(std::memory_order_seq_cst)) {
      return nullptr;
    }
    const bool finishes = state.load(std::memory_order_seq_cst) == 1;
    note_modules();
    write_modules();
    if (finishes) {
      flush_everything(true, false);
      state.store(2, std::memory_order_seq_cst);
      futex_wake(&state);
      if (alone) {
        end_clock();
        kernel::call(SYS_exit, exit_status());
      }
    }
    const bool records = state.load(std::memory_order_seq_cst) == 0;
    if (records && next_measurement() == 0) {
      write_clock();  // again: what stands before it comes before the new one (clock_margin.h)
      if (measure_clock(ClockLook::kRuns)) {
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
      uint32_t recording = 0;
      if (only_own_threads(1 + clock_threads()) &&
          state.compare_exchange_strong(recording, 1, std::memory_order_seq_cst)) {
        alone = true;
        continue;
      }
    }
    const long clock = records ? next_measurement() : -1;
    long wait = over ? -1 : kLook;
    for (const long other : {clock, live ? static_cast<long>(options.live) : -1}) {
      wait = other >= 0 && (wait < 0 || other < wait) ? other : wait;
    }
    wait_for_chunks(seen, wait < 0 ? wait : wait * 1000);
  }
  return nullptr;
}

}  // namespace

void wait_until_finished() {
  while (state.load(std::memory_order_seq_cst) == 1) {
    if (!futex_wait(&state, 1, 100'000) && writer_is_gone()) {
      return;
    }
  }
}

bool finishing() { return state.load(std::memory_order_seq_cst) != 0; }

namespace {

void prepare(uint32_t first_state) {
  prepare_chunk_pool();
  output = new (storage) capture::Writer;
  has_chunks = false;
  state.store(first_state, std::memory_order_relaxed);
  writer_id = 0;
  placed.store(0, std::memory_order_relaxed);
}

// What is told once in each file.
void tell_again() {
  labels_written = 0;
  sets_written = 0;
  modules_written = 0;
  forget_not_instrumented();
  forget_rounds();
  packing = Packing();
}

capture::Writer::Options options_of_file() {
  static char command_line[65536];
  capture::Writer::Options file;
  file.level = options.level;
  file.unordered_stamps = options.clock_unused;
  file.selection = (options.only_sets ? capture::kFileOnlySets : 0) |
                   (options.stores_outside ? capture::kFileStoresOutside : 0);
  file.may_cancel = may_cancel_units();
  file.slice = controlled;
  const int arguments = kernel::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (arguments >= 0) {
    const ssize_t size = kernel::read(arguments, command_line, sizeof command_line);
    file.command_line = command_line;
    file.command_line_size = size > 0 ? static_cast<size_t>(size) : 0;
    kernel::close(arguments);
  }
  return file;
}

}  // namespace

void prepare_chunk_writer() { prepare(2); }

int open_slice(int descriptor) {
  tell_again();
  bytes_of_slice = 0;
  if (const int error = output->open(descriptor, options_of_file()); error != 0) {
    return error;
  }
  if (!has_chunks) {
    has_chunks = true;
    const Guard guard(&threads_lock);
    add_chunks(options.buffer / sizeof(Chunk) + 1);
  }
  writer_id = static_cast<pid_t>(syscall(SYS_gettid));
  write_clock();
  note_modules();
  write_modules();
  return 0;
}

void take_chunks() { state.store(0, std::memory_order_seq_cst); }

bool write_slice(long microseconds) {
  const uint32_t seen = chunks_given();
  drain(true, false);
  if (!finishing()) {
    wait_for_chunks(seen, microseconds);
  }
  drain(true, false);
  return !finishing();
}

uint64_t slice_bytes() { return bytes_of_slice; }

int finish_slice() {
  state.store(1, std::memory_order_seq_cst);
  note_modules();
  write_modules();
  flush_everything(true, false);
  const int error = output->error();
  output->close();
  return error;
}

void let_program_end() {
  state.store(2, std::memory_order_seq_cst);
  futex_wake(&state);
  wake_takers();
}

namespace {

bool start_writer() {
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  real_pthread_sigmask(SIG_SETMASK, &all, &old);
  writer_leaves.store(false, std::memory_order_relaxed);
  const int failed = real_pthread_create(&writer, nullptr, writer_thread, nullptr);
  real_pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (failed != 0) {
    warn("cannot start the thread that writes the capture: %s", strerror(failed));
    return false;
  }
  while (placed.load(std::memory_order_seq_cst) == 0) {
    if (!futex_wait(&placed, 0, 100'000) && real_pthread_tryjoin_np(writer, nullptr) == 0) {
      warn(
          "the thread that writes the capture was ended at its start: is there a filter of system "
          "calls (seccomp)?");
      return false;
    }
  }
  if (placed.load(std::memory_order_relaxed) == kApart) {
    output->file().leave_program();
  }
  return true;
}

}  // namespace

bool start_chunk_writer(const char* path) {
  prepare(0);
  tell_again();
  capture::Writer::Options file_options = options_of_file();
  file_options.keep_existing = options.keep_existing;
  file_options.live = options.live != 0;
  if (options.live != 0 &&
      syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0) {
    warn("live recording needs membarrier(2), which this kernel refuses: %s", strerror(errno));
    return false;
  }
  note_reader(path);
  int error = output->open(path, file_options);
  struct stat existing {};
  if (error == EEXIST && kernel::stat(path, &existing) == 0 && !S_ISREG(existing.st_mode)) {
    warn("cannot record to '%s': it is no file", path);
    return false;
  }
  if (error == EEXIST) {
    static char own_path[Options::kMaxText + 16];
    snprintf(own_path, sizeof own_path, "%s.%d", path, static_cast<int>(getpid()));
    path = own_path;
    file_options.keep_existing = false;  // of a process that ended long ago
    error = output->open(path, file_options);
  }
  if (error != 0) {
    warn("cannot record to '%s': %s", path,
         error == capture::kNotACapture ? "it exists and is not a capture" : strerror(error));
    return false;
  }
  write_clock();
  note_modules();
  write_modules();
  add_chunks(options.buffer / sizeof(Chunk) + 1);
  return start_writer();
}

bool pause_chunk_writer() {
  const int fd = output->file().open_for_program();
  if (fd < 0) {
    return false;
  }
  writer_pauses.store(true, std::memory_order_seq_cst);
  wake_writer();
  real_pthread_join(writer, nullptr);
  end_clock();
  output->file().come_back(fd);
  return true;
}

bool continue_chunk_writer() {
  writer_pauses.store(false, std::memory_order_seq_cst);
  placed.store(0, std::memory_order_relaxed);
  if (next_measurement() >= 0) {
    continue_clock();
  }
  return start_writer();
}

void leave_chunk_writer() {
  if (output != nullptr) {
    output->file().close_inherited();
  }
}

void finish() {
  // After so many tenths of a second in which the reader is stopped the process ends without what it has not read.
  constexpr int kMostStopped = 20;
  if (!recording || output == nullptr) {
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
      // In a pipe two writers would tear each other's chunks: there it is waited for longer, while
      // somebody may read it.
      const int most = options.live != 0 ? 6000 : 100;
      int stopped = 0;
      for (int tries = 0; tries < most && state.load(std::memory_order_seq_cst) != 2; ++tries) {
        if (!futex_wait(&state, 1, 100'000)) {
          stopped = reader_is_stopped() ? stopped + 1 : 0;
          if (stopped >= kMostStopped || writer_is_gone()) {
            break;
          }
        }
      }
    }
    if (state.load(std::memory_order_seq_cst) != 2) {
      if (options.live == 0 || writer_is_gone()) {
        flush_everything(false, true);
      } else {
        warn("the recording is not whole: whoever reads it does not go on");
      }
      state.store(2, std::memory_order_seq_cst);
      futex_wake(&state);
    }
    const int failed = output->error();
    if (failed != 0) {
      warn("the capture is incomplete: %s",
           failed == EBADF ? "the program closed its descriptor, and the file is not at its "
                             "path any more"
                           : strerrordesc_np(failed));
    }
  }
  errno = saved_errno;
}

void end_chunk_writer() {
  writer_leaves.store(true, std::memory_order_seq_cst);
  wake_writer();
  real_pthread_join(writer, nullptr);
  end_clock();
}

}  // namespace tsomon::probe
