// An event source that is read on a thread of its own, a few blocks ahead of who judges them.
//
// Purpose     Decoding and detecting at the same time. With one thread allowed the source is read
//             when a block is asked for; everything else is the same.
// Blocks      In the order and size in which the source gives them: what arrives from a pipe is
//             handed on without waiting for more.
// Symbols     A source's symbols grow on the thread that reads. Each block carries what is new of
//             those that judging looks at, so judged_symbols() is what it was when the block was
//             read. Names of threads, locations and lines are for reports only: ask the source for
//             them when next() has given nothing.
// Units       Blocks wait until it is known which of their units are cancelled (held_units.h).
// Memory      kBlocks blocks, and HeldUnits.
// Thread-safety: none. The source must not be touched between the constructor and the end of the
//             reading, that is until next() has given nothing or an error, or the destructor.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <thread>

#include "monitor/events/block_queue.h"
#include "monitor/events/event_source.h"
#include "monitor/events/held_units.h"
#include "monitor/events/symbol_delta.h"
#include "monitor/findings/event_count.h"

namespace tsomon {

// Processors that this process may use, at least 1.
unsigned usable_processors();

struct SourceBlock {
  EventBlock events;
  BlockOrigin origin;
  SymbolDelta delta;
};

class ReadAhead {
 public:
  static constexpr size_t kBlocks = 6;

  // `threads`: 0 or more than 1: one for reading if there is a second processor for it.
  ReadAhead(EventSource& source, unsigned threads);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Valid until the next call; nullptr at the end.
  Result<const SourceBlock*> next();
  // Nothing more is read. The source is no longer touched, and count() is of what was.
  void stop();
  // Labels, atomic sets and initial values, as of the block that was given last.
  const Symbols& judged_symbols() const { return judged_; }
  // Of all events; once next() has given nothing.
  const EventCount& count() const { return count_; }
  // Likewise.
  const HeldUnits& units() const { return held_; }

 private:
  Result<bool> read(SourceBlock& block);
  Result<bool> read_part();
  void run();

  EventSource& source_;
  Symbols judged_;
  std::unique_ptr<SourceBlock> current_;

  // Of the reading thread.
  HeldUnits held_;
  HeldUnits::Part part_;
  bool ended_ = false;
  EventCount count_;
  SymbolDeltaWriter symbol_deltas_{SymbolDeltaWriter::What::kJudged};
  std::exception_ptr thrown_;     // std::bad_alloc, WorkEnded; next() throws it
  std::optional<Error> failure_;  // seen by the other one when the queue has ended

  BlockQueue<SourceBlock> queue_{kBlocks};
  std::thread thread_;
};

}  // namespace tsomon
