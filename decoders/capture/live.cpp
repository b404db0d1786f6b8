#include "decoders/capture/live.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "decoders/capture/chunks.h"
#include "decoders/capture/entries.h"
#include "decoders/capture/live_thread.h"
#include "decoders/capture/stream.h"

namespace tsomon::capture {
namespace {

constexpr size_t kMaxPending = size_t{64} << 20;  // bytes without a round
constexpr uint64_t kUsualFrequency = 2'000'000'000;

}  // namespace

class LiveReader::Impl {
 public:
  explicit Impl(uint64_t max_events) : names_(symbols_), context_(names_, max_events) {
    symbols_.initial_zero = false;
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<bool> feed(std::string_view bytes) {
    if (failure_) {
      return tl::unexpected<Error>(*failure_);
    }
    buffer_.append(bytes);
    size_t at = 0;
    auto read = read_buffer(at);
    offset_ += at;
    buffer_.erase(0, at);
    if (!read) {
      failure_ = read.error();
      buffer_.clear();
    }
    return read;
  }

  void finish(const MeasureClock& measure) {
    if (!failure_ && (!buffer_.empty() || !header_)) {
      problem(header_ ? "the last chunk is cut off" : "the header is cut off");
    }
    process_pending();
    if (!has_trailer_) {
      problem("no end: the process was killed; what it did last is not known");
    }
    if (std::string text = unseen_.assembly_problem(); !text.empty()) {
      problem(std::move(text));
    }
    if (std::string text = unseen_.other_writers(); !text.empty()) {
      notes_.push_back(std::move(text));
    }
    for (std::string& note : unseen_.notes()) {
      notes_.push_back(std::move(note));
    }
    at_end_ = true;
    context_.has_trailer = has_trailer_;
    if (is_clock_open() && measure) {
      if (const auto entry = measure(margin_)) {
        clock_.add(*entry);
        check_clock(true);
      }
    }
    if (is_clock_open()) {
      doubt_clock(
          fmt::format("may have moved: they agree within {} cycles now", clock_.last_margin()));
    }
    for (auto& [number, thread] : threads_) {
      thread->add_end();
    }
    report_end();
  }

  void take(const std::function<void(const News&)>& receive) {
    for (auto& [number, thread] : threads_) {
      thread->work(SIZE_MAX);
      give(number, *thread, receive);
    }
    std::erase_if(threads_, [](const auto& entry) { return entry.second->ended(); });
    report_end();
  }

  bool take(uint32_t number, size_t events, const std::function<void(const News&)>& receive) {
    const auto found = threads_.find(number);
    if (found == threads_.end()) {
      return false;
    }
    LiveThread& thread = *found->second;
    const int64_t promised = thread.promise();
    thread.work(events);
    if (thread.ready() == 0 && thread.promise() == promised && !thread.ended()) {
      return false;
    }
    give(number, thread, receive);
    if (thread.ended()) {
      threads_.erase(found);
      report_end();
    }
    return true;
  }

  void new_threads(const std::function<void(uint32_t)>& receive) {
    for (const uint32_t number : begun_) {
      receive(number);
    }
    begun_.clear();
  }

  size_t backlog() const { return context_.backlog; }
  int64_t round() const { return unordered() ? kTimeMin : widened(round_, margin_); }
  bool clock_moved() const { return clock_moved_; }
  uint64_t clock_checks() const { return clock_checks_; }
  bool any_header() const { return header_.has_value(); }
  bool may_cancel() const { return header_ && (header_->flags & kFileCancels) != 0; }
  Selection selection() const { return header_ ? selection_of(*header_) : Selection(); }

  Symbols symbols_;
  std::vector<Module> modules_;
  bool not_understood() const { return !unseen_.assembly.empty(); }
  bool has_other_writers() const { return !unseen_.shared_memory.empty(); }
  const std::vector<std::string>& problems() const { return context_.problems; }
  std::vector<std::string> notes_;
  uint64_t lost_events_ = 0;

 private:
  void give(uint32_t number, LiveThread& thread, const std::function<void(const News&)>& receive) {
    thread.give(given_);
    if (unordered()) {
      open_intervals(given_);
    } else {
      widen(given_, 0, margin_);
    }
    News news;
    news.thread = number;
    news.events = &given_;
    news.promise = unordered() ? kTimeMin : widened(thread.promise(), margin_);
    news.ended = thread.ended();
    receive(news);
    if (thread.ended()) {
      end_of(number, thread.stream());
      finished_[number] = thread.chunks();
    }
  }

  // What is left to be said when the last thread has ended.
  void report_end() {
    if (!at_end_ || !threads_.empty() || end_told_) {
      return;
    }
    end_told_ = true;
    if (running_on_ > 1 && (unordered() || !clock_.trusted() || clock_.may_go_back())) {
      problem(kRanOn);
    }
    for (const auto& [number, total] : totals_) {
      const auto found = finished_.find(number);
      const uint64_t seen = found == finished_.end() ? 0 : found->second;
      if (total.chunks > seen) {
        problem(fmt::format("thread {}: the last {} of {} chunks are missing", number,
                            total.chunks - seen, total.chunks));
      }
      if (total.lost != 0) {
        problem(fmt::format("thread {}: {} records were dropped", number, total.lost));
        lost_events_ += total.lost;
      }
    }
    if (stray_ends_.count != 0) {
      problem(stray_ends_.describe());
    }
    if (names_.undefined_labels() != 0) {
      problem(fmt::format("{} unit labels are not defined", names_.undefined_labels()));
    }
  }

  struct Pending {
    ChunkHeader header;
    std::string payload;
  };

  bool unordered() const { return header_ && (header_->flags & kFileUnordered) != 0; }

  static void open_intervals(EventBlock& block) {
    EventBlock open;
    for (const Event& event : block.events) {
      Event bare = event;
      bare.has_hi = bare.has_read_value = bare.has_write_value = 0;
      open.add(bare, kTimeMin, kTimeMax, block.read_value(event), block.write_value(event));
    }
    block = std::move(open);
  }

  void problem(std::string text) { context_.problems.push_back(std::move(text)); }

  // All that is whole in the buffer; `at` becomes its end.
  Result<bool> read_buffer(size_t& at) {
    if (!header_) {
      if (buffer_.size() < sizeof(FileHeader)) {
        return true;
      }
      auto list = find_chunks(std::string_view(buffer_).substr(0, sizeof(FileHeader)));
      if (!list) {
        return tl::unexpected<Error>(list.error());
      }
      if (!list->header || (list->header->flags & kFileLive) == 0) {
        return fail(ErrorKind::kMalformed,
                    list->header ? "expected a live capture" : list->damage.front().what);
      }
      header_ = list->header;
      const uint64_t frequency = header_->tsc_hz != 0 ? header_->tsc_hz : kUsualFrequency;
      context_.patience = static_cast<int64_t>(frequency / 4);
      at = sizeof(FileHeader);
      skip_ = header_->header_size - sizeof(FileHeader);
      if (may_cancel()) {
        names_.set_may_cancel();
      }
      if ((header_->flags & kFileUnordered) != 0) {
        notes_.emplace_back(
            "the time stamps of different threads are not compared: all intervals are open");
      }
    }
    // What a later version added to the header.
    const size_t skipped = std::min<size_t>(skip_, buffer_.size() - at);
    skip_ -= skipped;
    at += skipped;
    while (skip_ == 0 && buffer_.size() >= at + sizeof(ChunkHeader)) {
      // The header by itself: a length that is not true must not be waited for.
      ChunkHeader header;
      std::memcpy(&header, buffer_.data() + at, sizeof header);
      if (header.magic != kChunkMagic || !intact(header) || header.stored_size > kMaxChunkBytes) {
        return fail(ErrorKind::kDamaged, fmt::format("byte {}: expected a chunk", offset_ + at));
      }
      const size_t end = at + sizeof header + header.stored_size;
      if (buffer_.size() < end) {
        break;
      }
      if (auto read = read_chunk(at, end); !read) {
        return read;
      }
      at = end;
    }
    return true;
  }

  // Checks and keeps the chunk in these bytes of the buffer.
  Result<bool> read_chunk(size_t begin, size_t end) {
    auto list = find_chunks(std::string_view(buffer_).substr(begin, end - begin));
    if (!list || list->chunks.size() != 1 || list->chunks[0].header.tag != header_->tag) {
      return fail(ErrorKind::kDamaged,
                  fmt::format("byte {}: a chunk fails its checksum", offset_ + begin));
    }
    auto payload = unpack(list->chunks[0]);
    if (!payload) {
      return tl::unexpected<Error>(payload.error());
    }
    pending_bytes_ += payload->size();
    pending_.push_back({list->chunks[0].header, std::move(*payload)});
    const auto type = static_cast<ChunkType>(pending_.back().header.type);
    if (type == ChunkType::kRound || type == ChunkType::kEnd || pending_bytes_ > kMaxPending) {
      process_pending();
    }
    return true;
  }

  LiveThread& thread_of(uint32_t number) {
    auto& thread = threads_[number];
    if (!thread) {
      // Nothing more of a thread that has ended.
      const uint64_t expected = finished_.count(number) != 0 ? UINT64_MAX : 0;
      thread = std::make_unique<LiveThread>(number, context_, expected, round_);
      begun_.push_back(number);
      cut(number, *thread);
    }
    return *thread;
  }

  void cut(uint32_t number, LiveThread& thread) const {
    if (const auto total = totals_.find(number);
        total != totals_.end() && total->second.cut != 0 && !unordered() && clock_.trusted()) {
      thread.cut_after(clock_.end_of(total->second.cut));
    }
  }

  void process_pending() {
    // Texts first: records name them. The end of recording also cuts what came before it.
    for (const Pending& pending : pending_) {
      process_text(pending);
    }
    for (Pending& pending : pending_) {
      switch (static_cast<ChunkType>(pending.header.type)) {
        case ChunkType::kEvents:
          thread_of(pending.header.thread)
              .add_chunk(pending.header.sequence, std::move(pending.payload));
          break;
        case ChunkType::kOpen:
          thread_of(pending.header.thread)
              .add_open(pending.header.sequence, std::move(pending.payload));
          break;
        case ChunkType::kRound:
          process_round(pending);
          break;
        default:
          break;
      }
    }
    for (auto& [number, thread] : threads_) {
      thread->add_pause();
    }
    pending_.clear();
    pending_bytes_ = 0;
  }

  void process_text(const Pending& pending) {
    EntryReader reader(pending.payload);
    const auto type = static_cast<ChunkType>(pending.header.type);
    bool whole = true;
    switch (type) {
      case ChunkType::kModules:
        whole = read_modules(reader, modules_);
        break;
      case ChunkType::kLabels:
      case ChunkType::kThreadNames:
        whole = read_texts(reader, type, names_);
        break;
      case ChunkType::kEnd:
        has_trailer_ = true;
        whole = read_end(reader, totals_);
        for (const auto& [number, total] : totals_) {
          clock_.end_at(total.cut);
        }
        check_clock(true);
        for (auto& [number, thread] : threads_) {
          cut(number, *thread);
        }
        break;
      case ChunkType::kSets:
        whole = read_sets(reader, symbols_.sets, set_ranges_, context_.problems);
        break;
      case ChunkType::kNotInstrumented:
        whole = unseen_.read(reader);
        break;
      case ChunkType::kCommandLine:
      case ChunkType::kEvents:
      case ChunkType::kOpen:
      case ChunkType::kPart:  // told by rounds as well, or by the whole chunk
      case ChunkType::kRound:
        break;
      default:
        if (type == kClockChunk) {
          const uint64_t before = clock_.measurements();
          whole = read_clock(reader, clock_);
          // Every stamp is as far ahead of its moment as counters may differ, so that what is known
          // to come later than a stamp may have one that is smaller by as much.
          if (before == 0 && clock_.trusted()) {
            margin_ = ClockMargin::allowed(clock_.margin());
            context_.margin = margin_;
          }
          check_clock(before != clock_.measurements());
          break;
        }
        problem(fmt::format("chunk type {} is not known to this version", pending.header.type));
    }
    if (!whole) {
      problem(fmt::format("{}: an entry is cut off", chunk_name(pending.header)));
    }
  }

  bool is_clock_open() const {
    return !clock_moved_ && clock_.shown(margin_) == ClockMargin::Shown::kNothing;
  }

  // `is_news`: it says something of what was received since the last time.
  void check_clock(bool is_news) {
    if (clock_moved_) {
      return;
    }
    switch (clock_.shown(margin_)) {
      case ClockMargin::Shown::kGood:
        clock_checks_ += is_news ? 1 : 0;
        break;
      case ClockMargin::Shown::kMoved:
        doubt_clock(fmt::format("moved: they differ by {} cycles at least", clock_.least()));
        break;
      case ClockMargin::Shown::kNothing:  // a later one may
        break;
    }
  }

  void doubt_clock(const std::string& why) {
    clock_moved_ = true;
    problem(
        !clock_.trusted()
            ? clock_.problem()
            : fmt::format("the processors' time-stamp counters {}, {} were allowed for, so what "
                          "was certain may not be",
                          why, margin_));
  }

  static int64_t time(uint64_t stamp) {
    return static_cast<int64_t>(std::min(stamp, static_cast<uint64_t>(kTimeMax)));
  }

  void process_round(const Pending& pending) {
    EntryReader reader(pending.payload);
    RoundEntry entry;
    if (!reader.entry(entry)) {
      return problem("a round is cut off");
    }
    std::vector<uint32_t> exceptions;
    uint32_t number = 0;
    while (!reader.at_end() && reader.entry(number)) {
      exceptions.push_back(number);
      if (finished_.count(number) == 0) {
        thread_of(number);  // may have recorded already
      }
    }
    const int64_t since = widened(time(entry.since), margin_);
    for (auto& [each, thread] : threads_) {
      thread->add_round(since,
                        std::find(exceptions.begin(), exceptions.end(), each) != exceptions.end());
    }
    round_ = std::max(round_, since);
  }

  void end_of(uint32_t number, const ThreadStream& stream) {
    running_on_ += stream.saw_end() ? 0 : 1;
    for (const std::string& text : stream.problems()) {
      problem(fmt::format("thread {}, {}", number, text));
    }
    const StrayEnds& stray = stream.stray_ends();
    stray_ends_.add({stray.count, fmt::format("thread {}, {}", number, stray.first)});
    if (stream.lost_records() != 0) {
      problem(fmt::format("thread {}: {} records are lost", number, stream.lost_records()));
      lost_events_ += stream.lost_records();
    }
  }

  Names names_;
  StrayEnds stray_ends_;
  LiveContext context_;
  std::string buffer_;
  uint64_t offset_ = 0;  // of the buffer in the input
  uint64_t skip_ = 0;    // bytes up to the first chunk
  std::optional<Error> failure_;
  std::optional<FileHeader> header_;
  std::vector<Pending> pending_;
  size_t pending_bytes_ = 0;
  std::map<uint32_t, std::unique_ptr<LiveThread>> threads_;
  std::vector<uint32_t> begun_;  // not told yet
  EventBlock given_;
  std::map<uint32_t, uint64_t> finished_;  // chunks delivered, by number
  std::map<uint32_t, EndEntry> totals_;
  int64_t round_ = kTimeMin;
  ClockMargin clock_;
  int64_t margin_ = 0;
  bool clock_moved_ = false;
  uint64_t clock_checks_ = 0;
  uint64_t running_on_ = 0;  // threads that did not end; the one that ends the process is one
  uint32_t set_ranges_ = 0;
  UnseenCode unseen_;
  bool has_trailer_ = false;
  bool at_end_ = false;
  bool end_told_ = false;
};

LiveReader::LiveReader(uint64_t max_events) : impl_(std::make_unique<Impl>(max_events)) {}
LiveReader::~LiveReader() = default;
Result<bool> LiveReader::feed(std::string_view bytes) { return impl_->feed(bytes); }
void LiveReader::finish(const MeasureClock& measure) { impl_->finish(measure); }
void LiveReader::take(const std::function<void(const News&)>& receive) { impl_->take(receive); }
bool LiveReader::take(uint32_t thread, size_t events,
                      const std::function<void(const News&)>& receive) {
  return impl_->take(thread, events, receive);
}
void LiveReader::new_threads(const std::function<void(uint32_t)>& receive) {
  impl_->new_threads(receive);
}
size_t LiveReader::backlog() const { return impl_->backlog(); }
int64_t LiveReader::round() const { return impl_->round(); }
bool LiveReader::any_header() const { return impl_->any_header(); }
bool LiveReader::may_cancel() const { return impl_->may_cancel(); }
Selection LiveReader::selection() const { return impl_->selection(); }
const Symbols& LiveReader::symbols() const { return impl_->symbols_; }
const std::vector<Module>& LiveReader::modules() const { return impl_->modules_; }
bool LiveReader::not_understood() const { return impl_->not_understood(); }
bool LiveReader::has_other_writers() const { return impl_->has_other_writers(); }
const std::vector<std::string>& LiveReader::problems() const { return impl_->problems(); }
const std::vector<std::string>& LiveReader::notes() const { return impl_->notes_; }
bool LiveReader::clock_moved() const { return impl_->clock_moved(); }
uint64_t LiveReader::clock_checks() const { return impl_->clock_checks(); }
uint64_t LiveReader::lost_events() const { return impl_->lost_events_; }

}  // namespace tsomon::capture
