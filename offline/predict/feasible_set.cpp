#include "offline/predict/feasible_set.h"

#include <algorithm>

#include "offline/predict/counted_threads.h"
#include "tso/support/work.h"

namespace tsomon::predict {
namespace {

class SetBefore {
 public:
  SetBefore(const Model& model, std::span<const NodeId> meeting, Sections sections,
            std::span<const NodeId> included)
      : model_(model), meeting_(meeting), sections_(sections) {
    counts_.assign(model.threads(), 0);
    meets_.assign(model.threads(), false);
    // A clock says nothing about its own thread.
    for (const NodeId id : meeting) {
      const Node& node = model.node(id);
      const auto clock = model.before(id);
      const uint32_t mine = counts_[node.thread];
      raise_counts(counts_, clock);
      counts_[node.thread] = std::max(mine, node.position);
      meets_[node.thread] = true;
      // A section in which it was issued ends when it is committed.
      meets_[model.owner(node.thread)] = true;
    }
    for (const NodeId id : included) {
      include(id);
    }
  }

  bool close() {
    bool changed = true;
    while (changed) {
      changed = false;
      spend(counts_.size());
      bool fails = false;
      each_counted(counts_, [&](uint32_t thread) {
        // What is held does not stay where it is when the thread goes on.
        const auto held = model_.held(thread, counts_[thread]);
        for (const uint32_t section : held) {
          if (fails || !must_end(model_.sections()[section])) {
            continue;
          }
          fails = !end(model_.sections()[section]);
          changed = true;
        }
      });
      if (fails) {
        return false;
      }
      for (const Counter& counter : model_.counters()) {
        const NodeId post = missing_post(counter);
        if (post == kNone) {
          continue;
        }
        if (post == kNowhere) {
          return false;
        }
        include(post);
        changed = true;
      }
      for (const NodeId id : meeting_) {
        if (counts_[model_.node(id).thread] != model_.node(id).position) {
          return false;
        }
      }
    }
    return true;
  }

  std::vector<uint32_t> take() { return std::move(counts_); }

 private:
  static constexpr NodeId kNowhere = kNone - 1;

  bool contains(NodeId id) const {
    return model_.node(id).position < counts_[model_.node(id).thread];
  }
  size_t contained(uint32_t thread, const std::vector<NodeId>& nodes) const {
    spend(2);
    return static_cast<size_t>(std::partition_point(nodes.begin(), nodes.end(),
                                                    [&](NodeId id) {
                                                      return model_.node(id).position <
                                                             counts_[thread];
                                                    }) -
                               nodes.begin());
  }

  // Of a semaphore that is taken more often than it can be: the first post before `end` that is not
  // there and could be; kNowhere: there is none. kNone: none is needed.
  NodeId missing_post(const Counter& counter) const {
    int64_t count = counter.initial;
    NodeId first = kNone;  // post that is not there
    bool any = false;
    for (const Counter::Mine& mine : counter.threads) {
      const size_t posts = contained(mine.thread, mine.posts);
      const size_t takes = contained(mine.thread, mine.takes);
      count += static_cast<int64_t>(posts) - static_cast<int64_t>(takes);
      any = any || takes != 0;
      if (posts < mine.posts.size()) {
        first = std::min(first, mine.posts[posts]);
      }
    }
    if (count < 0) {
      return first_post(counter, kNone);
    }
    return sections_ == Sections::kKept && any && first != kNone ? missing_early(counter, first)
                                                                 : kNone;
  }

  NodeId first_post(const Counter& counter, NodeId end) const {
    NodeId first = kNowhere;
    for (const Counter::Mine& mine : counter.threads) {
      const size_t posts = contained(mine.thread, mine.posts);
      if (posts < mine.posts.size() && !meets_[mine.thread] && mine.posts[posts] < end) {
        first = std::min(first, mine.posts[posts]);
      }
    }
    return first;
  }

  // In the order of the trace, from the first post on that is not there: up to it the set has all
  // posts, and the count is what it was but for takes that are not there.
  NodeId missing_early(const Counter& counter, NodeId first) const {
    auto at = std::partition_point(counter.steps.begin(), counter.steps.end(),
                                   [&](const Counter::Step& step) { return step.node < first; });
    int64_t count = at->before;
    for (const Counter::Mine& mine : counter.threads) {
      const auto left =
          mine.takes.begin() + static_cast<ptrdiff_t>(contained(mine.thread, mine.takes));
      count += std::lower_bound(left, mine.takes.end(), first) - left;
    }
    for (; at != counter.steps.end(); ++at) {
      spend(1);
      if (!contains(at->node)) {
        continue;
      }
      count += at->takes ? -1 : 1;
      if (count < 0) {
        return first_post(counter, at->node);
      }
    }
    return kNone;
  }

  void include(NodeId id) {
    const auto clock = model_.needed(id);
    raise_counts(counts_, clock);
    const Node& node = model_.node(id);
    counts_[node.thread] = std::max(counts_[node.thread], node.position + 1);
  }
  bool open(const Section& section) const {
    return section.release == kNone ||
           model_.node(section.release).position >= counts_[section.thread];
  }

  bool must_end(const Section& section) const {
    if (!open(section)) {
      return false;  // an earlier one of the same thread has led past it
    }
    const bool can_end = section.release != kNone && !meets_[section.thread];
    if (sections_ == Sections::kClosed && can_end) {
      return true;
    }
    const bool keeps_order =
        sections_ == Sections::kKept || (sections_ == Sections::kOpen && can_end);
    for (const ThreadList& list : model_.sections_of(section.lock)) {
      spend(1);
      if (list.thread == section.thread || counts_[list.thread] == 0) {
        continue;
      }
      const uint32_t last = model_.last_section(list, counts_[list.thread], section.shared);
      if (last == kNone) {
        continue;
      }
      const Section& rival = model_.sections()[last];
      const bool rival_can_end = rival.release != kNone && !meets_[rival.thread];
      if (keeps_order && rival.acquire > section.acquire) {
        return true;
      }
      // One of the two has to end; if this one cannot, it is the other one's turn.
      if (open(rival) && (can_end || !rival_can_end)) {
        return true;
      }
    }
    return false;
  }

  bool end(const Section& section) {
    if (meets_[section.thread] || section.release == kNone) {
      return false;
    }
    include(section.release);
    return true;
  }

  const Model& model_;
  const std::span<const NodeId> meeting_;
  const Sections sections_;
  std::vector<uint32_t> counts_;
  std::vector<bool> meets_;  // threads
};

}  // namespace

std::optional<std::vector<uint32_t>> set_before(const Model& model, std::span<const NodeId> meeting,
                                                Sections sections,
                                                std::span<const NodeId> included) {
  SetBefore set(model, meeting, sections, included);
  if (!set.close()) {
    return std::nullopt;
  }
  return set.take();
}

}  // namespace tsomon::predict
