// TSOMON_OPTIONS: key=value pairs separated by ':'.
//
// A ':' inside a value is written '\:'; '::' stands for itself, so unit=Pool::take works.
// Parsing is strict: an unknown key, a key given twice (other than unit, lock or set) or a value out of range is
// an error; nothing is guessed. Fixed memory, no allocation: it runs before main.
//
//   output=FILE        where to record; without it the program runs unrecorded
//   existing=replace|keep
//                      when FILE exists, replace it (default) or keep it and record to FILE.PID:
//                      several processes of one `tsomon record`
//   stamp_every=N      0..1048576 (default 256): a stamp after N plain accesses. From 256 on those
//                      that are cached (encoder.h) count only when their instruction has run 127
//                      times. 0: stamps only at synchronisation, atomics and unit boundaries
//   stamp_max_age=CYCLES
//                      0..1000000000 (default 10000): unit boundaries, and loads and stores of
//                      atomics that are a mov, use the thread's last stamp when it is not older
//                      than this; 0: each load and store has its own two stamps. Once named share=
//   repeats=few|all    of loads that a thread repeats while it waits record some that stand for all
//                      (default; repeats.h), or every one
//   spin=CYCLES        0..1000000000 (default 100000): how long a thread tries for a lock that is
//                      taken before it sleeps (lock_spin.h)
//   buffer=SIZE        64K..16G (default 16M), with K, M or G: memory for records on their way to
//                      the file, besides two chunks for each thread
//   on_full=block|drop when the buffer is full, wait (default) or drop records and count them
//   unit=PATTERN       calls of functions with a matching name are units; may be repeated
//   lock=PATTERN       functions with a matching name acquire or release the lock whose address is their first
//                      argument (named_locks.h); lock=ACQUIRE/RELEASE names a pair; may be repeated
//   set=PATTERN        global variables with a matching name are one atomic set, which has the
//                      pattern's name; may be repeated, the first that matches counts
//   accesses=all|sets  sets: of plain accesses and atomics only those to what tsomon_atomic_set or
//                      set= has declared (watched_memory.h); not together with objects
//   outside=all|stores stores: no plain loads outside of units
//   objects=SIZE       0..16777215 (default 0: none), with K or M: what is allocated in one piece
//                      of at most so many bytes is an object; beginning and end are recorded
//   control=off|on|FOLDER
//                      the process can be watched for a while by `tsomon record --pid` and the like: on: asked for
//                      through a socket in the kernel's abstract names; or one in this folder (control.h). With
//                      output it is recorded from its start instead
//   follow_fork=0|1    1: a child of fork records to FILE.PID; 0 (default): it is not recorded
//   shared=others|own  own: no other process writes memory that this one shares (MAP_SHARED, shmat);
//                      otherwise the recording of a process that has some shows nothing to be clean
//   cancels=0|1        1: code that is loaded later may cancel units (TSOMON_UNIT_CANCEL); of what
//                      the program is linked with the probe knows by itself
//   clock=auto|trust|none
//                      whether stamps of different threads are compared: within the margin that is
//                      measured (default; clock_meter.h), without a margin, or never
//   clock_test=LIST    for tests: lets processors disagree (skewed_clock.h)
//   live=MILLISECONDS  0..10000 (default 0: no): at least that often hands over all that was
//                      recorded so far; only the first process is recorded then
//   level=N            -50..19: zstd level; 0: not compressed. Default: -1, but not compressed
//                      while the processors are busy (packing.h)
//   noise=N            0..1000 (default 0): of 1000 synchronisation operations, atomics and unit
//                      boundaries, how many are delayed (noise.h)
//   noise_seed=N       0..2147483647 (default 0): which of them, and how long
#pragma once

#include <cstddef>
#include <cstdint>

namespace tsomon::probe {

struct Options {
  static constexpr int kMaxPatterns = 32;  // of each kind
  static constexpr size_t kMaxText = 16384;

  const char* output = nullptr;
  uint64_t stamp_every = 256;
  uint64_t buffer = 16U << 20;
  uint64_t stamp_max_age = 10000;
  bool all_repeats = false;
  uint64_t spin = 100000;
  uint64_t objects = 0;
  bool drop_when_full = false;
  bool only_sets = false;
  bool stores_outside = false;
  bool keep_existing = false;
  bool follow_fork = false;
  bool control_by_name = false;
  const char* control = nullptr;  // folder
  bool cancels = false;
  bool own_shared_memory = false;
  uint32_t live = 0;
  bool clock_trusted = false;
  bool clock_unused = false;
  const char* clock_test = nullptr;
  int level = -1;
  bool level_is_given = false;
  uint32_t noise = 0;
  uint32_t noise_seed = 0;
  int units = 0;
  const char* unit[kMaxPatterns] = {};
  int locks = 0;
  const char* lock[kMaxPatterns] = {};
  int sets = 0;
  const char* set[kMaxPatterns] = {};
  char text[kMaxText] = {};  // what the pointers above point into
};

// Returns false and a message of one line in `error` when the text is not valid.
bool parse_options(const char* text, Options* options, char* error, size_t error_size);

}  // namespace tsomon::probe
