// The records of one thread become events.
//
// Intervals   theory section 5.2; record.h says what a stamp promises. A plain access lies between
//             the records with stamps around it; after the last one its interval is open
//             (kTimeMax), before the first one of the thread it begins at kTimeMin. What a
//             signal handler interrupted may have come after it: the interval is open.
// Handlers    A handler may come between a stamp, or a load of an atomic, and its record, which then
//             stands behind the handler's records and begins before they did. Events of a thread
//             come in program order and by the beginning of their intervals, so the intervals of
//             the handler's events begin then, too: wider is as true. Those of locks and of what is
//             handed over do not, whose beginnings are their order (clock_margin.h,
//             tso/model/hand_over.h); but receives do, which come after less then. What else
//             comes first after a handler, and has no stamp of its own, may have begun before it,
//             unless the handler says that nothing of it had been done (says_settled()).
// Events      A failed compare-exchange becomes a fence and a load: it drains the store buffer and
//             writes nothing, and with an empty buffer its load is ordered with all that follows.
//             A range becomes accesses whose sizes are powers of two from 8 to 4096 and whose
//             addresses are multiples of their sizes, fewer bytes at its ends: ranges that begin
//             and end anywhere in a buffer have few accesses that overlap without being the same.
//             No processor copies more at once. Thread begin and end are stamps without an event.
//             Loads that a thread repeats become three events (repeated_loads.h).
// Gaps        Where records are missing, unknown fences and unit boundaries are missing too.
//             Intervals stay sound across a gap: stamps keep their order. Units open at the gap
//             end there (where units may be cancelled they are none: the missing part may have
//             done it); what follows is outside every unit until the next unit begins, and ends
//             without a begin are dropped. So a reported cycle never relies on a guess that two
//             sides of a gap are one unit. A fence lost in the gap can turn a certain order into
//             an uncertain one; the trace is marked incomplete.
// Hostile     A record of few bytes may name a very long range: beyond 4 pieces for each record
//             these are as large as an event can have, and 2^20 of those in all of a capture.
// Complexity  Linear. Memory: accesses that wait for their next stamp; past a
//             million of them they get open intervals. The last 65,536 events of handlers.
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decoders/capture/decoder.h"
#include "decoders/capture/names.h"
#include "decoders/capture/stray_ends.h"
#include "tso/model/trace.h"

namespace tsomon::capture {

class ThreadStream {
 public:
  ThreadStream(uint32_t number, Names& names) : names_(&names), thread_(names.thread(number)) {}

  // Nothing later than this stamp counts: the process ended then.
  void cut_after(int64_t stamp) { cut_ = stamp; }
  // Stamps from here on say nothing: what follows, and what waits, is open to the end, and nothing
  // is cut off any more.
  void distrust();
  bool is_distrusted() const { return distrusted_; }
  uint64_t records() const { return records_; }  // taken so far
  // What is added from here on belongs to a chunk that begins. `chunk` numbers it in messages.
  void enter_chunk(uint64_t chunk);
  // A signal handler begins here; leave_handler goes on with the chunk that it interrupted.
  // `settled`: what that records next, but for a load of an atomic, came after the handler.
  void enter_handler(bool settled);
  void leave_handler(uint64_t chunk);
  // Takes up to `limit` records of the current chunk; false: it ended or stopped. Malformed records
  // are skipped and described in problems().
  bool take(Decoder& decoder, size_t limit);
  // The cached accesses that come next, at most `limit`; returns how many.
  size_t take_cached(Decoder& decoder, size_t limit);
  // One record.
  void add(const Record& record);
  // What another thread observed at this point of the stream (OpenEntry). Events that wait for a
  // stamp for `patience` cycles become ready as they are, their intervals open.
  void observe(int64_t since, int64_t until, int64_t patience);
  // Events whose intervals are known.
  size_t ready() const { return std::min(ready_, held_); }
  // They replace what is in `out`, whose memory serves again.
  void give(EventBlock& out);
  // No event that is still to come begins earlier.
  int64_t promise() const;
  bool waits() const { return any_waiting(); }  // for a stamp
  // Chunks are missing here.
  void gap();
  // No more records: what was still waiting for a stamp becomes ready.
  void finish();

  // Records are missing before some that are there, or could not be read.
  bool has_gaps() const { return had_gap_ || lost_ != 0 || !problems_.empty(); }
  // The thread said that it ended.
  bool saw_end() const { return saw_end_; }
  // Whether the cut was reached: nothing more is taken.
  bool is_cut() const { return is_cut_; }
  uint64_t lost_records() const { return lost_; }
  // All but the stray ends of units.
  const std::vector<std::string>& problems() const { return problems_; }
  const StrayEnds& stray_ends() const { return stray_ends_; }

 private:
  bool decode_record(const Record& record);
  void add_ordered(const Record& record);
  void add_unfinished(const Record& record);
  void add_open_ended(const Record& record);
  // Its first stamp ends what came before; it goes on.
  void begin_open(const Record& record);
  // When an event with the stamps of a record happened. `waits`: its end is that of the next stamp.
  struct Placed {
    bool has_stamp = false;
    bool waits = false;
    int64_t begin = 0;
    int64_t end = 0;
  };
  Placed place(const Record& record);
  void add_placed(const Event& event, const Placed& placed, std::optional<uint64_t> read = {},
                  std::optional<uint64_t> write = {});
  // Not one of an earlier record.
  bool is_new(int64_t stamp) const { return stamp > from_ && stamp > latest_; }
  void point(int64_t lo, int64_t hi, bool separates);
  bool add_range(const Record& record, uint64_t size, EventKind kind);
  // `since`: its own stamp says that it began then.
  void wait_for_stamp(const Event& event, std::optional<uint64_t> read = {},
                      std::optional<uint64_t> write = {}, int64_t since = kTimeMax);
  void add_ready(const Event& event, int64_t lo, int64_t hi, std::optional<uint64_t> read,
                 std::optional<uint64_t> write);
  bool any_waiting() const { return ready_ != events_.events.size(); }
  void flush(int64_t until);
  void flush_if_many();
  Event make(EventKind kind, const Record& record) const;
  void problem(std::string_view text);

  Names* names_;
  ThreadId thread_;
  int64_t from_ = kTimeMin;    // nothing that follows happened before
  int64_t latest_ = kTimeMin;  // stamp of a record; what does not separate moves only this
  // The first ready_ have their intervals. The others wait for a stamp: they have their `lo`, and
  // in span_or_extra the low bits of the number of their record. With has_hi there is a Special.
  EventBlock events_;
  size_t ready_ = 0;
  struct Special {
    size_t event = 0;
    bool open = false;  // the next stamp does not end its interval
    std::optional<uint64_t> read;
    std::optional<uint64_t> write;
  };
  std::vector<Special> specials_;  // by event
  void open_last_access();
  size_t interrupted_at_ = 0;  // events, when a handler was entered last
  // By which the latest record is ahead of that of a waiting event.
  uint32_t records_since(const Event& waiting) const {
    return static_cast<uint32_t>(records_) - waiting.span_or_extra;
  }
  void complete(size_t end, int64_t until, bool only_performed);
  int64_t waiting_since_ = kTimeMax;  // the earliest `lo` of these
  uint64_t records_ = 0;
  uint64_t records_observed_ = 0;
  int64_t silent_since_ = kTimeMin;  // when records_ was observed to be records_observed_
  bool stamped_in_chunk_ = false;
  uint64_t open_units_ = 0;
  bool had_gap_ = false;
  // A corrupt length must not fill the memory. Aligned pieces of ranges: so many, and some for
  // every record; then pieces of the largest size that an event can have (Names::take_pieces()).
  uint64_t pieces_left_ = uint64_t{1} << 10;
  uint64_t lost_ = 0;
  uint64_t chunk_ = 0;
  uint64_t place_ = 0;  // byte of the tokens, for messages
  // from_ where a handler interrupted. The first record after it may have been made of an access
  // that came before it.
  struct Interrupted {
    int64_t from;
    bool settled;
  };
  std::vector<Interrupted> interrupted_;
  int64_t from_before_handler_ = kTimeMax;
  bool settled_ = false;  // the first record is none of that, but for a load of an atomic
  bool left_ = false;     // a handler, and nothing was recorded since
  // What handlers did is held back from this event on until it is known when the first record after
  // them begins.
  static constexpr size_t kNotHeld = SIZE_MAX;
  size_t held_ = kNotHeld;
  void settle(size_t first) {
    if (left_) {
      settle_handler(first);
    }
  }
  void settle_handler(size_t first);
  int64_t held_since() const;
  int64_t cut_ = kTimeMax;
  bool is_cut_ = false;
  bool distrusted_ = false;
  bool saw_end_ = false;
  std::vector<std::string> problems_;
  StrayEnds stray_ends_;
};

}  // namespace tsomon::capture
