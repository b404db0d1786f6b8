#include "offline/explain/root_causes.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "offline/explain/reachable.h"
#include "tso/support/work.h"

namespace tsomon::explain {
namespace {

using Access = RootCauseProblem::Access;

constexpr uint32_t kNoAccess = 0xFFFFFFFFU;

class RootCauseFinder {
 public:
  RootCauseFinder(const RootCauseProblem& problem, const RootCauseBounds& bounds)
      : accesses_(problem.accesses), bounds_(bounds), reach_(problem) {
    result_.complete = reach_.exact() && !reach_.is_cyclic();
  }

  RootCauses find() {
    if (!reach_.is_cyclic()) {
      for (uint32_t start = 0; start < accesses_.size() && !ended_; ++start) {
        search(start);
      }
    }
    result_.minimal = minimal_.sets();
    return std::move(result_);
  }

 private:
  // The walk has come back to `at`, by the segments of the set.
  struct State {
    uint64_t length = 0;
    uint32_t at = 0;
    SegmentSet set;
    bool operator<(const State& other) const {
      return length > other.length;
    }  // the shortest first
  };

  // Walks that begin at `start`, which a segment leads to.
  void search(uint32_t start) {
    start_ = start;
    waiting_ = {};
    seen_.clear();
    expand({0, start, {}}, true);
    while (!waiting_.empty() && !ended_) {
      const State state = waiting_.top();
      waiting_.pop();
      if (is_superfluous(state)) {
        continue;
      }
      expand(state, false);
      seen_.push_back(state);
    }
  }

  // A walk with less leads as far.
  bool is_superfluous(const State& state) {
    if (minimal_.covers(state.set)) {
      return true;
    }
    spend(seen_.size());
    return std::any_of(seen_.begin(), seen_.end(), [&](const State& other) {
      return reach_.has(other.at, state.at) && below(other.set, state.set);
    });
  }

  void expand(const State& state, bool first) {
    for (uint32_t thread = 0; thread < reach_.threads() && !ended_; ++thread) {
      const uint32_t from = reach_.first(state.at, thread);
      if (from == Reachable::kNever) {
        continue;
      }
      const std::vector<uint32_t>& line = reach_.line(thread);
      const size_t end = std::min<size_t>(reach_.all_from(state.at, thread), line.size());
      // Operations of which a part comes after `at`, and a part does not.
      size_t begin = from;
      while (begin > 0 && same_operation(line[begin - 1], line[from])) {
        --begin;
      }
      while (begin <= end && begin < line.size() && !ended_) {
        size_t behind = begin;
        while (behind < line.size() && same_operation(line[behind], line[begin])) {
          ++behind;
        }
        jump_inside(state, first, line, begin, behind);
        begin = behind;
      }
    }
  }

  bool same_operation(uint32_t a, uint32_t b) const {
    return accesses_[a].operation == accesses_[b].operation;
  }

  // From what the walk reaches of an operation to what it does not, each by the shortest segments.
  void jump_inside(const State& state, bool first, const std::vector<uint32_t>& line, size_t begin,
                   size_t end) {
    // A walk that has not left the operation is none yet.
    const bool own = first && same_operation(line[begin], start_);
    const auto reached = [&](uint32_t access) {
      return own ? reach_.has_through_conflict(state.at, access) : reach_.has(state.at, access);
    };
    uint32_t last = kNoAccess;
    for (size_t i = begin; i < end && !ended_; ++i) {
      last = jump(state, reached(line[i]), line[i], last);
    }
    last = kNoAccess;
    for (size_t i = end; i-- > begin && !ended_;) {
      last = jump(state, reached(line[i]), line[i], last);
    }
  }

  // `last`: of what is reached, the nearest one. Returns that for the next access.
  uint32_t jump(const State& state, bool reached, uint32_t to, uint32_t last) {
    if (reached) {
      return to;
    }
    if (last == kNoAccess || (to != start_ && reach_.has(state.at, to)) || !count()) {
      return last;
    }
    const auto [a, b] = std::minmax(accesses_[last].position, accesses_[to].position);
    State next{0, to, merged(state.set, {{accesses_[to].operation, a, b}})};
    if (minimal_.covers(next.set)) {
      return last;
    }
    if (reach_.has(to, start_)) {
      add(next.set);
      return last;
    }
    for (const Segment& segment : next.set) {
      next.length += segment.last - segment.first + 1;
    }
    waiting_.push(std::move(next));
    return last;
  }

  void add(const SegmentSet& set) {
    minimal_.add(set);
    if (minimal_.sets().size() > bounds_.max_sets) {
      ended_ = true;
      result_.complete = false;
    }
  }

  bool count() {
    spend(8);
    if (++result_.sequences > bounds_.max_sequences) {
      result_.complete = false;
      ended_ = true;
    }
    return !ended_;
  }

  const std::vector<Access>& accesses_;
  RootCauseBounds bounds_;
  Reachable reach_;
  uint32_t start_ = 0;
  std::priority_queue<State> waiting_;
  std::vector<State> seen_;  // of this start
  MinimalSets minimal_;
  RootCauses result_;
  bool ended_ = false;
};

}  // namespace

RootCauses find_root_causes(const RootCauseProblem& problem, const RootCauseBounds& bounds) {
  return RootCauseFinder(problem, bounds).find();
}

}  // namespace tsomon::explain
