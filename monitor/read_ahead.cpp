#include "monitor/read_ahead.h"

#include <algorithm>
#include <utility>

#include <sched.h>

namespace tsomon {

unsigned usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0
             ? static_cast<unsigned>(std::max(1, CPU_COUNT(&set)))
             : 1;
}

ReadAhead::ReadAhead(EventSource& source, unsigned threads) : source_(source) {
  if (threads == 1 || usable_processors() == 1) {
    current_ = std::make_unique<SourceBlock>();
    return;
  }
  for (size_t i = 0; i < kBlocks; ++i) {
    free_.push_back(std::make_unique<SourceBlock>());
  }
  thread_ = std::thread([this] { run(); });
}

ReadAhead::~ReadAhead() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    has_free_.notify_one();
    thread_.join();
  }
}

Result<bool> ReadAhead::read(SourceBlock& block) {
  auto more = source_.next(block.events);
  if (more && *more) {
    count_.add(block.events);
    block.origin = source_.origin();
    find_news(block.news);
  }
  return more;
}

void ReadAhead::find_news(SymbolNews& news) {
  const Symbols& symbols = source_.symbols();
  news.labels.clear();
  while (told_labels_ < symbols.labels.size()) {
    news.labels.emplace_back(symbols.labels.text(told_labels_++));
  }
  const auto& values = symbols.initial_values;
  news.initial_values.assign(values.begin() + static_cast<ptrdiff_t>(told_initial_values_),
                             values.end());
  told_initial_values_ = values.size();
  news.initial_zero = symbols.initial_zero;
  size_t members = 0;
  for (const AtomicSet& set : symbols.sets) {
    members += set.members.size();
  }
  news.sets.reset();
  if (symbols.sets.size() != told_sets_ || members != told_members_) {
    news.sets = symbols.sets;
    told_sets_ = symbols.sets.size();
    told_members_ = members;
  }
}

void ReadAhead::learn(SymbolNews& news) {
  for (const std::string& label : news.labels) {
    judged_.labels.intern(label);
  }
  judged_.initial_values.insert(judged_.initial_values.end(), news.initial_values.begin(),
                                news.initial_values.end());
  judged_.initial_zero = news.initial_zero;
  if (news.sets) {
    judged_.sets = std::move(*news.sets);
  }
}

void ReadAhead::run() {
  for (bool more = true; more;) {
    std::unique_ptr<SourceBlock> block;
    {
      std::unique_lock lock(mutex_);
      has_free_.wait(lock, [this] { return stop_ || !free_.empty(); });
      if (stop_) {
        return;
      }
      block = std::move(free_.back());
      free_.pop_back();
    }
    const auto read_more = read(*block);
    more = read_more.value_or(false);
    {
      const std::lock_guard lock(mutex_);
      if (more) {
        ready_.push_back(std::move(block));
      } else {
        ended_ = true;
        if (!read_more) {
          failure_ = read_more.error();
        }
      }
    }
    has_ready_.notify_one();
  }
}

Result<const SourceBlock*> ReadAhead::next() {
  if (thread_.joinable()) {
    std::unique_lock lock(mutex_);
    if (current_ != nullptr) {
      free_.push_back(std::move(current_));
      has_free_.notify_one();
    }
    has_ready_.wait(lock, [this] { return ended_ || !ready_.empty(); });
    if (!ready_.empty()) {
      current_ = std::move(ready_.front());
      ready_.pop_front();
    } else {
      lock.unlock();
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
    if (failure_) {
      return tl::unexpected<Error>(*failure_);
    }
    return nullptr;
  }
  learn(current_->news);
  return current_.get();
}

}  // namespace tsomon
