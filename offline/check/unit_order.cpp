#include "offline/check/unit_order.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "tso/support/work.h"

namespace tsomon {
namespace {

class UnitSearch {
 public:
  UnitSearch(const GrowingOrder& directed, const std::vector<ReadsFrom>& rules,
             const std::vector<uint32_t>& priority, const UnitOrderBounds& bounds)
      : directed_(directed),
        rules_(rules),
        bounds_(bounds),
        missing_(directed.size(), 0),
        done_(directed.size(), false),
        waits_(directed.size(), 0),
        as_write_(directed.size()),
        as_read_(directed.size()),
        set_(directed.size() / 8 + 1, '\0') {
    for (uint32_t i = 0; i < rules.size(); ++i) {
      as_write_[rules[i].write].push_back(i);
      as_read_[rules[i].read].push_back(i);
    }
    for (uint32_t i = 0; i < directed.size(); ++i) {
      by_priority_.push_back(i);
    }
    std::sort(by_priority_.begin(), by_priority_.end(),
              [&](uint32_t a, uint32_t b) { return priority[a] < priority[b]; });
    rank_.resize(directed.size());
    for (uint32_t rank = 0; rank < directed.size(); ++rank) {
      rank_[by_priority_[rank]] = rank;
    }
    ready_.assign(directed.size() / 64 + 1, 0);
    for (uint32_t i = 0; i < directed.size(); ++i) {
      missing_[i] = directed.count_before(i) - 1;
      if (missing_[i] == 0) {
        turn_ready(i);
      }
    }
  }

  Answer run() {
    std::vector<Frame> frames;
    frames.push_back(enter());
    while (true) {
      if (order_.size() == directed_.size()) {
        return Answer::kYes;
      }
      Frame& frame = frames.back();
      if (frame.next == frame.choices.size()) {
        take_back(frame.mark);
        frames.pop_back();
        if (frames.empty()) {
          return Answer::kNo;
        }
        continue;
      }
      spend(1 + order_.size() / 64);
      if (++states_ > bounds_.max_states || bytes_ > bounds_.max_bytes) {
        return Answer::kUnknown;
      }
      take_back(frame.after_free);
      take(frame.choices[frame.next++]);
      frames.push_back(enter());
    }
  }

  uint64_t states() const { return states_; }

  std::vector<uint32_t> places() const {
    std::vector<uint32_t> place(order_.size());
    for (uint32_t i = 0; i < order_.size(); ++i) {
      place[order_[i]] = i;
    }
    return place;
  }

 private:
  struct Frame {
    size_t mark;        // units in order before the free ones of this state
    size_t after_free;  // and with them
    std::vector<uint32_t> choices;
    size_t next = 0;
  };

  // All that has to come before is in order, the unit is not.
  void turn_ready(uint32_t unit) { ready_[rank_[unit] / 64] ^= uint64_t{1} << (rank_[unit] % 64); }

  // Calls function(unit) for those that may come next, by priority, until it returns true.
  template <typename Function>
  bool any_next(const Function& function) const {
    spend(1 + ready_.size());
    for (size_t word = 0; word < ready_.size(); ++word) {
      for (uint64_t bits = ready_[word]; bits != 0; bits &= bits - 1) {
        const uint32_t unit = by_priority_[word * 64 + static_cast<size_t>(__builtin_ctzll(bits))];
        if (waits_[unit] == 0 && function(unit)) {
          return true;
        }
      }
    }
    return false;
  }

  // Nobody waits because the unit is in order.
  bool is_free(uint32_t unit) const {
    return std::all_of(as_write_[unit].begin(), as_write_[unit].end(), [&](uint32_t rule) {
      return done_[rules_[rule].read] || done_[rules_[rule].other];
    });
  }

  void take(uint32_t unit) {
    done_[unit] = true;
    set_[unit / 8] = static_cast<char>(set_[unit / 8] ^ (1 << (unit % 8)));
    order_.push_back(unit);
    turn_ready(unit);
    directed_.for_each_after(unit, [&](uint32_t later) {
      if (later != unit && --missing_[later] == 0) {
        turn_ready(later);
      }
    });
    for (const uint32_t rule : as_write_[unit]) {
      waits_[rules_[rule].other] += done_[rules_[rule].read] ? 0 : 1;
    }
    for (const uint32_t rule : as_read_[unit]) {
      waits_[rules_[rule].other] -= done_[rules_[rule].write] ? 1 : 0;
    }
  }

  void take_back(size_t mark) {
    while (order_.size() > mark) {
      const uint32_t unit = order_.back();
      order_.pop_back();
      for (const uint32_t rule : as_read_[unit]) {
        waits_[rules_[rule].other] += done_[rules_[rule].write] ? 1 : 0;
      }
      for (const uint32_t rule : as_write_[unit]) {
        waits_[rules_[rule].other] -= done_[rules_[rule].read] ? 0 : 1;
      }
      directed_.for_each_after(unit, [&](uint32_t later) {
        if (later != unit && missing_[later]++ == 0) {
          turn_ready(later);
        }
      });
      turn_ready(unit);
      set_[unit / 8] = static_cast<char>(set_[unit / 8] ^ (1 << (unit % 8)));
      done_[unit] = false;
    }
  }

  // Takes what is free, and lists what can be tried then; nothing if the set has been seen.
  Frame enter() {
    Frame frame;
    frame.mark = order_.size();
    const auto take_if_free = [&](uint32_t unit) {
      const bool free = is_free(unit);
      if (free) {
        take(unit);
      }
      return free;
    };
    while (any_next(take_if_free)) {
    }
    frame.after_free = order_.size();
    if (seen_.insert(set_).second) {
      bytes_ += set_.size() + 64;
      any_next([&](uint32_t unit) {
        frame.choices.push_back(unit);
        return false;
      });
    }
    return frame;
  }

  const GrowingOrder& directed_;
  const std::vector<ReadsFrom>& rules_;
  const UnitOrderBounds& bounds_;
  std::vector<uint32_t> missing_;  // units that have to come before and are not in order
  std::vector<bool> done_;
  std::vector<uint32_t> waits_;  // rules of which `write` is in order and `read` is not
  std::vector<std::vector<uint32_t>> as_write_;  // rules
  std::vector<std::vector<uint32_t>> as_read_;
  std::vector<uint32_t> by_priority_;
  std::vector<uint32_t> rank_;   // place in it
  std::vector<uint64_t> ready_;  // bits by rank
  std::vector<uint32_t> order_;
  std::string set_;  // bits of the units in order
  std::unordered_set<std::string> seen_;
  uint64_t bytes_ = 0;
  uint64_t states_ = 0;
};

}  // namespace

Answer order_units(const GrowingOrder& directed, const std::vector<ReadsFrom>& rules,
                   const std::vector<uint32_t>& priority, const UnitOrderBounds& bounds,
                   std::vector<uint32_t>* place, uint64_t* states) {
  UnitSearch search(directed, rules, priority, bounds);
  const Answer answer = search.run();
  *states += search.states();
  if (answer == Answer::kYes) {
    *place = search.places();
  }
  return answer;
}

}  // namespace tsomon
