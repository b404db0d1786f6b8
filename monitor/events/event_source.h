// Inputs of any length as blocks of events: text traces, captures and perf.data, from files, pipes
// and standard input. monitor/input opens them; load_trace() collects what a source gives.
//
// Contract    next() until it gives false; what it gives last is told by symbols(), warnings(),
//             complete() and lost_events().
// Order       EventOrder::kTime: by `lo`, each thread in program order. Captures are so by
//             themselves. EventOrder::kInput: as the input has them.
// Text        Lines that carry intervals may be out of the order of `lo`: up to kReorder events
//             are held back and sorted, each thread staying in program order (an event that begins
//             before its predecessor is taken to begin with it; origin() has the line and what it
//             said). An event that comes later than that is late: the detector counts it. From a
//             pipe without any intervals everything is given out as soon as the writer pauses.
// Captures    One chunk for each thread is unpacked at a time. A capture in a pipe is first copied
//             to a temporary file: what a silent thread did early comes last.
// perf.data   The accesses and units that samples show (decoders/perf/events.h), or an Intel PT
//             trace (pt_source.h), also as raw dumps with their list; from a pipe through a
//             temporary file, too. They are collected before the first is given out: 60 bytes each.
// Packs       The recording in them, with the files that came with it (monitor/process/packed_files.h).
// Units       As the input has them: ReadAhead and collect() find out which are cancelled.
// Memory      Bounded by the threads and the names, not by the length, but for some 100 bytes for
//             each chunk of a capture; pages of its file count as resident while it is read.
// Errors      kUnreadable, kMalformed with the place in the input. The events before a malformed
//             line have been given out.
// Thread-safety: none; distinct sources are independent.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decoders/capture/reader.h"
#include "monitor/events/address_coverage.h"
#include "monitor/findings/basis.h"
#include "monitor/findings/reported_cycle.h"
#include "monitor/process/file_search.h"
#include "monitor/process/location_texts.h"
#include "tso/model/damage.h"
#include "tso/model/trace.h"
#include "tso/support/result.h"

namespace tsomon {

enum class InputFormat { kAuto, kStd, kCapture, kPerf, kAxe, kPack };
enum class EventOrder { kTime, kInput };

// What reordering did to the events of a block.
struct BlockOrigin {
  struct Raised {
    uint32_t event = 0;  // position in the block
    int64_t lo = 0;      // as the input has it
  };
  std::vector<uint64_t> lines;  // the event line of each; empty: their positions in the stream
  std::vector<Raised> raised;
};

// Of Intel PT, and refused with anything else.
struct PerfOptions {
  std::vector<std::string> units;  // patterns of functions whose calls are units (pt_units.h)
  bool quick = false;              // as pt::AccessOptions::registers_only
  bool assume_memory = false;      // as memory there; of processes with one traced thread
  bool assume_frames = false;      // as frames_before

  bool needs_pt() const { return !units.empty() || quick || assume_memory || assume_frames; }
};
inline constexpr const char* kNeedsPt =
    "--unit, --pt-assume and --pt-quick need a recording with Intel PT";

// Of axe traces, which have several tests: consistency_check.h reads them.
inline constexpr const char* kOnlyConsistency =
    "an axe trace, with no order between threads and no units: only tsomon check --property "
    "consistency --order thread judges it";

// Sees what a capture has while it is read, so that nobody needs to read it twice.
class EventOnlooker {
 public:
  virtual ~EventOnlooker() = default;
  // In the order of reading, on the thread that reads.
  virtual void add(const EventBlock& block) = 0;
  // What their numbers mean, when done reading; locations are instruction pointers ("0x401136"). Not called where
  // reading ended in an error, or at a bound.
  virtual void end(const Symbols& symbols) = 0;
};

struct SourceOptions {
  InputFormat format = InputFormat::kAuto;
  EventOrder order = EventOrder::kTime;
  bool symbolise = false;  // source locations as text, not as instruction pointers
  PerfOptions perf;
  FileSearch files;  // of captures and perf.data
  // Of captures, and refused with anything else: cycles by which the time-stamp counters of two
  // processors may differ, if not by more.
  int64_t clock_margin = 0;
  EventOnlooker* onlooker = nullptr;  // of captures
};
inline constexpr const char* kNeedsStamps =
    "--clock-margin needs a capture: the intervals of other inputs are taken as they are";

class EventSource {
 public:
  static constexpr size_t kReorder = 4096;

  EventSource() = default;
  EventSource(const EventSource&) = delete;
  EventSource& operator=(const EventSource&) = delete;
  virtual ~EventSource() = default;

  // Replaces the contents of `block`; false at the end.
  virtual Result<bool> next(EventBlock& block) = 0;
  // Of the block that was given last.
  const BlockOrigin& origin() const { return origin_; }

  // Grow while reading. The texts of symbolised locations are only in what take_symbols() gives.
  virtual const Symbols& symbols() const = 0;
  virtual Symbols take_symbols() = 0;  // when done reading
  virtual const std::vector<capture::Module>& modules() const = 0;
  // What is missing or damaged, one line each; complete at the end.
  virtual std::vector<std::string> warnings() const = 0;
  virtual bool complete() const = 0;
  // Known at the end.
  virtual Damage damage() const { return Damage::kNone; }
  // Why nothing that is found counts, as capture::Capture has it; empty: it does. Likewise.
  virtual std::string nothing_counts() const { return {}; }
  // Why nothing is clean although nothing is missing; empty: nothing speaks for that.
  virtual std::string other_writers() const { return {}; }
  virtual bool sampled() const { return false; }  // tso/model/trace.h
  // A slice of a run (monitor/probe/slices.h), which is a sample, too; before anything is read.
  virtual bool slice() const { return false; }
  virtual bool may_cancel() const { return false; }  // likewise; so far
  // Which loads and stores are atomic is known (Event::atomic()).
  virtual bool knows_atomics() const { return false; }
  virtual bool may_have_units() const { return true; }
  virtual Selection selection() const { return {}; }  // likewise
  // Whose events they are: a text trace may be of a recording.
  virtual BasisSource basis() const { return BasisSource::kProbe; }
  virtual uint64_t lost_events() const = 0;
  const std::optional<AddressCoverage>& coverage() const { return coverage_; }
  const std::string& input() const { return input_; }
  // Of an event that was given.
  std::string location_text(uint32_t location) const {
    return texts_ != nullptr ? texts_->text(location) : symbols().location_text(location);
  }
  std::string place_text(uint32_t location, char between) const {
    return texts_ != nullptr ? texts_->place_text(location, between)
                             : symbols().place_text(location, between);
  }
  uint32_t without_place(uint32_t location) const {
    return texts_ != nullptr ? texts_->without_place(location) : symbols().without_place(location);
  }
  // Whether code waits there for what a load finds, as far as the code is known.
  bool waits(uint32_t location) const { return texts_ != nullptr && texts_->waits(location); }
  // Of what was symbolised; for reports, when done reading.
  ReportNames names() const { return names_of(texts_); }
  InputFormat format() const { return format_; }  // never kAuto
  // Where the files of modules() are looked for.
  const FileSearch& files() const { return files_; }

 protected:
  std::string input_;
  InputFormat format_ = InputFormat::kStd;
  BlockOrigin origin_;
  FileSearch files_;
  std::optional<AddressCoverage> coverage_;
  std::shared_ptr<LocationTexts> texts_;  // absent: locations stay as they are
};

}  // namespace tsomon
