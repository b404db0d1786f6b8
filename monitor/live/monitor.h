// Embedding: a program feeds events of its own and is told of atomicity violations.
//
//   tsomon::Monitor monitor([](const tsomon::Monitor::Finding& finding) { puts(finding.text.c_str()); });
//   // on every thread that takes part:
//   tsomon::Monitor::Thread thread = monitor.thread("worker");
//   thread.begin("deposit");
//   thread.read(&balance, sizeof balance);
//   thread.write(&balance, sizeof balance);
//   thread.end();
//   // when all handles are gone:
//   tsomon::Monitor::Summary summary = monitor.finish();
//
// Ownership   The monitor outlives its handles. Nothing that is passed in is kept: texts are
//             copied, addresses are never read.
// Threads     A handle belongs to one thread at a time. thread(), label(), location() and
//             atomic_set() may be called from everywhere. The callback runs on the monitor's own
//             thread; it must not wait for a thread that feeds events, and not call finish().
// Time        Without an interval an event is taken to happen at the call. An access that lies
//             between two known moments is given with them (now() before and after); then it may
//             have been at any time between. Accesses of different threads whose intervals overlap
//             are not ordered.
// Waiting     Events are handed over in blocks. A thread that falls silent calls pause(), or the
//             others' findings wait for it until some hundred thousand events are held; then it is
//             no longer waited for, and what it brings later makes the result incomplete.
// Cost        An event is a time stamp and 32 bytes written into a block of the thread's own; all
//             else is done by the monitor's thread. When that is too slow, feeding waits (or drops,
//             Options::drop). Memory does not grow with the number of events.
// Errors      A unit that ends without having begun is ignored; so is all that is said to a handle
//             that is closed, moved from or without a thread. Nothing throws but std::bad_alloc.
// Misses      What Detector misses (online/detector/detector.h); accesses that are not fed.
//
// Includes nothing but the C++ library. Installed as <tsomon/monitor.h>; find_package(tsomon) gives
// the target tsomon::monitor to link with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace tsomon {

class Monitor {
  class Impl;
  struct Producer;

 public:
  enum class Verdict : uint8_t {
    kClean,         // of all events: no execution that fits them violates atomicity
    kPossible,      // some do, depending on when stores left the store buffers
    kDefinite,      // every one does
    kInconclusive,  // of all events: nothing was found, and it means nothing (Summary::why)
  };

  struct Finding {
    uint64_t number = 0;  // from 1
    Verdict verdict = Verdict::kDefinite;
    std::string text;  // the cycle of units, several lines
    std::string json;  // the same as one JSON object
  };

  struct Summary {
    Verdict verdict = Verdict::kClean;  // of the gravest finding
    std::string why;                    // of an inconclusive verdict: the reason, and what to do
    uint64_t events = 0;
    uint64_t units = 0;
    uint64_t findings = 0;  // different ones: as often as the callback was called, if there is one
    uint64_t occurrences = 0;   // all
    bool complete = true;       // false: events were lost or late, or a bound was hit; then finding
                                // nothing means nothing
    uint64_t accesses = 0;      // read(), write() and update()
    uint64_t larger_units = 0;  // units with two accesses or more: without any, a clean verdict
                                // would rest on nothing
    std::string json;           // the same as one JSON object
  };

  using Callback = std::function<void(const Finding&)>;
  struct Options {
    bool store_buffers = true;  // false: every store takes effect at once (sequential consistency)
    uint32_t store_buffer_size = 0;  // in stores; 0: not known
    // Atomic-set serializability instead, without store buffers: of the sets that atomic_set()
    // declares; without any, of the objects of Thread::allocate(); without those, of everything.
    bool atomic_sets = false;
    size_t max_blocks = 2048;  // of 512 events on their way to the monitor
    bool drop = false;         // when there is no room: drop and count, instead of waiting
    // Thread::cancel() may be called: findings wait for the ends of units, and units that never end
    // are none. The accesses of a unit of more than a million events (of all threads) are judged
    // one by one, and Summary::complete is false if it ends after all.
    bool cancels = false;
  };

  // Cycles of the time-stamp counter, which is one clock for all threads.
  static int64_t now();

  struct Interval {
    int64_t from;
    int64_t to;
  };

  // What one thread does, in program order. Ends with the handle; the last event of a thread that
  // nobody joins should be a fence(), or what it stored last stays open, and costs, for ever.
  class Thread {
   public:
    Thread();  // without a thread
    Thread(Thread&&) noexcept;
    Thread& operator=(Thread&&) noexcept;
    ~Thread();

    void begin(uint32_t label);  // of label()
    void begin(std::string_view label);
    void end();
    // In the place of end(): the unit's accesses are events of their own, a failed attempt. Needs
    // Options::cancels; without it this is end(), and Summary::complete is false.
    void cancel();
    // `size` from 1 to 2^24 - 1 bytes. `location`: see Monitor::location; 0: none.
    void read(const volatile void* address, size_t size, uint32_t location = 0);
    void read(const volatile void* address, size_t size, uint32_t location, Interval when);
    void write(const volatile void* address, size_t size, uint32_t location = 0);
    void write(const volatile void* address, size_t size, uint32_t location, Interval when);
    // A locked read-modify-write.
    void update(const volatile void* address, size_t size, uint32_t location = 0);
    void update(const volatile void* address, size_t size, uint32_t location, Interval when);
    void fence();
    // To be called while the lock is held.
    void acquire(const volatile void* lock, uint32_t location = 0);
    void release(const volatile void* lock, uint32_t location = 0);
    // The bytes were obtained together and belong to no earlier object; to be called after that,
    // and before they are given back. At most 2^24 - 1 bytes; what is larger is not an object.
    void allocate(const volatile void* address, size_t size, uint32_t location = 0);
    void free(const volatile void* address, uint32_t location = 0);
    // Before the other thread's first event, and after its last one.
    void fork(const Thread& started);
    void join(uint32_t ended);
    // For join(), also when the handle is closed. Without a thread kNoThread, which fork() and
    // join() ignore.
    uint32_t id() const { return id_; }
    static constexpr uint32_t kNoThread = UINT32_MAX;
    // Events are missing here: their number, 0 if it is not known.
    void lost(uint64_t events);
    // Hands over everything; nothing that follows is earlier than this call.
    void pause();
    void close();  // again: nothing

   private:
    friend class Monitor;
    explicit Thread(std::unique_ptr<Producer> producer);
    template <typename... Arguments>
    void add(Arguments... arguments);
    std::unique_ptr<Producer> producer_;  // null: closed
    uint32_t id_ = kNoThread;
  };

  // Without a callback findings are only counted.
  explicit Monitor(Callback callback);
  Monitor(Callback callback, const Options& options);
  // Waits until everything was judged: all handles must be closed.
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  Thread thread(std::string_view name);
  // Numbers for texts that are used often. A label may be "label;set1,set2".
  uint32_t label(std::string_view text);
  uint32_t location(std::string_view text);
  // The bytes are part of this atomic set from the beginning: to be called before they are
  // accessed.
  void atomic_set(std::string_view name, const volatile void* address, size_t size);

  // Judges what is left; all handles must be closed, and no more are given out. Once.
  Summary finish();

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace tsomon
