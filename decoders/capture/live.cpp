#include "decoders/capture/live.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "decoders/capture/chunks.h"
#include "decoders/capture/decoder.h"
#include "decoders/capture/entries.h"
#include "decoders/capture/stream.h"

namespace tsomon::capture {
namespace {

constexpr size_t kMaxHeldBack = 256;              // chunks of one thread behind a missing one
constexpr size_t kMaxPending = size_t{64} << 20;  // bytes without a round
constexpr uint64_t kUsualFrequency = 2'000'000'000;
constexpr size_t kMaxDepth = 64;  // handlers that interrupt one another

}  // namespace

class LiveReader::Impl {
 public:
  explicit Impl(uint64_t max_events) : names_(symbols_), records_left_(max_events) {
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

  void finish() {
    if (!failure_ && (!buffer_.empty() || !header_)) {
      problem(header_ ? "the last chunk is cut off" : "the header is cut off");
    }
    process_pending();
    if (!has_trailer_) {
      problem("no end: the process was killed; what it did last is not known");
    }
    at_end_ = true;
    for (auto& [number, thread] : threads_) {
      advance(*thread);
      thread->stream.finish(thread->out);
      thread->ended = true;
      end_of(number, *thread);
      finished_[number] = thread->expected;
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
    if (names_.undefined_labels() != 0) {
      problem(fmt::format("{} unit labels are not defined", names_.undefined_labels()));
    }
  }

  void take(const std::function<void(const News&)>& receive) {
    for (auto& [number, thread] : threads_) {
      if (!thread->ended && thread->saw_end && thread->items.empty()) {
        thread->stream.finish(thread->out);  // a handler may have come between stamp and record
        thread->ended = true;
      }
      if (unordered()) {
        open_intervals(thread->out);
      }
      News news;
      news.thread = number;
      news.events = &thread->out;
      news.promise = unordered() ? kTimeMin : thread->promise;
      news.ended = thread->ended;
      receive(news);
      thread->out.clear();
      if (thread->ended && !at_end_) {
        end_of(number, *thread);
        finished_[number] = thread->expected;
      }
    }
    std::erase_if(threads_, [](const auto& entry) { return entry.second->ended; });
  }

  int64_t round() const { return unordered() ? kTimeMin : round_; }
  bool any_header() const { return header_.has_value(); }

  Symbols symbols_;
  std::vector<Module> modules_;
  std::vector<std::string> problems_;
  std::vector<std::string> notes_;
  uint64_t lost_events_ = 0;

 private:
  struct Item {
    std::string payload;
    ChunkStart start;
    bool whole = false;
    // There is something to deliver of a part. Not when the chunk of a handler comes: that may
    // have interrupted further on. What is told next of the interrupted chunk reaches that far.
    bool told = false;
    uint64_t delivered = 0;  // records
    bool entered = false;
    bool consumed = false;  // of a handler: all was delivered
  };
  struct Thread {
    Thread(uint32_t number, Names& names) : stream(number, names) {}
    ThreadStream stream;
    std::map<uint64_t, Item> items;  // by sequence
    uint64_t expected = 0;           // sequence of the chunk that is being delivered
    EventBlock out;
    int64_t promise = kTimeMin;
    bool saw_end = false;  // its last record
    bool ended = false;
    bool open_operation = false;  // the last record is one that was not completed yet
  };
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

  void problem(std::string text) { problems_.push_back(std::move(text)); }

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
      at = sizeof(FileHeader);
      skip_ = header_->header_size - sizeof(FileHeader);
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

  Thread& thread_of(uint32_t number) {
    auto& thread = threads_[number];
    if (!thread) {
      thread = std::make_unique<Thread>(number, names_);
      thread->expected = finished_.count(number) != 0 ? UINT64_MAX : 0;  // nothing more of it
      thread->promise = round_;
      cut(number, *thread);
    }
    return *thread;
  }

  void cut(uint32_t number, Thread& thread) const {
    if (const auto total = totals_.find(number); total != totals_.end() && total->second.cut != 0) {
      thread.stream.cut_after(time(total->second.cut));
    }
  }

  void process_pending() {
    // Texts first: records name them. The end of recording also cuts what came before it.
    for (const Pending& pending : pending_) {
      process_text(pending);
    }
    for (Pending& pending : pending_) {
      switch (static_cast<ChunkType>(pending.header.type)) {
        case ChunkType::kEvents: {
          Thread& thread = thread_of(pending.header.thread);
          store(thread, pending.header.sequence, pending.payload, true);
          break;
        }
        case ChunkType::kOpen:
          process_open(pending);
          break;
        case ChunkType::kRound:
          process_round(pending);
          break;
        default:
          break;
      }
    }
    for (auto& [number, thread] : threads_) {
      advance(*thread);
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
        for (auto& [number, thread] : threads_) {
          cut(number, *thread);
        }
        break;
      case ChunkType::kSets:
        whole = read_sets(reader, symbols_.sets, set_ranges_, problems_);
        break;
      case ChunkType::kCommandLine:
      case ChunkType::kEvents:
      case ChunkType::kOpen:
      case ChunkType::kRound:
        break;
      default:
        problem(fmt::format("chunk type {} is not known to this version", pending.header.type));
    }
    if (!whole) {
      problem(fmt::format("{}: an entry is cut off", chunk_name(pending.header)));
    }
  }

  void store(Thread& thread, uint64_t sequence, std::string_view payload, bool whole) {
    if (sequence < thread.expected || payload.size() < sizeof(ChunkStart)) {
      return;
    }
    Item& item = thread.items[sequence];
    if (item.whole) {
      return;  // a second copy
    }
    std::memcpy(&item.start, payload.data(), sizeof item.start);
    item.payload = payload.substr(sizeof item.start);
    item.whole = whole;
  }

  void process_open(const Pending& pending) {
    Thread& thread = thread_of(pending.header.thread);
    EntryReader reader(pending.payload);
    OpenEntry entry;
    if (!reader.entry(entry)) {
      return problem(fmt::format("{}: an entry is cut off", chunk_name(pending.header)));
    }
    if (!reader.at_end()) {
      store(thread, pending.header.sequence, reader.rest(), false);
    }
    if (const auto item = thread.items.find(pending.header.sequence); item != thread.items.end()) {
      item->second.told |= !reader.at_end() || thread.items.size() != 1;
    }
    advance(thread);
    if (entry.since != 0 && thread.expected == pending.header.sequence && !thread.open_operation) {
      const uint64_t frequency = header_->tsc_hz != 0 ? header_->tsc_hz : kUsualFrequency;
      thread.stream.observe(time(entry.since), time(entry.until),
                            static_cast<int64_t>(frequency / 4), thread.out);
    }
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
    const int64_t since = time(entry.since);
    for (auto& [each, thread] : threads_) {
      advance(*thread);
      const bool excepted =
          std::find(exceptions.begin(), exceptions.end(), each) != exceptions.end() ||
          thread->open_operation || !thread->items.empty();
      int64_t promise = thread->stream.promise();
      if (!excepted && !thread->stream.waits()) {
        promise = std::max(promise, since);
      }
      // What is still open of a chunk that was observed is told by the observation.
      thread->promise = std::max(thread->promise, promise);
    }
    round_ = std::max(round_, since);
  }

  // Delivers what has come of the thread.
  void advance(Thread& thread) {
    while (!thread.items.empty()) {
      auto first = thread.items.begin();
      if (first->first != thread.expected) {
        if (!at_end_ && thread.items.size() < kMaxHeldBack) {
          return;
        }
        problem(fmt::format("chunks {} to {} of a thread are missing", thread.expected,
                            first->first - 1));
        thread.stream.gap();
        thread.expected = first->first;
      }
      Item& item = first->second;
      if (!item.consumed) {
        const bool is_cut = !item.whole && rest_is_missing(thread);
        if (item.whole || item.told || is_cut || at_end_) {
          // Where handlers interrupted what is missing is not known: they come behind it.
          deliver(thread, first->first, item, 0, !is_cut);
          item.told = false;
        }
        if (!item.whole && !is_cut && !at_end_) {
          return;
        }
        if (is_cut) {
          problem(fmt::format("the rest of chunk {} of a thread is missing", first->first));
          thread.stream.gap();
        }
      }
      ++thread.expected;
      thread.items.erase(first);
    }
  }

  // Of a chunk of which a part is known: another one that does not interrupt it stands behind it;
  // or the end has come, and the process had said that it wrote everything, or a handler
  // interrupted what was not told.
  bool rest_is_missing(const Thread& thread) const {
    if (at_end_ &&
        (has_trailer_ || (thread.items.size() > 1 && !thread.items.begin()->second.told))) {
      return true;
    }
    if (!at_end_ && thread.items.size() < kMaxHeldBack) {
      return false;
    }
    return std::any_of(std::next(thread.items.begin()), thread.items.end(),
                       [](const auto& item) { return item.second.start.interrupted == 0; });
  }

  // The records of a chunk that were not delivered yet, and those of handlers that interrupted it.
  void deliver(Thread& thread, uint64_t sequence, Item& item, size_t depth, bool handlers) {
    if (depth == decoders_.size()) {
      decoders_.push_back(std::make_unique<Decoder>());
    }
    Decoder& decoder = *decoders_[depth];
    decoder.start(item.payload);
    if (!item.entered) {
      thread.stream.enter_chunk(sequence);
      item.entered = true;
    }
    thread.open_operation = false;
    auto inner = handlers ? interruption(thread, sequence, sequence + 1) : thread.items.end();
    if (inner != thread.items.end()) {
      decoder.stop_at(
          {inner->second.start.end, inner->second.start.slot, inner->second.start.count});
    }
    uint64_t number = 0;
    Record record;
    while (!thread.stream.is_cut()) {
      switch (decoder.next(record)) {
        case Decoder::Step::kRecord:
          if (number++ < item.delivered) {
            continue;
          }
          if ((record.flags & kUnfinished) != 0 && !item.whole && !at_end_) {
            thread.open_operation = true;
            return;
          }
          if (records_left_ == 0) {
            return too_many();
          }
          --records_left_;
          ++item.delivered;
          thread.stream.add(record, thread.out);
          thread.saw_end |= record.type == RecordType::kThreadEnd;
          continue;
        case Decoder::Step::kStop:
          inner = interrupted(thread, sequence, inner, depth);
          if (inner != thread.items.end()) {
            decoder.stop_at(
                {inner->second.start.end, inner->second.start.slot, inner->second.start.count});
          }
          continue;
        case Decoder::Step::kMalformed:
          problem(
              fmt::format("chunk {} of a thread: no record at byte {}", sequence, decoder.place()));
          thread.stream.gap();
          return;
        case Decoder::Step::kEnd:
          return;
      }
    }
  }

  void too_many() {
    if (!full_) {
      full_ = true;
      problem("more events than asked for; the rest is left out");
    }
  }

  using Items = std::map<uint64_t, Item>;

  // The first chunk from `from` on of a handler that interrupted this one.
  static Items::iterator interruption(Thread& thread, uint64_t sequence, uint64_t from) {
    auto item = thread.items.lower_bound(from);
    while (item != thread.items.end() && item->second.start.interrupted != sequence + 1) {
      ++item;
    }
    return item;
  }

  // Delivers the chunks of the handler that begins with `inner`; the next handler's, if any.
  Items::iterator interrupted(Thread& thread, uint64_t sequence, Items::iterator inner,
                              size_t depth) {
    const ChunkStart start = inner->second.start;
    bool entered = false;
    while (inner != thread.items.end() &&
           std::memcmp(&inner->second.start, &start, sizeof start) == 0) {
      if (!inner->second.consumed && depth + 1 < kMaxDepth) {
        if (!entered) {
          thread.stream.enter_handler();
          entered = true;
        }
        deliver(thread, inner->first, inner->second, depth + 1, true);
        inner->second.consumed = true;
      }
      inner = interruption(thread, sequence, inner->first + 1);
    }
    if (entered) {
      thread.stream.leave_handler(sequence);
    }
    return inner;
  }

  void end_of(uint32_t number, const Thread& thread) {
    for (const std::string& text : thread.stream.problems()) {
      problem(fmt::format("thread {}, {}", number, text));
    }
    if (thread.stream.lost_records() != 0) {
      problem(fmt::format("thread {}: {} records are lost", number, thread.stream.lost_records()));
      lost_events_ += thread.stream.lost_records();
    }
  }

  Names names_;
  uint64_t records_left_;
  bool full_ = false;
  std::string buffer_;
  uint64_t offset_ = 0;  // of the buffer in the input
  uint64_t skip_ = 0;    // bytes up to the first chunk
  std::optional<Error> failure_;
  std::optional<FileHeader> header_;
  std::vector<Pending> pending_;
  size_t pending_bytes_ = 0;
  std::map<uint32_t, std::unique_ptr<Thread>> threads_;
  std::map<uint32_t, uint64_t> finished_;  // chunks delivered, by number
  std::map<uint32_t, EndEntry> totals_;
  std::vector<std::unique_ptr<Decoder>> decoders_;  // by depth of handlers
  int64_t round_ = kTimeMin;
  uint32_t set_ranges_ = 0;
  bool has_trailer_ = false;
  bool at_end_ = false;
};

LiveReader::LiveReader(uint64_t max_events) : impl_(std::make_unique<Impl>(max_events)) {}
LiveReader::~LiveReader() = default;
Result<bool> LiveReader::feed(std::string_view bytes) { return impl_->feed(bytes); }
void LiveReader::finish() { impl_->finish(); }
void LiveReader::take(const std::function<void(const News&)>& receive) { impl_->take(receive); }
int64_t LiveReader::round() const { return impl_->round(); }
bool LiveReader::any_header() const { return impl_->any_header(); }
const Symbols& LiveReader::symbols() const { return impl_->symbols_; }
const std::vector<Module>& LiveReader::modules() const { return impl_->modules_; }
const std::vector<std::string>& LiveReader::problems() const { return impl_->problems_; }
const std::vector<std::string>& LiveReader::notes() const { return impl_->notes_; }
uint64_t LiveReader::lost_events() const { return impl_->lost_events_; }

}  // namespace tsomon::capture
