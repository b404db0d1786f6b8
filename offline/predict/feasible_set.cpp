#include "offline/predict/feasible_set.h"

#include <algorithm>

#include "tso/work.h"

namespace tsomon::predict {
namespace {

class SetBefore {
 public:
  SetBefore(const Model& model, NodeId a, NodeId b, Sections sections)
      : model_(model), a_(model.node(a)), b_(model.node(b)), sections_(sections) {
    counts_.assign(model.threads(), 0);
    add(model.before(a));
    add(model.before(b));
    own(a_);
    own(b_);
  }

  bool close() {
    bool changed = true;
    while (changed) {
      changed = false;
      for (uint32_t thread = 0; thread < counts_.size(); ++thread) {
        spend(1);
        if (counts_[thread] == 0) {
          continue;
        }
        // What is held does not stay where it is when the thread goes on.
        const auto held = model_.held(thread, counts_[thread]);
        for (const uint32_t section : held) {
          if (!must_end(model_.sections()[section])) {
            continue;
          }
          if (!end(model_.sections()[section])) {
            return false;
          }
          changed = true;
        }
      }
      if (counts_[a_.thread] != a_.position || counts_[b_.thread] != b_.position) {
        return false;
      }
    }
    return true;
  }

  std::vector<uint32_t> take() { return std::move(counts_); }

 private:
  void add(std::span<const uint32_t> clock) {
    for (size_t thread = 0; thread < counts_.size(); ++thread) {
      counts_[thread] = std::max(counts_[thread], clock[thread]);
    }
  }
  // A clock says nothing about its own thread, and the other one may need more than this.
  void own(const Node& node) {
    const uint32_t clock =
        other(node).thread == node.thread ? 0 : model_.before(id(other(node)))[node.thread];
    counts_[node.thread] = std::max(clock, node.position);
  }
  const Node& other(const Node& node) const { return &node == &a_ ? b_ : a_; }
  NodeId id(const Node& node) const { return model_.of_thread(node.thread)[node.position]; }

  bool racing(uint32_t thread) const { return thread == a_.thread || thread == b_.thread; }
  bool open(const Section& section) const {
    return section.release == kNone ||
           model_.node(section.release).position >= counts_[section.thread];
  }

  bool must_end(const Section& section) const {
    if (!open(section)) {
      return false;  // an earlier one of the same thread has led past it
    }
    const bool can_end = section.release != kNone && !racing(section.thread);
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
      const bool rival_can_end = rival.release != kNone && !racing(rival.thread);
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
    if (racing(section.thread) || section.release == kNone) {
      return false;
    }
    add(model_.needed(section.release));
    counts_[section.thread] =
        std::max(counts_[section.thread], model_.node(section.release).position + 1);
    return true;
  }

  const Model& model_;
  const Node& a_;
  const Node& b_;
  const Sections sections_;
  std::vector<uint32_t> counts_;
};

}  // namespace

std::optional<std::vector<uint32_t>> set_before(const Model& model, NodeId a, NodeId b,
                                                Sections sections) {
  SetBefore set(model, a, b, sections);
  if (!set.close()) {
    return std::nullopt;
  }
  return set.take();
}

}  // namespace tsomon::predict
