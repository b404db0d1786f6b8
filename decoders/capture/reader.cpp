#include "decoders/capture/reader.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <utility>

#include <fmt/format.h>

#include "decoders/capture/chunks.h"
#include "decoders/capture/stream.h"

namespace tsomon::capture {
namespace {

// Reads entries of fixed size with bytes behind them from a payload.
class EntryReader {
 public:
  explicit EntryReader(std::string_view payload) : rest_(payload) {}
  bool at_end() const { return rest_.empty(); }

  template <typename Entry>
  bool entry(Entry& entry) {
    if (rest_.size() < sizeof entry) {
      return false;
    }
    std::memcpy(&entry, rest_.data(), sizeof entry);
    rest_.remove_prefix(sizeof entry);
    return true;
  }
  bool bytes(uint64_t size, std::string_view& bytes) {
    if (rest_.size() < size) {
      return false;
    }
    bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

 private:
  std::string_view rest_;
};

class Reader {
 public:
  explicit Reader(ChunkList list) : list_(std::move(list)), names_(capture_.trace.symbols) {
    capture_.trace.symbols.initial_zero = false;
  }

  Capture run() {
    if (list_.header) {
      capture_.header = *list_.header;
    }
    for (const Damage& damage : list_.damage) {
      problem(fmt::format("bytes {}..{}: {}", damage.begin, damage.end, damage.what));
    }
    sort_chunks();
    for (const Chunk* chunk : process_chunks_) {
      read_process_chunk(*chunk);
    }
    compare_with_trailer();
    merge();
    if (names_.undefined_labels() != 0) {
      problem(fmt::format("{} unit labels are not defined", names_.undefined_labels()));
    }
    capture_.trace.complete = capture_.problems.empty();
    return std::move(capture_);
  }

 private:
  struct Thread {
    uint32_t number = 0;
    std::vector<const Chunk*> chunks;  // by sequence
    uint64_t missing_at_end = 0;
    // While merging:
    std::optional<ThreadStream> stream;
    EventBlock block;  // of the chunks decoded last
    size_t next_event = 0;
    size_t next_chunk = 0;
    bool finished = false;
  };

  void problem(std::string text) { capture_.problems.push_back(std::move(text)); }

  void sort_chunks() {
    for (const Chunk& chunk : list_.chunks) {
      if (chunk.header.type == static_cast<uint32_t>(ChunkType::kEvents)) {
        threads_[chunk.header.thread].chunks.push_back(&chunk);
      } else {
        process_chunks_.push_back(&chunk);
      }
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

  // A crash handler may hand over what the writer was about to: one copy is enough.
  void describe_gaps(std::vector<const Chunk*>& chunks) {
    std::vector<const Chunk*> unique;
    for (const Chunk* chunk : chunks) {
      const uint64_t expected = unique.empty() ? 0 : unique.back()->header.sequence + 1;
      if (!unique.empty() && chunk->header.sequence + 1 == expected) {
        const auto copy = unpack(*chunk);
        const auto first = unpack(*unique.back());
        if (!copy || !first || *copy != *first) {
          problem(fmt::format("byte {}: {} differs from the one at byte {}", chunk->offset,
                              chunk_name(chunk->header), unique.back()->offset));
        }
        continue;
      }
      if (chunk->header.sequence != expected) {
        ChunkHeader missing = chunk->header;
        missing.sequence = expected;
        const uint64_t last = chunk->header.sequence - 1;
        problem(last == expected ? fmt::format("{} is missing", chunk_name(missing))
                                 : fmt::format("{} to {} are missing", chunk_name(missing), last));
      }
      unique.push_back(chunk);
    }
    chunks = std::move(unique);
  }

  void read_process_chunk(const Chunk& chunk) {
    const auto payload = unpack(chunk);
    if (!payload) {
      return problem(describe(chunk, payload.error().message));
    }
    EntryReader reader(*payload);
    bool whole = true;
    switch (static_cast<ChunkType>(chunk.header.type)) {
      case ChunkType::kModules:
        whole = read_modules(reader);
        break;
      case ChunkType::kLabels:
      case ChunkType::kThreadNames:
        whole = read_texts(reader, static_cast<ChunkType>(chunk.header.type));
        break;
      case ChunkType::kCommandLine:
        read_command_line(*payload);
        break;
      case ChunkType::kEnd:
        has_trailer_ = true;
        whole = read_end(reader);
        break;
      default:
        problem(describe(
            chunk, fmt::format("chunk type {} is not known to this version", chunk.header.type)));
    }
    if (!whole) {
      problem(describe(chunk, "an entry is cut off"));
    }
  }

  static std::string describe(const Chunk& chunk, std::string_view what) {
    return fmt::format("byte {}: {}: {}", chunk.offset, chunk_name(chunk.header), what);
  }

  bool read_modules(EntryReader& reader) {
    while (!reader.at_end()) {
      ModuleEntry entry;
      std::string_view path;
      std::string_view build_id;
      if (!reader.entry(entry) || !reader.bytes(entry.path_size, path) ||
          !reader.bytes(entry.build_id_size, build_id)) {
        return false;
      }
      capture_.modules.push_back(
          {std::string(path), std::string(build_id), entry.bias, entry.begin, entry.end});
    }
    return true;
  }

  bool read_texts(EntryReader& reader, ChunkType type) {
    while (!reader.at_end()) {
      TextEntry entry;
      std::string_view text;
      if (!reader.entry(entry) || !reader.bytes(entry.size, text)) {
        return false;
      }
      type == ChunkType::kLabels ? names_.set_label(entry.id, text)
                                 : names_.set_thread_name(entry.id, text);
    }
    return true;
  }

  void read_command_line(std::string_view payload) {
    while (!payload.empty()) {
      const size_t end = std::min(payload.find('\0'), payload.size());
      capture_.command_line.emplace_back(payload.substr(0, end));
      payload.remove_prefix(std::min(end + 1, payload.size()));
    }
  }

  bool read_end(EntryReader& reader) {
    while (!reader.at_end()) {
      EndEntry entry;
      if (!reader.entry(entry)) {
        return false;
      }
      totals_[entry.thread] = entry;  // a later trailer knows more
    }
    return true;
  }

  void compare_with_trailer() {
    if (!has_trailer_) {
      return problem(
          "no trailer: the process was killed or the end of the file is lost; what it did last is "
          "not known");
    }
    for (const auto& [number, total] : totals_) {
      const auto found = threads_.find(number);
      Thread* thread = found == threads_.end() ? nullptr : &found->second;
      const uint64_t seen = thread == nullptr || thread->chunks.empty()
                                ? 0
                                : thread->chunks.back()->header.sequence + 1;
      if (total.chunks > seen) {
        problem(fmt::format("thread {}: the last {} of {} chunks are missing", number,
                            total.chunks - seen, total.chunks));
      }
      if (total.lost != 0) {
        problem(
            fmt::format("thread {}: {} records were dropped while recording", number, total.lost));
        capture_.trace.lost_events += total.lost;
      }
      uint64_t words = 0;
      if (thread != nullptr) {
        for (const Chunk* chunk : thread->chunks) {
          words += chunk->header.raw_size / 8;
        }
        if (seen == total.chunks && thread->chunks.size() == seen && words != total.words) {
          problem(fmt::format("thread {}: {} words, the trailer counts {}", number, words,
                              total.words));
        }
      }
    }
    for (const auto& [number, thread] : threads_) {
      if (totals_.count(number) == 0) {
        problem(
            fmt::format("thread {}: the trailer does not know it; its end is not known", number));
      }
    }
  }

  // Decodes until an event is ready. False at the end of the thread.
  bool refill(Thread& thread) {
    while (thread.next_event == thread.block.events.size() && !thread.finished) {
      thread.block.clear();
      thread.next_event = 0;
      if (thread.next_chunk == thread.chunks.size()) {
        thread.stream->finish(thread.block);
        thread.finished = true;
        end_of(thread);
        break;
      }
      const Chunk& chunk = *thread.chunks[thread.next_chunk];
      const uint64_t expected =
          thread.next_chunk == 0 ? 0 : thread.chunks[thread.next_chunk - 1]->header.sequence + 1;
      ++thread.next_chunk;
      if (chunk.header.sequence != expected) {
        thread.stream->gap();
      }
      const auto payload = unpack(chunk);
      if (!payload) {
        problem(describe(chunk, payload.error().message));
        thread.stream->gap();
        continue;
      }
      thread.stream->decode(chunk.header.sequence, *payload, thread.block);
    }
    return thread.next_event != thread.block.events.size();
  }

  void end_of(const Thread& thread) {
    for (const std::string& text : thread.stream->problems()) {
      problem(fmt::format("thread {}, {}", thread.number, text));
    }
    if (thread.stream->lost_records() != 0) {
      problem(fmt::format("thread {}: {} records are lost", thread.number,
                          thread.stream->lost_records()));
      capture_.trace.lost_events += thread.stream->lost_records();
    }
  }

  // Threads in the order of their next event; a thread stays at the front while it is earliest.
  void merge() {
    using Head = std::pair<int64_t, Thread*>;
    const auto later = [](const Head& left, const Head& right) {
      return left.first != right.first ? left.first > right.first
                                       : left.second->number > right.second->number;
    };
    std::priority_queue<Head, std::vector<Head>, decltype(later)> heads(later);
    for (auto& [number, thread] : threads_) {
      thread.stream.emplace(number, names_);
    }
    for (auto& [number, thread] : threads_) {
      if (refill(thread)) {
        heads.emplace(thread.block.events[thread.next_event].lo, &thread);
      }
    }
    while (!heads.empty()) {
      Thread& thread = *heads.top().second;
      heads.pop();
      const int64_t until = heads.empty() ? kTimeMax : heads.top().first;
      bool more = true;
      do {
        move_event(thread);
        more = refill(thread);
      } while (more && thread.block.events[thread.next_event].lo < until);
      if (more) {
        heads.emplace(thread.block.events[thread.next_event].lo, &thread);
      }
    }
  }

  void move_event(Thread& thread) {
    Event event = thread.block.events[thread.next_event++];
    if (event.has_extras()) {
      std::vector<uint64_t>& extras = capture_.trace.extras;
      const auto begin = thread.block.extras.begin() + event.span_or_extra;
      TSOMON_CHECK(extras.size() < 0xFFFFFFF0U, "more than 2^32 values in one trace");
      event.span_or_extra = static_cast<uint32_t>(extras.size());
      extras.insert(extras.end(), begin,
                    begin + event.has_hi + event.has_read_value + event.has_write_value);
    }
    capture_.trace.events.push_back(event);
  }

  ChunkList list_;
  Capture capture_;
  Names names_;
  std::map<uint32_t, Thread> threads_;
  std::vector<const Chunk*> process_chunks_;
  std::map<uint32_t, EndEntry> totals_;
  bool has_trailer_ = false;
};

}  // namespace

Result<Capture> read_capture(std::string_view bytes) {
  auto chunks = find_chunks(bytes);
  if (!chunks) {
    return tl::unexpected(chunks.error());
  }
  return Reader(std::move(*chunks)).run();
}

}  // namespace tsomon::capture
