#include "decoders/capture/live_thread.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "decoders/capture/entries.h"

namespace tsomon::capture {
namespace {

constexpr size_t kMaxHeldBack = 256;  // chunks of one thread after a missing one
constexpr size_t kMaxDepth = 64;      // handlers that interrupt one another

int64_t time(uint64_t stamp) {
  return static_cast<int64_t>(std::min(stamp, static_cast<uint64_t>(kTimeMax)));
}

}  // namespace

// ---- What was told

void LiveThread::add(Task&& task) {
  task.counted = task.payload.size();
  context_->backlog += task.counted;
  tasks_.push_back(std::move(task));
}

void LiveThread::add_chunk(uint64_t sequence, std::string&& payload) {
  Task task;
  task.kind = Kind::kChunk;
  task.sequence = sequence;
  task.payload = std::move(payload);
  add(std::move(task));
}

void LiveThread::add_open(uint64_t sequence, std::string&& payload) {
  Task task;
  task.kind = Kind::kOpen;
  task.sequence = sequence;
  task.payload = std::move(payload);
  add(std::move(task));
}

void LiveThread::add_round(int64_t since, bool excepted) {
  Task task;
  task.kind = Kind::kRound;
  task.since = since;
  task.excepted = excepted;
  add(std::move(task));
}

void LiveThread::add_pause() {
  if (!tasks_.empty()) {
    add(Task());
  }
}

void LiveThread::add_end() {
  Task task;
  task.kind = Kind::kEnd;
  add(std::move(task));
}

void LiveThread::work(size_t events) {
  while (stream_.ready() < events && !tasks_.empty()) {
    Task& task = tasks_.front();
    if (!perform(task, events)) {
      continue;
    }
    tasks_.pop_front();
  }
  if (!ended_ && saw_end_ && tasks_.empty() && items_.empty()) {
    stream_.finish();  // a handler may have come between stamp and record
    end();
  }
}

void LiveThread::end() {
  ended_ = true;
  if (decoder_) {
    context_->pool.give_back(std::move(decoder_));
  }
}

Decoder& LiveThread::decoder() {
  if (!decoder_) {
    decoder_ = context_->pool.take();
  }
  return *decoder_;
}

// False: not to its end yet. At most some `limit` records.
bool LiveThread::perform(Task& task, size_t limit) {
  context_->backlog -= std::exchange(task.counted, 0);
  switch (task.kind) {
    case Kind::kChunk:
      store(task.sequence, std::move(task.payload), 0, true);
      return true;
    case Kind::kOpen:
      return open(task, limit);
    case Kind::kRound:
      if (!advance(limit)) {
        return false;
      }
      observe_round(task);
      return true;
    case Kind::kPause:
      return advance(limit);
    case Kind::kEnd:
      at_end_ = true;
      if (!advance(limit)) {
        return false;
      }
      stream_.finish();
      end();
      return true;
  }
  return true;
}

// The chunk, or its beginning, stands in the payload after `from`.
void LiveThread::store(uint64_t sequence, std::string&& payload, size_t from, bool whole) {
  if (sequence < expected_ || payload.size() < from + sizeof(ChunkStart)) {
    return;
  }
  if (sequence == UINT64_MAX) {  // nothing could come after it, or say that it interrupted it
    return problem(fmt::format("chunk {} of a thread: no number of a chunk", sequence));
  }
  Item& item = items_[sequence];
  if (item.whole) {
    return;  // a second copy
  }
  item.payload = std::move(payload);
  std::memcpy(&item.start, item.payload.data() + from, sizeof item.start);
  item.tokens = from + sizeof item.start;
  item.whole = whole;
}

bool LiveThread::open(Task& task, size_t limit) {
  if (!task.begun) {
    task.begun = true;
    EntryReader reader(task.payload);
    if (!reader.entry(task.entry)) {
      problem(fmt::format("chunk {} of a thread: an entry is cut off", task.sequence));
      task.kind = Kind::kPause;
      return false;
    }
    const bool any = !reader.at_end();
    if (any) {
      store(task.sequence, std::move(task.payload), sizeof task.entry, false);
    }
    if (const auto item = items_.find(task.sequence); item != items_.end()) {
      item->second.told |= any || items_.size() != 1;
    }
  }
  const OpenEntry& entry = task.entry;
  if (!advance(limit)) {
    return false;
  }
  if (entry.since != 0 && expected_ == task.sequence && !open_operation_) {
    stream_.observe(widened(time(entry.since), context_->margin), time(entry.until),
                    context_->patience);
  }
  return true;
}

void LiveThread::observe_round(const Task& task) {
  int64_t promise = stream_.promise();
  if (!task.excepted && !open_operation_ && items_.empty() && !stream_.waits()) {
    promise = std::max(promise, task.since);
  }
  // What is still open of a chunk that was observed is told by the observation.
  promise_ = std::max(promise_, promise);
}

// ---- Events

// Delivers what has come. False: not all of it yet.
bool LiveThread::advance(size_t limit) {
  while (!items_.empty()) {
    auto first = items_.begin();
    if (first->first != expected_) {
      if (!at_end_ && items_.size() < kMaxHeldBack) {
        return true;
      }
      problem(fmt::format("chunks {} to {} of a thread are missing", expected_, first->first - 1));
      stream_.gap();
      expected_ = first->first;
    }
    Item& item = first->second;
    if (!item.consumed) {
      const bool is_cut = !item.whole && rest_is_missing();
      if (item.whole || item.told || is_cut || at_end_) {
        // Where handlers interrupted what is missing is not known: they come after it.
        if (!deliver(first->first, item, 0, !is_cut, delivery_, decoder(), limit)) {
          return false;
        }
        delivery_ = Delivery();
        item.told = false;
      }
      if (!item.whole && !is_cut && !at_end_) {
        return true;
      }
      if (is_cut) {
        problem(fmt::format("the rest of chunk {} of a thread is missing", first->first));
        stream_.gap();
      }
    }
    ++expected_;
    items_.erase(first);
  }
  return true;
}

// Of a chunk of which a part is known: another one that does not interrupt it stands after it;
// or the end has come, and the process had said that it wrote everything, or a handler
// interrupted what was not told.
bool LiveThread::rest_is_missing() const {
  if (at_end_ && (context_->has_trailer || (items_.size() > 1 && !items_.begin()->second.told))) {
    return true;
  }
  if (!at_end_ && items_.size() < kMaxHeldBack) {
    return false;
  }
  return std::any_of(std::next(items_.begin()), items_.end(),
                     [](const auto& item) { return item.second.start.interrupted == 0; });
}

// The records of a chunk that were not delivered yet, and those of handlers that interrupted it.
// False: there are more than `limit` of them; to be called again.
bool LiveThread::deliver(uint64_t sequence, Item& item, size_t depth, bool handlers,
                         Delivery& delivery, Decoder& decoder, size_t limit) {
  if (!delivery.begun) {
    delivery.begun = true;
    decoder.start(std::string_view(item.payload).substr(item.tokens));
    if (!item.entered) {
      stream_.enter_chunk(sequence);
      item.entered = true;
    }
    open_operation_ = false;
    delivery.inner = handlers ? interruption(sequence, sequence + 1) : items_.end();
    stop_at(decoder, delivery.inner);
  }
  Record record;
  while (!stream_.is_cut()) {
    if (limit == 0) {
      return false;
    }
    if (delivery.number >= item.delivered) {
      const uint64_t wanted = std::min<uint64_t>(limit, context_->records_left);
      const size_t taken = stream_.take_cached(decoder, static_cast<size_t>(wanted));
      context_->records_left -= taken;
      item.delivered += taken;
      delivery.number += taken;
      limit -= taken;
      if (limit == 0) {
        return false;
      }
    } else {
      delivery.number += decoder.take_cached(static_cast<size_t>(item.delivered - delivery.number),
                                             [](uint64_t, uint64_t, uint32_t) {});
    }
    switch (decoder.next(record)) {
      case Decoder::Step::kRecord:
        if (delivery.number++ < item.delivered) {
          continue;
        }
        if ((record.flags & kUnfinished) != 0 && !item.whole && !at_end_) {
          open_operation_ = true;
          return true;
        }
        if (context_->records_left == 0) {
          if (!std::exchange(context_->full, true)) {
            problem("more events than asked for; the rest is left out");
          }
          return true;
        }
        --context_->records_left;
        --limit;
        ++item.delivered;
        stream_.add(record);
        saw_end_ |= record.type == RecordType::kThreadEnd;
        continue;
      case Decoder::Step::kStop:
        delivery.inner = interrupted(sequence, delivery.inner, depth);
        stop_at(decoder, delivery.inner);
        continue;
      case Decoder::Step::kMalformed:
        problem(
            fmt::format("chunk {} of a thread: no record at byte {}", sequence, decoder.place()));
        stream_.gap();
        return true;
      case Decoder::Step::kEnd:
        return true;
    }
  }
  return true;
}

void LiveThread::stop_at(Decoder& decoder, Items::iterator inner) const {
  if (inner != items_.end()) {
    const ChunkStart& start = inner->second.start;
    decoder.stop_at({start.end, start.slot, start.count});
  }
}

// The first chunk from `from` on of a handler that interrupted this one. What comes in between
// interrupted its handlers.
LiveThread::Items::iterator LiveThread::interruption(uint64_t sequence, uint64_t from) {
  auto item = items_.lower_bound(from);
  while (item != items_.end() && item->second.start.interrupted > sequence + 1) {
    ++item;
  }
  const bool found = item != items_.end() && item->second.start.interrupted == sequence + 1;
  return found ? item : items_.end();
}

// Delivers the chunks of the handler that begins with `inner`; the next handler's, if any.
LiveThread::Items::iterator LiveThread::interrupted(uint64_t sequence, Items::iterator inner,
                                                    size_t depth) {
  const ChunkStart start = inner->second.start;
  auto& decoders = context_->decoders;
  bool entered = false;
  while (inner != items_.end() && std::memcmp(&inner->second.start, &start, sizeof start) == 0) {
    if (!inner->second.consumed && depth + 1 < kMaxDepth) {
      if (!entered) {
        const Item& handler = inner->second;
        stream_.enter_handler(
            says_settled(std::string_view(handler.payload).substr(handler.tokens)));
        entered = true;
      }
      if (depth == decoders.size()) {
        decoders.push_back(std::make_unique<Decoder>());
      }
      Delivery delivery;
      deliver(inner->first, inner->second, depth + 1, true, delivery, *decoders[depth], SIZE_MAX);
      inner->second.consumed = true;
    }
    inner = interruption(sequence, inner->first + 1);
  }
  if (entered) {
    stream_.leave_handler(sequence);
  }
  return inner;
}

}  // namespace tsomon::capture
