// The records of one thread become events.
//
// Intervals   theory section 5.2; record.h says what a stamp promises. A plain access lies between
//             the records with stamps around it; behind the last one its interval is open
//             (kTimeMax), in front of the first one of the thread it begins at kTimeMin.
// Events      A failed compare-exchange becomes a fence and a load: it drains the store buffer and
//             writes nothing, and with an empty buffer its load is ordered with all that follows.
//             A range becomes accesses of at most Event::kMaxSize bytes. Thread begin and end
//             are stamps without an event.
// Gaps        Where records are missing, unknown fences and unit boundaries are missing too.
//             Intervals stay sound across a gap: stamps keep their order. Units open at the gap
//             end there; what follows is outside every unit until the next unit begins, and ends
//             without a begin are dropped. So a reported cycle never relies on a guess that two
//             sides of a gap are one unit. A fence lost in the gap can turn a certain order into
//             an uncertain one; the trace is marked incomplete.
// Complexity  Linear. Memory: the events of one chunk, and accesses that wait for their next stamp.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "decoders/capture/record.h"
#include "tso/trace.h"

namespace tsomon::capture {

// Ids of the capture to ids of Symbols, shared by the threads of one capture.
class Names {
 public:
  explicit Names(Symbols& symbols) : symbols_(&symbols) {}

  void set_label(uint32_t id, std::string_view text) { labels_[id] = std::string(text); }
  void set_thread_name(uint32_t number, std::string_view name);

  ThreadId thread(uint64_t number);
  uint32_t label(uint64_t id);     // "label#7" when the capture does not define it
  uint32_t location(uint64_t pc);  // "0x401136" until it is symbolised; 0 has none
  uint64_t undefined_labels() const { return undefined_labels_; }

 private:
  Symbols* symbols_;
  std::unordered_map<uint64_t, std::string> labels_;
  std::unordered_map<uint64_t, std::string> thread_names_;
  std::unordered_map<uint64_t, ThreadId> threads_;
  std::unordered_map<uint64_t, uint32_t> label_ids_;
  std::unordered_map<uint64_t, uint32_t> locations_;
  struct Recent {
    uint64_t pc = 0;
    uint32_t id = Event::kNoLocation;
  };
  std::vector<Recent> recent_ = std::vector<Recent>(1024);
  uint64_t undefined_labels_ = 0;
};

class ThreadStream {
 public:
  ThreadStream(uint32_t number, Names& names) : names_(&names), thread_(names.thread(number)) {}

  // The records of the next chunk, which `chunk` numbers in messages. Events whose intervals are
  // known are appended to `out`. Malformed records are skipped and described in problems().
  void decode(uint64_t chunk, std::string_view payload, EventBlock& out);
  // Chunks are missing here.
  void gap();
  // No more records: appends what was still waiting for a stamp.
  void finish(EventBlock& out);

  uint64_t lost_records() const { return lost_; }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  struct Record;
  bool decode_record(const Record& record, EventBlock& out);
  void add_ordered(const Record& record, EventBlock& out);
  void point(int64_t lo, int64_t hi, bool separates, EventBlock& out);
  bool add_range(const Record& record, EventKind kind);
  void wait_for_stamp(const Event& event, std::optional<uint64_t> read = {},
                      std::optional<uint64_t> write = {});
  void flush(int64_t until, EventBlock& out);
  Event make(EventKind kind, const Record& record) const;
  void problem(std::string_view text);

  Names* names_;
  ThreadId thread_;
  int64_t from_ = kTimeMin;  // nothing that follows happened before
  struct Waiting {
    Event event;
    std::optional<uint64_t> read;  // values of atomics
    std::optional<uint64_t> write;
  };
  std::vector<Waiting> waiting_;
  uint64_t open_units_ = 0;
  bool had_gap_ = false;
  // Events beyond one for each range record: 16 TiB of ranges. A corrupt length must not fill the
  // memory.
  uint64_t range_pieces_left_ = uint64_t{1} << 20;
  uint64_t lost_ = 0;
  uint64_t chunk_ = 0;
  std::vector<std::string> problems_;
};

}  // namespace tsomon::capture
