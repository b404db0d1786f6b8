#include "tests/reports/random_text.h"

#include <deque>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tsomon::reports {
namespace {

class Generator {
 public:
  Generator(uint64_t seed, std::optional<size_t> buffer)
      : random_(seed),
        buffer_(buffer),
        values_(buffer || chance(40)),
        intervals_(buffer || chance(25)),
        ranges_(!values_ && chance(30)),
        locks_(buffer || chance(30)),
        waits_(!buffer && chance(30)),
        threads_(2 + below(2)),
        open_(threads_, 0),
        buffers_(threads_) {}

  std::string make() {
    const bool creation = chance(buffer_ ? 50 : 20);
    if (creation) {
      for (size_t child = 1; child < threads_; ++child) {
        line(0, fmt::format("fork(T{})", child));
      }
      drain(0);
    }
    const size_t length = 4 + below(13);
    for (size_t i = 0; i < length; ++i) {
      step(below(threads_));
    }
    for (size_t thread = 0; thread < threads_; ++thread) {
      if (lock_owner_ == static_cast<int>(thread)) {
        release(thread);
      }
      while (open_[thread] > 0 && !chance(10)) {  // some units stay unfinished
        --open_[thread];
        line(thread, "end");
      }
    }
    if (creation) {
      line(0, "join(T1)");
    }
    return text_;
  }

 private:
  size_t below(size_t bound) { return random_() % bound; }
  bool chance(size_t percent) { return below(100) < percent; }

  void line(size_t thread, const std::string& op) {
    text_ += fmt::format("T{}|{}|f.c:{}", thread, op, count_);
    if (intervals_) {
      // Starts grow strictly, so a thread's events never seem to go backwards.
      const size_t lo = count_ * 4;
      text_ += fmt::format("|{}..{}", lo, lo + below(14));
    }
    text_ += "\n";
    ++count_;
  }

  std::string location() {
    if (ranges_) {
      static const char* const kRanges[] = {"0x100+4", "0x102+4", "0x104+2", "0x108+8", "0x10c+1"};
      return kRanges[below(5)];
    }
    return std::string(1, static_cast<char>('x' + below(3)));
  }

  // The execution that values come from.
  void drain(size_t thread) {
    for (const auto& [where, value] : buffers_[thread]) {
      memory_[where] = value;
    }
    buffers_[thread].clear();
  }
  void commit_some() {
    for (auto& buffer : buffers_) {
      while (!buffer.empty() && chance(20)) {
        memory_[buffer.front().first] = buffer.front().second;
        buffer.pop_front();
      }
    }
  }
  uint64_t seen_by(size_t thread, const std::string& where) {
    for (auto own = buffers_[thread].rbegin(); own != buffers_[thread].rend(); ++own) {
      if (own->first == where) {
        return own->second;
      }
    }
    return memory_[where];
  }
  std::string shown(uint64_t value) { return values_ ? fmt::format("={}", value) : ""; }

  void release(size_t thread) {
    line(thread, "rel(l)");
    drain(thread);
    lock_owner_ = -1;
  }

  void step(size_t thread) {
    commit_some();
    if (waits_ && open_[thread] > 0 && chance(15)) {
      line(thread, "wait(c)");
    }
    const size_t kind = below(100);
    if (kind < 16) {
      if (open_[thread] == 0 || chance(20)) {
        ++open_[thread];
        line(thread, chance(50) ? std::string("begin") : fmt::format("begin(u{})", below(3)));
      } else {
        --open_[thread];
        line(thread, "end");
      }
    } else if (kind < 22) {
      line(thread, "fence");
      drain(thread);
    } else if (kind < 28) {
      const std::string where = location();
      drain(thread);
      const uint64_t old = memory_[where];
      memory_[where] = ++last_value_;
      line(thread, values_ ? fmt::format("rmw({}={},{})", where, old, last_value_)
                           : fmt::format("rmw({})", where));
    } else if (kind < 36 && locks_ && lock_owner_ == -1) {
      line(thread, "acq(l)");
      drain(thread);
      lock_owner_ = static_cast<int>(thread);
    } else if (kind < 44 && lock_owner_ == static_cast<int>(thread)) {
      release(thread);
    } else if (kind < 72) {
      const std::string where = location();
      line(thread, fmt::format("r({}{})", where, shown(seen_by(thread, where))));
    } else {
      const std::string where = location();
      const uint64_t value = buffer_ || chance(80) ? ++last_value_ : below(3);
      buffers_[thread].emplace_back(where, value);
      if (buffer_ && buffers_[thread].size() > *buffer_) {
        memory_[buffers_[thread].front().first] = buffers_[thread].front().second;
        buffers_[thread].pop_front();
      }
      line(thread, fmt::format("w({}{})", where, shown(value)));
    }
  }

  std::mt19937_64 random_;
  const std::optional<size_t> buffer_;
  const bool values_, intervals_, ranges_, locks_, waits_;
  const size_t threads_;
  std::vector<int> open_;
  std::vector<std::deque<std::pair<std::string, uint64_t>>> buffers_;
  std::map<std::string, uint64_t> memory_;
  uint64_t last_value_ = 2;
  int lock_owner_ = -1;
  size_t count_ = 0;
  std::string text_;
};

}  // namespace

std::string random_text(uint64_t seed) { return Generator(seed, std::nullopt).make(); }
std::string rich_text(uint64_t seed, size_t buffer) { return Generator(seed, buffer).make(); }

}  // namespace tsomon::reports
