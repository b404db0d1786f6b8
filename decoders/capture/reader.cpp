#include "decoders/capture/reader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <utility>

#include <fmt/format.h>

#include "decoders/capture/chunks.h"
#include "decoders/capture/decoder.h"
#include "decoders/capture/entries.h"
#include "decoders/capture/partial.h"
#include "decoders/capture/stream.h"
#include "decoders/capture/totals.h"
#include "decoders/capture/trusted_records.h"
#include "tso/model/cancelled_units.h"
#include "tso/support/work.h"

namespace tsomon::capture {
namespace {

constexpr size_t kPortion = 4096;    // records at a time
constexpr size_t kMaxHandlers = 64;  // that interrupt one another
// What the chunks of a file may unpack to: so much, and for every byte of the file. The probe's
// chunks of events have 64 KiB and a header that is not packed.
constexpr uint64_t kUnpackedEvents = uint64_t{64} << 20;
constexpr uint64_t kEventBytesPerByte = 1024;
// The others are lists of names, of which one entry costs more memory than bytes.
constexpr uint64_t kUnpackedTexts = uint64_t{8} << 20;
constexpr uint64_t kTextBytesPerByte = 64;

// A chunk that is being decoded.
struct Open {
  const Chunk* chunk = nullptr;
  bool readable = false;
  std::string payload;
  ChunkStart start;
  std::unique_ptr<Decoder> decoder;
  uint64_t trusted = TrustedRecords::kAll;  // records left of those with stamps to be trusted
};

}  // namespace

Selection selection_of(const FileHeader& header) {
  return {(header.flags & kFileOnlySets) != 0, (header.flags & kFileStoresOutside) != 0};
}

class CaptureReader::Impl {
 public:
  Impl(ChunkList list, uint64_t file_bytes, int64_t least_margin)
      : list_(std::move(list)),
        names_(capture_.trace.symbols),
        event_bytes_left_(kUnpackedEvents + kEventBytesPerByte * file_bytes),
        text_bytes_left_(kUnpackedTexts + kTextBytesPerByte * file_bytes) {
    clock_.at_least(least_margin);
    capture_.trace.symbols.initial_zero = false;
    if (list_.header) {
      capture_.header = *list_.header;
      capture_.trace.selection = selection_of(*list_.header);
    }
    // Without a header nobody knows, and no order of conflicts is certain either.
    capture_.may_cancel = list_.header && (list_.header->flags & kFileCancels) != 0;
    if (capture_.may_cancel) {
      names_.set_may_cancel();
    }
    for (const Damage& damage : list_.damage) {
      problem(fmt::format("bytes {}..{}: {}", damage.begin, damage.end, damage.what));
    }
    sort_chunks();
    for (const Chunk* chunk : process_chunks_) {
      read_process_chunk(*chunk);
    }
    choose_clock();
    if (std::string text = unseen_.assembly_problem(); !text.empty()) {
      capture_.not_understood = true;
      problem(std::move(text));
    }
    capture_.other_writers = unseen_.other_writers();
    for (std::string& note : unseen_.notes()) {
      capture_.notes.push_back(std::move(note));
    }
    compare_with_trailer();
    look_for_lost_knowledge(file_bytes);
    capture_.may_have_units = names_.any_label() || !has_trailer_ || !capture_.problems.empty();
    start_merge();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Threads in the order of their next event; a thread stays at the front while it is earliest.
  bool next(EventBlock& out, size_t max_events) {
    const size_t before = out.events.size();
    while (!heads_.empty() && out.events.size() - before < max_events) {
      Thread& thread = *heads_.top().second;
      heads_.pop();
      const int64_t until = heads_.empty() ? kTimeMax : heads_.top().first;
      bool more = true;
      do {
        move_events(thread, until, max_events - (out.events.size() - before), out);
        more = refill(thread);
      } while (more && thread.block.events[thread.next_event].lo < until &&
               out.events.size() - before < max_events);
      if (more) {
        heads_.emplace(thread.block.events[thread.next_event].lo, &thread);
      }
    }
    if (heads_.empty() && !ended_) {
      ended_ = true;
      if (running_on_ > 1 && may_go_back()) {
        problem(kRanOn);
      }
      if (stray_ends_.count != 0) {
        problem(stray_ends_.describe());
      }
      if (names_.undefined_labels() != 0) {
        problem(fmt::format("{} unit labels are not defined", names_.undefined_labels()));
        capture_.knowledge_lost = true;  // they may have named atomic sets
      }
      capture_.trace.complete = capture_.problems.empty();
    }
    return out.events.size() != before;
  }

  // Events that are left when there are `max_events` are a problem.
  void limit(uint64_t max_events) {
    if (!heads_.empty()) {
      problem(fmt::format("more than {} events; the rest is left out", max_events));
      capture_.trace.complete = false;
    }
  }

  Capture& capture() { return capture_; }

 private:
  struct Thread {
    uint32_t number = 0;
    std::vector<const Chunk*> chunks;  // by sequence
    uint64_t missing_at_end = 0;
    // While merging:
    std::optional<ThreadStream> stream;
    EventBlock block;  // decoded last
    size_t next_event = 0;
    size_t next_chunk = 0;
    std::optional<Open> ahead;                // chunk next_chunk, unpacked
    std::vector<std::unique_ptr<Open>> open;  // a handler's chunk after the one it interrupted
    bool finished = false;
  };

  void problem(std::string text) { capture_.problems.push_back(std::move(text)); }

  // Without a trailer nobody knows how many chunks of the process there were: any damage may be one
  // of them, but for what reaches to the end, which is as if the process had been killed there.
  void look_for_lost_knowledge(uint64_t file_bytes) {
    const bool may_be_of_process =
        !has_trailer_ &&
        std::any_of(list_.damage.begin(), list_.damage.end(),
                    [&](const Damage& damage) { return damage.end != file_bytes; });
    capture_.knowledge_lost = capture_.knowledge_lost || may_be_of_process || !list_.header;
  }

  // Of a chunk of the process.
  void lose_knowledge(std::string text) {
    capture_.knowledge_lost = true;
    problem(std::move(text));
  }

  void sort_chunks() {
    for (const Chunk& chunk : list_.chunks) {
      const auto type = static_cast<ChunkType>(chunk.header.type);
      if (type == ChunkType::kEvents) {
        threads_[chunk.header.thread].chunks.push_back(&chunk);
      } else if (PartialChunks::is_partial(type)) {
        partial_.add(chunk);
      } else {
        process_chunks_.push_back(&chunk);
      }
    }
    // Of what never came whole there is the beginning.
    for (const auto& [number, thread] : threads_) {
      for (const Chunk* chunk : thread.chunks) {
        partial_.is_whole(chunk->header);
      }
    }
    for (const Chunk& chunk : partial_.left()) {
      threads_[chunk.header.thread].chunks.push_back(&chunk);
    }
    for (auto& [number, thread] : threads_) {
      thread.number = number;
      sort_by_sequence(thread.chunks);
      describe_gaps(thread.chunks);
    }
    sort_by_sequence(process_chunks_);
    describe_gaps(process_chunks_);
  }

  static void sort_by_sequence(std::vector<const Chunk*>& chunks) {
    std::stable_sort(chunks.begin(), chunks.end(), [](const Chunk* left, const Chunk* right) {
      return left->header.sequence < right->header.sequence;
    });
  }

  // A small file must not take all memory and time.
  Result<std::string> unpacked(const Chunk& chunk) {
    const auto type = static_cast<ChunkType>(chunk.header.type);
    const bool events = type == ChunkType::kEvents || PartialChunks::is_partial(type);
    uint64_t& left = events ? event_bytes_left_ : text_bytes_left_;
    if (chunk.header.raw_size > left) {
      return fail(ErrorKind::kDamaged,
                  fmt::format("unpacked size {}: no recording of this size has so much",
                              chunk.header.raw_size));
    }
    left -= chunk.header.raw_size;
    spend(chunk.header.raw_size / 64);
    return unpack(chunk);
  }

  // A crash handler may hand over what the writer was about to: one copy is enough.
  void describe_gaps(std::vector<const Chunk*>& chunks) {
    std::vector<const Chunk*> unique;
    for (const Chunk* chunk : chunks) {
      const uint64_t expected = unique.empty() ? 0 : unique.back()->header.sequence + 1;
      if (!unique.empty() && chunk->header.sequence + 1 == expected) {
        const auto copy = unpacked(*chunk);
        const auto first = unpacked(*unique.back());
        if (!copy || !first || *copy != *first) {
          capture_.knowledge_lost = capture_.knowledge_lost || chunk->header.thread == kNoThread;
          capture_.has_gaps = true;
          problem(fmt::format("byte {}: {} differs from the one at byte {}", chunk->offset,
                              chunk_name(chunk->header), unique.back()->offset));
        }
        continue;
      }
      if (chunk->header.sequence != expected) {
        ChunkHeader missing = chunk->header;
        missing.sequence = expected;
        const uint64_t last = chunk->header.sequence - 1;
        capture_.knowledge_lost = capture_.knowledge_lost || missing.thread == kNoThread;
        problem(last == expected ? fmt::format("{} is missing", chunk_name(missing))
                                 : fmt::format("{} to {} are missing", chunk_name(missing), last));
      }
      unique.push_back(chunk);
    }
    chunks = std::move(unique);
  }

  void read_process_chunk(const Chunk& chunk) {
    const auto payload = unpacked(chunk);
    if (!payload) {
      return lose_knowledge(describe(chunk, payload.error().message));
    }
    EntryReader reader(*payload);
    bool whole = true;
    switch (static_cast<ChunkType>(chunk.header.type)) {
      case ChunkType::kModules:
        whole = read_modules(reader, capture_.modules);
        break;
      case ChunkType::kLabels:
      case ChunkType::kThreadNames:
        whole = read_texts(reader, static_cast<ChunkType>(chunk.header.type), names_);
        break;
      case ChunkType::kSets:
        whole = read_sets(reader, capture_.trace.symbols.sets, set_ranges_, capture_.problems);
        break;
      case ChunkType::kCommandLine:
        read_command_line(*payload, capture_.command_line);
        break;
      case ChunkType::kRound:
        break;
      case ChunkType::kNotInstrumented:
        whole = unseen_.read(reader);
        break;
      case ChunkType::kEnd:
        has_trailer_ = true;
        whole = read_end(reader, totals_);
        break;
      default:
        if (chunk.header.type == static_cast<uint32_t>(kClockChunk)) {
          whole = read_clock(reader, clock_, chunk.offset);
          break;
        }
        lose_knowledge(describe(
            chunk, fmt::format("chunk type {} is not known to this version", chunk.header.type)));
    }
    if (!whole) {
      lose_knowledge(describe(chunk, "an entry is cut off"));
    }
  }

  static std::string describe(const Chunk& chunk, std::string_view what) {
    return fmt::format("byte {}: {}: {}", chunk.offset, chunk_name(chunk.header), what);
  }

  void compare_with_trailer() {
    if (!has_trailer_) {
      return problem(
          "no trailer: the process was killed or the end of the file is lost; what it did last is "
          "not known");
    }
    for (const auto& [number, total] : totals_) {
      const auto found = threads_.find(number);
      compare_with_total(
          total, found == threads_.end() ? std::vector<const Chunk*>() : found->second.chunks,
          partial_, capture_);
    }
    for (const auto& [number, thread] : threads_) {
      if (totals_.count(number) == 0) {
        problem(
            fmt::format("thread {}: the trailer does not know it; its end is not known", number));
      }
    }
  }

  // Unpacks the next chunk.
  void look_ahead(Thread& thread) {
    if (thread.ahead || thread.next_chunk == thread.chunks.size()) {
      return;
    }
    Open& ahead = thread.ahead.emplace();
    ahead.chunk = thread.chunks[thread.next_chunk];
    auto payload =
        partial_.has(*ahead.chunk)
            ? partial_.payload(*ahead.chunk, [this](const Chunk& part) { return unpacked(part); })
            : unpacked(*ahead.chunk);
    if (!payload) {
      problem(describe(*ahead.chunk, payload.error().message));
    } else if (payload->size() < sizeof ahead.start) {
      problem(describe(*ahead.chunk, "it is too short"));
    } else {
      ahead.readable = true;
      ahead.payload = std::move(*payload);
      std::memcpy(&ahead.start, ahead.payload.data(), sizeof ahead.start);
    }
  }

  // Whether the next chunk interrupts this one.
  static bool interrupts(const Thread& thread, const Open& open) {
    return thread.ahead && thread.ahead->readable && thread.ahead->start.interrupted != 0 &&
           thread.ahead->start.interrupted == open.chunk->header.sequence + 1 &&
           thread.open.size() < kMaxHandlers;
  }

  void stop_at_interruption(Thread& thread) {
    Open& open = *thread.open.back();
    look_ahead(thread);
    if (interrupts(thread, open)) {
      const ChunkStart& start = thread.ahead->start;
      open.decoder->stop_at({start.end, start.slot, start.count});
    }
  }

  void open_next(Thread& thread) {
    look_ahead(thread);
    const uint64_t sequence = thread.ahead->chunk->header.sequence;
    const uint64_t expected =
        thread.next_chunk == 0 ? 0 : thread.chunks[thread.next_chunk - 1]->header.sequence + 1;
    ++thread.next_chunk;
    if (sequence != expected || !thread.ahead->readable) {
      thread.stream->gap();
    }
    if (!thread.ahead->readable) {
      thread.ahead.reset();
      return;
    }
    thread.open.push_back(std::make_unique<Open>(std::move(*thread.ahead)));
    thread.ahead.reset();
    Open& open = *thread.open.back();
    open.decoder = pool_.take();
    open.decoder->start(std::string_view(open.payload).substr(sizeof(ChunkStart)));
    if (!thread.stream->is_distrusted()) {
      open.trusted = trusted_.of(*open.chunk, !partial_.has(*open.chunk), pool_,
                                 [this](const Chunk& part) { return unpacked(part); });
    }
    thread.stream->enter_chunk(sequence);
    stop_at_interruption(thread);
  }

  // The chunk at the top ended, or stands where a handler interrupted it.
  void leave_or_interrupt(Thread& thread) {
    Open& open = *thread.open.back();
    if (thread.stream->is_cut()) {
      thread.open.clear();
      thread.next_chunk = thread.chunks.size();
      return;
    }
    if (interrupts(thread, open)) {
      thread.stream->enter_handler(
          says_settled(std::string_view(thread.ahead->payload).substr(sizeof(ChunkStart))));
      open_next(thread);
      return;
    }
    const ChunkStart start = open.start;
    pool_.give_back(std::move(open.decoder));
    thread.open.pop_back();
    look_ahead(thread);
    if (thread.open.empty()) {
      return;
    }
    const Open& outer = *thread.open.back();
    if (interrupts(thread, outer) && std::memcmp(&start, &thread.ahead->start, sizeof start) == 0) {
      open_next(thread);  // of the same handler
      return;
    }
    thread.stream->leave_handler(outer.chunk->header.sequence);
    stop_at_interruption(thread);
  }

  // At most a portion. False: the chunk ended or stops here.
  bool take_records(Thread& thread, Open& open) {
    if (open.trusted == 0 && !thread.stream->is_distrusted()) {
      thread.stream->distrust();
    }
    const size_t limit = thread.stream->is_distrusted()
                             ? kPortion
                             : static_cast<size_t>(std::min<uint64_t>(kPortion, open.trusted));
    const uint64_t before = thread.stream->records();
    const bool more = thread.stream->take(*open.decoder, limit);
    if (open.trusted != TrustedRecords::kAll) {
      open.trusted -= std::min(open.trusted, thread.stream->records() - before);
    }
    return more;
  }

  // Decodes until an event is ready. False at the end of the thread.
  bool refill(Thread& thread) {
    while (thread.next_event == thread.block.events.size() && !thread.finished) {
      spend(kPortion);
      thread.block.clear();
      thread.next_event = 0;
      if (!thread.open.empty()) {
        Open& open = *thread.open.back();
        if (!take_records(thread, open)) {
          leave_or_interrupt(thread);
        }
      } else if (thread.next_chunk != thread.chunks.size()) {
        open_next(thread);
      } else {
        thread.stream->finish();
        thread.finished = true;
        end_of(thread);
      }
      thread.stream->give(thread.block);
    }
    return thread.next_event != thread.block.events.size();
  }

  void end_of(const Thread& thread) {
    running_on_ += thread.stream->saw_end() ? 0 : 1;
    capture_.has_gaps = capture_.has_gaps || thread.stream->has_gaps();
    for (const std::string& text : thread.stream->problems()) {
      problem(fmt::format("thread {}, {}", thread.number, text));
    }
    const StrayEnds& stray = thread.stream->stray_ends();
    stray_ends_.add({stray.count, fmt::format("thread {}, {}", thread.number, stray.first)});
    if (thread.stream->lost_records() != 0) {
      problem(fmt::format("thread {}: {} records are lost", thread.number,
                          thread.stream->lost_records()));
      capture_.trace.lost_events += thread.stream->lost_records();
    }
  }

  void start_merge() {
    for (auto& [number, thread] : threads_) {
      thread.stream.emplace(number, names_);
      const auto total = totals_.find(number);
      if (!is_untrusted() && total != totals_.end() && total->second.cut != 0) {
        thread.stream->cut_after(clock_.end_of(total->second.cut));
      }
    }
    for (auto& [number, thread] : threads_) {
      if (refill(thread)) {
        heads_.emplace(thread.block.events[thread.next_event].lo, &thread);
      }
    }
  }

  // Stamps say little of what was heard of when recording ended.
  bool may_go_back() const { return is_untrusted() || clock_.may_go_back(); }
  // At the end.
  bool is_untrusted() const { return !ordered_ || trusted_.is_limited(); }

  void choose_clock() {
    for (const auto& [number, total] : totals_) {
      clock_.end_at(total.cut);
    }
    // Without its header nothing is known of what the stamps are worth.
    const bool compared = list_.header && (list_.header->flags & kFileUnordered) == 0;
    ordered_ = compared && (clock_.trusted() || clock_.trusted_places() != 0);
    if (!compared) {
      capture_.notes.emplace_back(
          "the time stamps of different threads are not compared: all intervals are open");
    } else if (!ordered_) {
      capture_.notes.push_back(clock_.problem());
    } else if (!clock_.trusted()) {
      capture_.notes.push_back(clock_.problem(moment(clock_.trusted_since())));
      trusted_.only_before(clock_.trusted_places(), list_.chunks);
      clock_.keep_good();
    }
  }

  // A stamp, for people.
  std::string moment(uint64_t stamp) const {
    const FileHeader& header = *list_.header;
    return header.tsc_hz == 0 || stamp < header.tsc
               ? fmt::format("stamp {}", stamp)
               : fmt::format("second {:.1f}", static_cast<double>(stamp - header.tsc) /
                                                  static_cast<double>(header.tsc_hz));
  }

  // Events of the block while they begin before `until`, at least one and at most `limit`.
  void move_events(Thread& thread, int64_t until, size_t limit, EventBlock& out) const {
    const EventBlock& block = thread.block;
    const size_t begin = thread.next_event;
    const size_t last = begin + std::min(limit, block.events.size() - begin);
    size_t& end = thread.next_event;
    do {
      ++end;
    } while (end < last && block.events[end].lo < until);
    if (ordered_) {
      const size_t before = out.events.size();
      out.append(block, begin, end);
      return widen(out, before, clock_.margin(), !trusted_.is_limited());
    }
    for (size_t i = begin; i != end; ++i) {
      Event event = block.events[i];
      const auto read = block.read_value(event);
      const auto write = block.write_value(event);
      event.has_hi = event.has_read_value = event.has_write_value = 0;
      out.add(event, kTimeMin, kTimeMax, read, write);
    }
  }

  using Head = std::pair<int64_t, Thread*>;
  struct Later {
    bool operator()(const Head& left, const Head& right) const {
      return left.first != right.first ? left.first > right.first
                                       : left.second->number > right.second->number;
    }
  };

  ChunkList list_;
  PartialChunks partial_;
  Capture capture_;
  Names names_;
  StrayEnds stray_ends_;
  std::map<uint32_t, Thread> threads_;
  std::vector<const Chunk*> process_chunks_;
  std::map<uint32_t, EndEntry> totals_;
  uint32_t set_ranges_ = 0;
  ClockMargin clock_;
  uint64_t running_on_ = 0;  // threads that did not end; the one that ends the process is one
  bool ordered_ = false;     // stamps of different threads are compared
  TrustedRecords trusted_;   // ... of these records
  UnseenCode unseen_;
  bool has_trailer_ = false;
  std::priority_queue<Head, std::vector<Head>, Later> heads_;
  DecoderPool pool_;
  uint64_t event_bytes_left_;  // that may still be unpacked
  uint64_t text_bytes_left_;
  bool ended_ = false;
};

CaptureReader::CaptureReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CaptureReader::CaptureReader(CaptureReader&&) noexcept = default;
CaptureReader& CaptureReader::operator=(CaptureReader&&) noexcept = default;
CaptureReader::~CaptureReader() = default;

Result<CaptureReader> CaptureReader::open(std::string_view bytes, int64_t least_margin) {
  auto chunks = find_chunks(bytes);
  if (!chunks) {
    return tl::unexpected(chunks.error());
  }
  return CaptureReader(std::make_unique<Impl>(std::move(*chunks), bytes.size(), least_margin));
}

bool CaptureReader::next(EventBlock& block, size_t max_events) {
  return impl_->next(block, max_events);
}
const Capture& CaptureReader::capture() const { return impl_->capture(); }
Symbols CaptureReader::take_symbols() { return std::move(impl_->capture().trace.symbols); }

Result<Capture> read_capture(std::string_view bytes, uint64_t max_events) {
  auto reader = CaptureReader::open(bytes);
  if (!reader) {
    return tl::unexpected(reader.error());
  }
  EventBlock events;
  reader->next(events, max_events);
  reader->impl_->limit(max_events);
  Capture capture = std::move(reader->impl_->capture());
  static_cast<EventBlock&>(capture.trace) = std::move(events);
  resolve_cancelled_units(capture.trace, capture.may_cancel);
  return capture;
}

}  // namespace tsomon::capture
