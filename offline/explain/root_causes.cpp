#include "offline/explain/root_causes.h"

#include <algorithm>

#include "tso/support/work.h"

namespace tsomon::explain {
namespace {

using Access = RootCauseProblem::Access;

class RootCauseFinder {
 public:
  RootCauseFinder(const RootCauseProblem& problem, const RootCauseBounds& bounds)
      : problem_(problem), accesses_(problem.accesses), bounds_(bounds) {
    for (const Access& access : accesses_) {
      threads_ = std::max(threads_, access.thread + 1);
    }
    lines_.resize(threads_);
    for (uint32_t i = 0; i < accesses_.size(); ++i) {
      lines_[accesses_[i].thread].push_back(i);
    }
    place_.resize(accesses_.size());
    for (std::vector<uint32_t>& line : lines_) {
      std::sort(line.begin(), line.end(), [&](uint32_t a, uint32_t b) {
        return accesses_[a].position < accesses_[b].position;
      });
      for (size_t place = 0; place < line.size(); ++place) {
        place_[line[place]] = place;
      }
    }
    keep_needed_conflicts();
    visits_.assign(threads_, 0);
    // Stores and loads of a thread are two chains where a store buffer keeps them apart, and a
    // cycle may need both.
    max_visits_ = std::all_of(accesses_.begin(), accesses_.end(),
                              [](const Access& access) {
                                return access.before_later && access.after_earlier;
                              })
                      ? 1
                      : 2;
  }

  RootCauses find() {
    for (start_thread_ = 0; start_thread_ < threads_ && !ended_; ++start_thread_) {
      visits_[start_thread_] = 1;
      for (const uint32_t start : sources_[start_thread_]) {
        start_ = start;
        follow(start, 1, {});
      }
      visits_[start_thread_] = max_visits_;  // cycles begin at their smallest thread
    }
    result_.minimal = minimal_.sets();
    return std::move(result_);
  }

 private:
  bool ordered(uint32_t earlier, uint32_t later) const {
    return accesses_[earlier].before_later || accesses_[later].after_earlier ||
           (problem_.ordered && problem_.ordered(earlier, later));
  }

  // A cycle comes into a thread at `in` and leaves it at `out`: the stretches of which one has to
  // be atomic for that. `free`: program order alone does it.
  void pass(uint32_t in, uint32_t out, bool* free, std::vector<Segment>* segments) const {
    const Access& a = accesses_[in];
    const Access& b = accesses_[out];
    segments->clear();
    *free = in == out || (a.position < b.position && ordered(in, out));
    if (*free) {
      return;
    }
    if (max_visits_ == 1) {
      if (a.operation == b.operation) {
        segments->push_back({a.operation, b.position, a.position});
      }
      return;
    }
    // Where a store buffer keeps accesses apart, any stretch helps that holds one which comes after
    // `in` for certain, and one which comes before `out` for certain.
    const std::vector<uint32_t>& line = lines_[a.thread];
    const auto operation_at = [&](size_t place) { return accesses_[line[place]].operation; };
    for (size_t after = place_[in]; after < line.size(); ++after) {
      if (after > place_[out] && operation_at(after) != b.operation) {
        break;
      }
      if (line[after] != in && !ordered(in, line[after])) {
        continue;
      }
      size_t first = after;
      while (first > 0 && operation_at(first - 1) == operation_at(after)) {
        --first;
      }
      for (size_t before = first;
           before <= place_[out] && operation_at(before) == operation_at(after); ++before) {
        spend(2);
        if (line[before] == out || ordered(line[before], out)) {
          const auto [from, to] = std::minmax(before, after);
          if (from == to) {  // through a third access
            *free = true;
            segments->clear();
            return;
          }
          add_minimal(
              {operation_at(after), accesses_[line[from]].position, accesses_[line[to]].position},
              segments);
        }
      }
    }
  }

  static void add_minimal(const Segment& segment, std::vector<Segment>* segments) {
    const auto inside = [&](const Segment& other) { return segment.contains(other); };
    if (std::none_of(segments->begin(), segments->end(), inside)) {
      segments->erase(std::remove_if(segments->begin(), segments->end(),
                                     [&](const Segment& other) { return other.contains(segment); }),
                      segments->end());
      segments->push_back(segment);
    }
  }

  // An access conflicts with many of another thread. The earliest that is ordered before all later
  // ones leaves no use for those behind it; of those that come before it likewise the latest.
  void keep_needed_conflicts() {
    std::vector<std::vector<uint32_t>> out(accesses_.size());
    for (const Edge& edge : problem_.conflicts) {
      spend(4);
      out[edge.from].push_back(edge.to);
    }
    std::vector<std::vector<uint32_t>> in(accesses_.size());
    const auto earlier = [&](uint32_t a, uint32_t b) {
      return accesses_[a].position < accesses_[b].position;
    };
    std::vector<bool> closed(threads_, false);
    const auto keep = [&](std::vector<uint32_t>& list, auto last) {
      std::fill(closed.begin(), closed.end(), false);
      const auto gone = std::remove_if(list.begin(), list.end(), [&](uint32_t access) {
        spend(4);
        const bool needless = closed[accesses_[access].thread];
        closed[accesses_[access].thread] = needless || last(accesses_[access]);
        return needless;
      });
      list.erase(gone, list.end());
    };
    for (uint32_t from = 0; from < accesses_.size(); ++from) {
      std::sort(out[from].begin(), out[from].end(), earlier);
      keep(out[from], [](const Access& access) { return access.before_later; });
      for (const uint32_t to : out[from]) {
        in[to].push_back(from);
      }
    }
    targets_.resize(accesses_.size());
    for (uint32_t to = 0; to < accesses_.size(); ++to) {
      std::sort(in[to].begin(), in[to].end(),
                [&](uint32_t a, uint32_t b) { return earlier(b, a); });
      keep(in[to], [](const Access& access) { return access.after_earlier; });
      for (const uint32_t from : in[to]) {
        targets_[from].push_back(to);
      }
    }
    sources_.resize(threads_);
    for (uint32_t from = 0; from < accesses_.size(); ++from) {
      if (!targets_[from].empty()) {
        sources_[accesses_[from].thread].push_back(from);
      }
    }
    for (std::vector<uint32_t>& sources : sources_) {
      std::sort(sources.begin(), sources.end(), earlier);
    }
  }

  void follow(uint32_t from, uint32_t length, const SegmentSet& segments) {
    for (const uint32_t to : targets_[from]) {
      const uint32_t thread = accesses_[to].thread;
      if (ended_ || !count()) {
        return;
      }
      if (thread == start_thread_) {
        close(to, segments);
      }
      if (visits_[thread] < max_visits_) {
        if (length == bounds_.max_visits) {
          result_.complete = false;
          continue;
        }
        ++visits_[thread];
        leave(to, length, segments);
        --visits_[thread];
      }
    }
  }

  void close(uint32_t in, const SegmentSet& segments) {
    bool free = false;
    std::vector<Segment> choices;
    pass(in, start_, &free, &choices);
    // Without a segment the order contradicts itself; that is no root cause.
    if (free && !segments.empty()) {
      add(segments);
    }
    for (const Segment& last : choices) {
      SegmentSet all = segments;
      all.push_back(last);
      add(all);
    }
  }

  void add(const SegmentSet& set) {
    minimal_.add(merged(set, {}));
    if (minimal_.sets().size() > bounds_.max_sets) {
      ended_ = true;
      result_.complete = false;
    }
  }

  void leave(uint32_t in, uint32_t length, const SegmentSet& segments) {
    bool free = false;
    std::vector<Segment> choices;
    for (const uint32_t out : sources_[accesses_[in].thread]) {
      if (ended_ || !count()) {
        return;
      }
      pass(in, out, &free, &choices);
      if (free) {
        follow(out, length + 1, segments);
      }
      for (const Segment& segment : choices) {
        SegmentSet more = segments;
        more.push_back(segment);
        if (!minimal_.covers(more)) {
          follow(out, length + 1, more);
        }
      }
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

  const RootCauseProblem& problem_;
  const std::vector<Access>& accesses_;
  RootCauseBounds bounds_;
  uint32_t threads_ = 0;
  std::vector<std::vector<uint32_t>> lines_;    // by thread, in program order
  std::vector<size_t> place_;                   // of an access in its thread's line
  std::vector<std::vector<uint32_t>> targets_;  // by access
  std::vector<std::vector<uint32_t>> sources_;  // by thread, in program order
  std::vector<uint32_t> visits_;                // by thread
  uint32_t max_visits_ = 1;
  uint32_t start_thread_ = 0;
  uint32_t start_ = 0;
  MinimalSets minimal_;
  RootCauses result_;
  bool ended_ = false;
};

}  // namespace

RootCauses find_root_causes(const RootCauseProblem& problem, const RootCauseBounds& bounds) {
  return RootCauseFinder(problem, bounds).find();
}

}  // namespace tsomon::explain
