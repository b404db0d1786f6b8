#include "monitor/events/read_ahead.h"

#include <algorithm>
#include <utility>

#include <sched.h>

#include "tso/support/work.h"

namespace tsomon {

unsigned usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0
             ? static_cast<unsigned>(std::max(1, CPU_COUNT(&set)))
             : 1;
}

ReadAhead::ReadAhead(EventSource& source, unsigned threads) : source_(source) {
  held_.know_places(
      Places([this](uint32_t location) { return source_.place_text(location, Symbols::kWithin); },
             [this](uint32_t location) { return source_.without_place(location); }));
  if (threads == 1 || usable_processors() == 1) {
    current_ = std::make_unique<SourceBlock>();
    return;
  }
  thread_ = std::thread([this, meter = current_meter()] {
    const WorkScope scope(meter);
    run();
  });
}

ReadAhead::~ReadAhead() { stop(); }

void ReadAhead::stop() {
  if (thread_.joinable()) {
    queue_.stop();
    thread_.join();
  }
}

Result<bool> ReadAhead::read(SourceBlock& block) {
  std::swap(part_.events, block.events);
  while (!held_.take(part_)) {
    if (ended_) {
      return false;
    }
    if (auto more = read_part(); !more) {
      return more;
    }
  }
  std::swap(part_.events, block.events);
  std::swap(part_.origin, block.origin);
  count_.add(block.events);
  symbol_deltas_.write(source_.symbols(), block.delta);
  return true;
}

// False: there are no more.
Result<bool> ReadAhead::read_part() {
  auto more = source_.next(part_.events);
  if (source_.may_cancel()) {
    held_.expect_cancels();
  }
  if (more && *more) {
    part_.origin = source_.origin();
    held_.add(part_);
  } else if (more) {
    ended_ = true;
    held_.finish();
  }
  return more;
}

void ReadAhead::run() {
  try {
    while (auto block = queue_.free_block()) {
      const auto more = read(*block);
      if (!more) {
        failure_ = more.error();
      }
      if (!more.value_or(false)) {
        break;
      }
      queue_.push(std::move(block));
    }
  } catch (...) {
    thrown_ = std::current_exception();
  }
  queue_.end();
}

Result<const SourceBlock*> ReadAhead::next() {
  if (thread_.joinable()) {
    if (current_ != nullptr) {
      queue_.give_back(std::move(current_));
    }
    current_ = queue_.pop();
    if (current_ == nullptr) {
      thread_.join();
    }
  } else if (current_ != nullptr) {
    const auto more = read(*current_);
    if (!more) {
      failure_ = more.error();
    }
    if (!more.value_or(false)) {
      current_.reset();
    }
  }
  if (current_ == nullptr) {
    if (thrown_) {
      std::rethrow_exception(thrown_);
    }
    if (failure_) {
      return tl::unexpected<Error>(*failure_);
    }
    return nullptr;
  }
  learn(std::move(current_->delta), judged_);
  return current_.get();
}

}  // namespace tsomon
