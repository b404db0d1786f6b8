#include "monitor/predict/slices.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "monitor/events/event_source.h"

namespace tsomon {
namespace {

// Blocks that were kept, as an input.
class SliceSource : public EventSource {
 public:
  SliceSource(std::vector<EventBlock> blocks, uint64_t first, Symbols symbols, bool knows_atomics)
      : knows_atomics_(knows_atomics),
        blocks_(std::move(blocks)),
        number_(first),
        symbols_(std::move(symbols)) {}

  Result<bool> next(EventBlock& block) override {
    if (at_ == blocks_.size()) {
      return false;
    }
    block = std::move(blocks_[at_++]);
    origin_.lines.resize(block.events.size());
    std::iota(origin_.lines.begin(), origin_.lines.end(), number_);
    number_ += block.events.size();
    return true;
  }
  const Symbols& symbols() const override { return symbols_; }
  Symbols take_symbols() override { return std::move(symbols_); }
  const std::vector<capture::Module>& modules() const override { return modules_; }
  std::vector<std::string> warnings() const override { return {}; }
  // There is more before and after it.
  bool complete() const override { return false; }
  uint64_t lost_events() const override { return 0; }
  bool knows_atomics() const override { return knows_atomics_; }

 private:
  bool knows_atomics_;
  std::vector<EventBlock> blocks_;
  size_t at_ = 0;
  uint64_t number_;
  Symbols symbols_;
  std::vector<capture::Module> modules_;
};

}  // namespace

SlicePredictor::SlicePredictor(const SliceOptions& options, Report report)
    : options_(options), report_(std::move(report)) {}

SlicePredictor::~SlicePredictor() {
  stop_.ask();
  if (running_.valid()) {
    running_.wait();
  }
}

void SlicePredictor::add(const EventBlock& block, const Symbols& symbols,
                         const ReportNames& names) {
  kept_.push_back({block, summary_.events});
  for (Event& event : kept_.back().block.events) {
    examine(event);
    if (event.kind() == EventKind::kAllocate) {
      if (sizes_.size() > kMaxKnown) {
        sizes_.clear();
      }
      *sizes_.try_emplace(event.address, 0).first = event.size;
    } else if (event.kind() == EventKind::kFree) {
      // Where the object began may be before the slice.
      const uint32_t* const size = sizes_.find(event.address);
      event.size = size != nullptr ? *size : 0;
    }
    ++summary_.events;
  }
  while (kept_.size() > 1 && summary_.events - kept_[1].first >= options_.slice_events) {
    kept_.pop_front();
  }
  take(names, false);
  if (ask_at_ && summary_.events >= *ask_at_) {
    ask(symbols);
  }
}

void SlicePredictor::idle(const ReportNames& names) { take(names, false); }

void SlicePredictor::finish(const Symbols& symbols, const ReportNames& names) {
  take(names, true);
  if (ask_at_ && !stop_asked()) {
    ask(symbols);
    take(names, true);
  }
}

std::vector<uint64_t>& SlicePredictor::held(ThreadId thread) {
  if (thread >= held_.size()) {
    held_.resize(thread + 1);
  }
  return held_[thread];
}

void SlicePredictor::examine(const Event& event) {
  switch (event.kind()) {
    case EventKind::kRead:
    case EventKind::kWrite:
      access(event);
      break;
    case EventKind::kAcquire:
    case EventKind::kAcquireShared:
      acquire(event);
      break;
    case EventKind::kRelease:
    case EventKind::kReleaseShared:
      release(event);
      break;
    default:
      break;
  }
}

void SlicePredictor::access(const Event& event) {
  if (accesses_.size() > kMaxKnown) {
    accesses_.clear();
  }
  const std::vector<uint64_t>& locks = held(event.thread);
  const Access mine{summary_.events,
                    event.thread,
                    event.location,
                    event.kind() == EventKind::kWrite,
                    locks.empty() ? kNoLock : locks.front(),
                    locks.empty() ? kNoLock : locks.back()};
  const auto [known, is_new] = accesses_.try_emplace(event.address, Accesses{mine, mine});
  if (is_new) {
    return;
  }
  Accesses& there = *known;
  if ((mine.writes && near_miss(mine, there.last)) ||
      (there.write.writes && near_miss(mine, there.write))) {
    want();
  }
  there.last = mine;
  if (mine.writes) {
    there.write = mine;
  }
}

bool SlicePredictor::near_miss(const Access& mine, const Access& other) {
  if (mine.thread == other.thread || mine.number - other.number > kNear) {
    return false;
  }
  const std::vector<uint64_t>& here = held(mine.thread);
  if (std::any_of(here.begin(), here.end(), [&](uint64_t lock) {
        return lock == other.outer_lock || lock == other.inner_lock;
      })) {
    return false;
  }
  return near_.size() < kMaxKnown && near_
                                         .emplace(std::min(mine.location, other.location),
                                                  std::max(mine.location, other.location))
                                         .second;
}

void SlicePredictor::acquire(const Event& event) {
  std::vector<uint64_t>& mine = held(event.thread);
  for (const uint64_t lock : mine) {
    if (lock != event.address && lock_orders_.size() < kMaxKnown &&
        lock_orders_.emplace(lock, event.address).second &&
        lock_orders_.count({event.address, lock}) != 0) {
      want();
    }
  }
  mine.push_back(event.address);
}

void SlicePredictor::release(const Event& event) {
  std::vector<uint64_t>& mine = held(event.thread);
  const auto last = std::find(mine.rbegin(), mine.rend(), event.address);
  if (last != mine.rend()) {
    mine.erase(std::next(last).base());
  }
}

// A slice of which what happens now is a part.
void SlicePredictor::want() {
  if (ask_at_) {
    return;
  }
  if (running_.valid() || work_ >= options_.max_work) {
    ++summary_.left_out;
    return;
  }
  ask_at_ = summary_.events + options_.slice_events / 4;
}

void SlicePredictor::ask(const Symbols& symbols) {
  ask_at_.reset();
  std::vector<EventBlock> blocks;
  for (const Kept& kept : kept_) {
    blocks.push_back(kept.block);
  }
  PredictOptions asked = options_.asked;
  asked.bounds.max_work = options_.max_work - work_;
  asked.stop = &stop_;
  ++summary_.slices;
  running_ = std::async(std::launch::async, [asked, source = std::make_shared<SliceSource>(
                                                        std::move(blocks), kept_.front().first,
                                                        symbols, options_.knows_atomics)] {
    auto prediction = predict_source(*source, asked);
    return prediction ? std::move(*prediction) : Prediction();
  });
}

// The answer about the slice, if it is there.
void SlicePredictor::take(const ReportNames& names, bool wait) {
  if (!running_.valid()) {
    return;
  }
  using namespace std::chrono_literals;
  while (running_.wait_for(wait ? 20ms : 0ms) != std::future_status::ready) {
    if (!wait) {
      return;
    }
    if (stop_asked()) {
      stop_.ask();
    }
  }
  Prediction prediction = running_.get();
  work_ += prediction.work;
  prediction.names = names;
  drop_known(&prediction);
  const uint64_t found = prediction.races.races.size() + prediction.deadlocks.deadlocks.size() +
                         prediction.atomicity.violations.size() +
                         prediction.lifetimes.after_free.size() +
                         prediction.lifetimes.after_destroy.size();
  summary_.predicted += found;
  if (found > 0) {
    report_(prediction);
  }
}

void SlicePredictor::drop_known(Prediction* prediction) {
  const auto drop = [&](auto& all) {
    std::erase_if(all, [&](const auto& one) {
      return !known_.insert(prediction_fingerprint(*prediction, one)).second;
    });
  };
  drop(prediction->races.races);
  drop(prediction->deadlocks.deadlocks);
  drop(prediction->atomicity.violations);
  drop(prediction->lifetimes.after_free);
  drop(prediction->lifetimes.after_destroy);
}

}  // namespace tsomon
