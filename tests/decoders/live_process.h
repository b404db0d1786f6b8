// A recorded process in slow motion: threads that take stamps, record and perform in steps of their
// own, and the writer thread that looks at them between any two steps. Threads and writer do what
// monitor/probe does, so the bytes are those of a live capture, and here it is known when each
// access took place.
//
// Differs from the probe: one clock and one memory for all, so every step is visible at once (the
// probe's barrier makes it so), and chunks are small.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "decoders/capture/encoder.h"
#include "decoders/capture/format.h"
#include "tests/decoders/recording.h"
#include "tso/model/event.h"

namespace tsomon::capture {

struct LiveProcessOptions {
  uint32_t threads = 3;
  uint32_t operations = 60;  // of each thread
  bool handlers = false;     // signals interrupt the threads
  bool loses = false;        // records are dropped now and then
  bool observes = true;      // false: rounds come, but every thread is said to be silent
  bool killed = false;       // no end
  uint64_t frequency = 8000;
};

class LiveProcess {
 public:
  // An event that was recorded, in the order of the thread's stream.
  struct Truth {
    EventKind kind;
    uint64_t address;
    uint32_t size;
    int64_t at;  // when it took place; -1: it did not, or it is not known
  };

  LiveProcess(std::mt19937_64& random, const LiveProcessOptions& options);
  LiveProcess(const LiveProcess&) = delete;
  LiveProcess& operator=(const LiveProcess&) = delete;

  std::string run();  // the bytes of the capture; once
  const std::map<uint32_t, std::vector<Truth>>& truth() const { return truth_; }
  uint64_t lost() const { return lost_; }

 private:
  struct Context {
    std::unique_ptr<Encoder> encoder = std::make_unique<Encoder>();
    std::vector<uint8_t> tokens;
    ChunkStart start;
    uint64_t sequence = 0;
    uint64_t since = 0;
    uint64_t announced = 0;
  };
  using Step = std::function<void()>;
  struct Thread {
    uint32_t number = 0;
    std::deque<Step> steps;  // of the operation under way
    std::vector<std::unique_ptr<Context>> contexts;
    std::vector<Truth>* truth = nullptr;
    uint64_t sequence = 0;
    uint64_t bytes = 0;
    uint32_t operations_left = 0;
    uint32_t interruptions = 0;
    uint32_t open_units = 0;
    bool had_gap = false;
    bool busy = false;
    bool begun = false;
    bool ended = false;
    // What the writer told of it last.
    uint64_t told_chunk = 0;
    Position told;
    // Operations under way: where their events are, and what is left of them if they never end.
    std::vector<std::pair<size_t, RecordType>> unfinished;
  };
  struct Full {  // on its way to the file
    uint32_t thread;
    uint64_t sequence;
    std::string payload;
  };

  uint64_t below(uint64_t bound) { return random_() % bound; }
  uint64_t tick() { return now_ += 1 + below(20); }
  uint64_t address() { return 0x7000 + 8 * below(40); }

  void step(Thread& thread);
  void begin(Thread& thread);
  void end(Thread& thread);
  void interrupt(Thread& thread);
  Context& context(Thread& thread) { return *thread.contexts.back(); }
  size_t add_truth(Thread& thread, EventKind kind, uint64_t address, uint32_t size, int64_t at);
  void gap(Thread& thread);

  // Steps are appended to the thread's.
  void operation(Thread& thread);
  void plain(Thread& thread, uint32_t accesses);
  void point(Thread& thread, RecordType type, EventKind kind, uint64_t address);
  void boundary(Thread& thread);
  void open_access(Thread& thread, bool load);
  void locked(Thread& thread, RecordType type);
  void unlock(Thread& thread);
  void range(Thread& thread);
  void room(Thread& thread);
  // A stamp that is taken, and recorded later: a handler may come in between.
  using Stamp = std::shared_ptr<uint64_t>;
  Stamp announce(Thread& thread);
  void put(Thread& thread, const Stamp& stamp);
  bool recently_stamped(Thread& thread) { return now_ - context(thread).encoder->stamp < share_; }

  void open_chunk(Thread& thread, Context& context);
  void close_chunk(Thread& thread, Context& context);

  // The writer thread.
  void writer_step();
  void begin_round();
  bool observe(Thread& thread);
  void drain();
  void flush();
  std::string snapshot_payload(const Context& context, const Position& position) const;
  void write(ChunkType type, uint32_t thread, uint64_t sequence, const std::string& payload);

  std::mt19937_64& random_;
  LiveProcessOptions options_;
  Recording file_;
  uint64_t now_ = 1000;
  uint64_t share_;
  uint64_t stamp_every_;
  uint32_t capacity_;
  std::deque<Thread> threads_;
  std::deque<Full> full_;
  std::map<uint32_t, std::vector<Truth>> truth_;
  uint64_t lost_ = 0;
  std::deque<Step> round_;  // what is left of it
  uint64_t round_since_ = 0;
  std::string silent_;
  uint64_t sites_ = 1;  // of the loop that is being made
};

}  // namespace tsomon::capture
