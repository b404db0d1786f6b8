#include "online/stream/stream_merger.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include <concurrentqueue/concurrentqueue.h>

#include "tso/support/result.h"

namespace tsomon {

struct StreamMerger::Block {
  std::shared_ptr<Shared> stream;
  EventBlock events;
  EventLoss loss;  // before the events
  bool is_loss = false;
  bool closes = false;
};

// What producer and consumer know of a stream.
struct StreamMerger::Shared {
  Shared(moodycamel::ConcurrentQueue<Block*>& queue, uint64_t rank, int64_t since)
      : token(queue), rank(rank), since(since), promised(since) {}

  moodycamel::ProducerToken token;  // the producer's
  const uint64_t rank;
  const int64_t since;
  std::atomic<int64_t> promised;
  // The consumer's:
  std::optional<EventMerge::Stream> number;
  int64_t promise_seen = kTimeMin;
};

class StreamMerger::Impl {
 public:
  explicit Impl(const StreamMergerOptions& options)
      : options_(options), limit_(options.max_blocks), merge_(options.max_blocks / 2) {}
  ~Impl() {
    Block* block = nullptr;
    while (full_.try_dequeue(block) || empty_.try_dequeue(block)) {
      delete block;
    }
    for (Block* const hollow : hollow_) {
      delete hollow;
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::shared_ptr<Shared> open(int64_t since) {
    limit_.fetch_add(2, std::memory_order_relaxed);
    const std::lock_guard guard(opening_);
    auto shared = std::make_shared<Shared>(full_, next_rank_++, since);
    opened_.push_back(shared);
    return shared;
  }

  // nullptr: none is left and producers do not wait.
  Block* take() {
    Block* block = nullptr;
    for (;;) {
      if (empty_.try_dequeue(block)) {
        return block;
      }
      size_t count = blocks_.load(std::memory_order_relaxed);
      while (count < limit_.load(std::memory_order_relaxed)) {
        if (blocks_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed)) {
          return new Block;
        }
      }
      if (options_.drop_when_full) {
        return nullptr;
      }
      waiting_.fetch_add(1);
      std::unique_lock lock(room_lock_);
      const bool found = empty_.try_dequeue(block);
      if (!found) {
        // The limit is for a wake-up that the queue was too slow to show.
        room_.wait_for(lock, std::chrono::milliseconds(20));
      }
      lock.unlock();
      waiting_.fetch_sub(1);
      if (found) {
        return block;
      }
    }
  }

  void give(Shared& shared, Block* block) {
    full_.enqueue(shared.token, block);
    notify();
  }

  void notify() {
    if (sleeping_.exchange(false)) {
      const std::lock_guard guard(sleep_lock_);
      wake_up_.notify_one();
    }
  }

  bool next(EventBlock& out, std::vector<EventLoss>& losses, size_t max_events) {
    while (!merge_.next(out, losses, max_events)) {
      const bool any = collect();
      if (merge_.waiting_for() && !merge_.overtake() && !any) {
        return false;
      }
      if (merge_.empty() && !any) {
        return false;
      }
    }
    give_back();
    return true;
  }

  void wait(std::chrono::milliseconds time) {
    sleeping_ = true;
    std::unique_lock lock(sleep_lock_);
    if (!something_new()) {
      wake_up_.wait_for(lock, time, [this] { return !sleeping_; });
    }
    sleeping_ = false;
  }

  bool drained() {
    collect();
    return merge_.empty();
  }

  const StreamMergerOptions options_;
  std::atomic<size_t> blocks_{0};
  EventMerge& merge() { return merge_; }

 private:
  // Takes over what was handed over and promised; whether there was anything.
  //
  // Promises are read first: everything that was handed over before a promise is then in the queue
  // when it is emptied. Streams that are new after that may have promised more since: only what
  // they promised when they were opened counts for now.
  bool collect() {
    bool any = false;
    for (const auto& stream : streams_) {
      const int64_t promised = stream->promised.load(std::memory_order_acquire);
      any |= promised != stream->promise_seen;
      stream->promise_seen = promised;
    }
    const size_t known = streams_.size();
    Block* block = nullptr;
    while (full_.try_dequeue(block)) {
      any = true;
      if (!block->stream->number) {
        take_opened();
      }
      take_over(block);
    }
    any |= take_opened();
    for (size_t i = 0; i < known; ++i) {
      if (streams_[i]->number) {
        merge_.promise(*streams_[i]->number, streams_[i]->promise_seen);
      }
    }
    // Closed ones keep their number until here, so that nothing is opened in their place twice.
    std::erase_if(streams_, [](const auto& stream) { return !stream->number; });
    return any;
  }

  bool take_opened() {
    const std::lock_guard guard(opening_);
    for (auto& stream : opened_) {
      stream->number = merge_.open(stream->rank, stream->since);
      stream->promise_seen = stream->since;
      streams_.push_back(std::move(stream));
    }
    const bool any = !opened_.empty();
    opened_.clear();
    return any;
  }

  void take_over(Block* block) {
    const EventMerge::Stream number = *block->stream->number;
    if (block->is_loss) {
      merge_.lose(number, block->loss);
      block->loss = {};
      block->is_loss = false;
    }
    if (!block->events.events.empty()) {
      merge_.push(number, std::move(block->events));
      block->events = EventBlock{};
    }
    if (block->closes) {
      merge_.close(number);
      block->stream->number.reset();
      block->closes = false;
      limit_.fetch_sub(2, std::memory_order_relaxed);
    }
    block->stream.reset();
    hollow_.push_back(block);
    give_back();
  }

  // A block goes back to the producers when there is memory for its events: that of a block that
  // was given out. Blocks without events take none.
  void give_back() {
    bool any = false;
    while (!hollow_.empty() && hollow_.size() > merge_.statistics().held) {
      Block* const block = hollow_.back();
      hollow_.pop_back();
      if (block->events.events.capacity() == 0) {
        block->events = merge_.take_block();
      }
      if (blocks_.load(std::memory_order_relaxed) > limit_.load(std::memory_order_relaxed)) {
        blocks_.fetch_sub(1, std::memory_order_relaxed);
        delete block;
      } else {
        empty_.enqueue(block);
        any = true;
      }
    }
    if (any && waiting_.load() != 0) {
      const std::lock_guard guard(room_lock_);
      room_.notify_all();
    }
  }

  bool something_new() {
    for (const auto& stream : streams_) {
      if (stream->promised.load(std::memory_order_acquire) != stream->promise_seen) {
        return true;
      }
    }
    if (full_.size_approx() != 0) {
      return true;
    }
    const std::lock_guard guard(opening_);
    return !opened_.empty();
  }

  moodycamel::ConcurrentQueue<Block*> full_;
  moodycamel::ConcurrentQueue<Block*> empty_;
  std::atomic<size_t> limit_;

  std::mutex opening_;
  uint64_t next_rank_ = 0;
  std::vector<std::shared_ptr<Shared>> opened_;  // not yet known to the consumer

  std::atomic<bool> sleeping_{false};
  std::mutex sleep_lock_;
  std::condition_variable wake_up_;

  std::atomic<uint32_t> waiting_{0};  // producers
  std::mutex room_lock_;
  std::condition_variable room_;

  // The consumer's:
  EventMerge merge_;
  std::vector<std::shared_ptr<Shared>> streams_;
  std::vector<Block*> hollow_;  // as many as the merge holds: their memory is there
};

StreamMerger::Stream::Stream(Stream&& other) noexcept
    : impl_(std::exchange(other.impl_, nullptr)),
      shared_(std::move(other.shared_)),
      block_(std::exchange(other.block_, nullptr)),
      dropped_(std::exchange(other.dropped_, 0)),
      dropped_thread_(other.dropped_thread_) {}

StreamMerger::Stream& StreamMerger::Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    close();
    impl_ = std::exchange(other.impl_, nullptr);
    shared_ = std::move(other.shared_);
    block_ = std::exchange(other.block_, nullptr);
    dropped_ = std::exchange(other.dropped_, 0);
    dropped_thread_ = other.dropped_thread_;
  }
  return *this;
}

// A block to fill; false: there is none.
bool StreamMerger::Stream::take_block() {
  if (block_ == nullptr) {
    block_ = impl_->take();
    if (block_ == nullptr) {
      return false;
    }
    block_->stream = shared_;
    if (dropped_ != 0) {
      block_->is_loss = true;
      block_->loss = {dropped_thread_, dropped_};
      dropped_ = 0;
    }
  }
  return true;
}

void StreamMerger::Stream::add(const Event& event, int64_t lo, int64_t hi,
                               std::optional<uint64_t> read_value,
                               std::optional<uint64_t> write_value) {
  if (block_ == nullptr && !take_block()) {
    dropped_thread_ =
        dropped_ == 0 || dropped_thread_ == event.thread ? event.thread : EventLoss::kUnknownThread;
    ++dropped_;
    return;
  }
  block_->events.add(event, lo, hi, read_value, write_value);
  if (block_->events.events.size() >= impl_->options_.block_events) {
    flush();
  }
}

void StreamMerger::Stream::lost(const EventLoss& loss) {
  flush();
  dropped_thread_ =
      dropped_ == 0 || dropped_thread_ == loss.thread ? loss.thread : EventLoss::kUnknownThread;
  if (take_block()) {
    block_->is_loss = true;
    block_->loss = {dropped_thread_, loss.events + block_->loss.events};
    flush();
  } else {
    dropped_ += std::max<uint64_t>(loss.events, 1);
  }
}

void StreamMerger::Stream::flush() {
  if (block_ != nullptr) {
    impl_->give(*shared_, std::exchange(block_, nullptr));
  }
}

void StreamMerger::Stream::advance(int64_t time) {
  flush();
  if (time > shared_->promised.load(std::memory_order_relaxed)) {
    shared_->promised.store(time, std::memory_order_release);
    impl_->notify();
  }
}

void StreamMerger::Stream::close() {
  if (impl_ == nullptr) {
    return;
  }
  flush();
  // The end must arrive: here a block is always waited for.
  while (!take_block()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  block_->closes = true;
  flush();
  impl_ = nullptr;
  shared_.reset();
}

StreamMerger::StreamMerger(const StreamMergerOptions& options)
    : impl_(std::make_unique<Impl>(options)) {}
StreamMerger::~StreamMerger() = default;

StreamMerger::Stream StreamMerger::open(int64_t since) {
  Stream stream;
  stream.shared_ = impl_->open(since);
  stream.impl_ = impl_.get();
  impl_->notify();
  return stream;
}

bool StreamMerger::next(EventBlock& out, std::vector<EventLoss>& losses, size_t max_events) {
  return impl_->next(out, losses, max_events);
}
void StreamMerger::wait(std::chrono::milliseconds time) { impl_->wait(time); }
bool StreamMerger::drained() { return impl_->drained(); }
const MergeStatistics& StreamMerger::statistics() const { return impl_->merge().statistics(); }
bool StreamMerger::complete() const { return impl_->merge().complete(); }
void StreamMerger::wake() { impl_->notify(); }
size_t StreamMerger::blocks() const { return impl_->blocks_.load(std::memory_order_relaxed); }

}  // namespace tsomon
