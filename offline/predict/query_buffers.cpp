// Queries under TSO: detours whose stores commit late, and witnesses with all commits.
#include <algorithm>
#include <array>
#include <deque>

#include "offline/predict/query.h"
#include "tso/support/work.h"

namespace tsomon::predict {
namespace {

// Adds the commits that no node stands for: of stores that nobody else sees, as soon as they may,
// and of releases.
class CompleteWitness {
 public:
  CompleteWitness(const Model& model, const CellTable& cells, Witness* witness)
      : model_(model), cells_(cells), buffers_(model.threads() / 2), witness_(*witness) {
    std::swap(raw_, witness_.tail);
    witness_.tail.reserve(raw_.size() + raw_.size() / 4);
  }

  void complete(std::span<const uint32_t> last) {
    for (const uint32_t entry : raw_) {
      make_room(entry);
      put(entry);
    }
    // Nothing comes between the last ones.
    for (const uint32_t entry : last) {
      make_room(entry);
    }
    witness_.tail.insert(witness_.tail.end(), last.begin(), last.end());
  }

 private:
  const Event& event(uint32_t entry) const { return model_.trace().events[entry & ~kCommit]; }

  // Commits what has to be before it.
  void make_room(uint32_t entry) {
    std::deque<uint32_t>& mine = buffers_[event(entry).thread];
    if ((entry & kCommit) != 0) {
      return;
    }
    const Event& now = event(entry);
    if (is(now, kEmptiesBuffer | kind_mask(EventKind::kRelease))) {
      flush(&mine, mine.size());
    } else if (now.kind() == EventKind::kJoin && now.address < buffers_.size()) {
      std::deque<uint32_t>& child = buffers_[now.address];
      flush(&child, child.size());
    } else if (now.kind() == EventKind::kRead && !mine.empty()) {
      flush(&mine, partial(mine, entry));
    }
  }

  void put(uint32_t entry) {
    std::deque<uint32_t>& mine = buffers_[event(entry).thread];
    witness_.tail.push_back(entry);
    if ((entry & kCommit) != 0) {
      const auto at = std::find(mine.begin(), mine.end(), entry & ~kCommit);
      if (at != mine.end()) {
        mine.erase(at);
      }
    } else if (event(entry).kind() == EventKind::kRelease) {
      witness_.tail.push_back(entry | kCommit);
    } else if (event(entry).kind() == EventKind::kWrite) {
      mine.push_back(entry);
    }
    size_t plain = 0;
    while (plain < mine.size() && !model_.split(mine[plain])) {
      ++plain;
    }
    flush(&mine, plain);
    spend(1);
  }

  void flush(std::deque<uint32_t>* buffer, size_t count) {
    for (; count > 0; --count) {
      witness_.tail.push_back(buffer->front() | kCommit);
      buffer->pop_front();
    }
  }

  // So many stores have to commit before the load: it is in a part of one of them.
  size_t partial(const std::deque<uint32_t>& buffer, uint32_t load) const {
    const CellSpan mine = cells_.of_event(load);
    spend(buffer.size());
    for (size_t i = buffer.size(); i-- > 0;) {
      const CellSpan theirs = cells_.of_event(buffer[i]);
      const bool apart =
          theirs.first + theirs.count <= mine.first || mine.first + mine.count <= theirs.first;
      if (!apart) {
        const bool covers =
            theirs.first <= mine.first && mine.first + mine.count <= theirs.first + theirs.count;
        return covers ? 0 : i + 1;
      }
    }
    return 0;
  }

  const Model& model_;
  const CellTable& cells_;
  std::vector<std::deque<uint32_t>> buffers_;
  std::vector<uint32_t> raw_;
  Witness& witness_;
};

}  // namespace

void Query::end(Witness* witness, std::span<const uint32_t> last) const {
  if (model().buffers()) {
    CompleteWitness(model(), shared_->cells, witness).complete(last);
  } else {
    witness->tail.insert(witness->tail.end(), last.begin(), last.end());
  }
}

// What the other thread reads last is free if it does nothing after that: that is tried first. A
// load that its own store is forwarded to does not see the other thread's: that store commits
// before it here.
std::optional<Meeting> Query::between_commits(const Detour& detour, bool sync_preserving) {
  const std::array<NodeId, 4> all = {detour.first, detour.to, detour.from, detour.last};
  std::vector<Reordering::Pair> orders = {{detour.first, detour.to}};
  std::vector<NodeId> commits;
  for (const NodeId id : all) {
    const Node& node = model().node(id);
    if (node.reads == 0) {
      continue;
    }
    for (const Use& use : model().uses(id)) {
      for (const ThreadList& list : model().writes_of(use.cell)) {
        spend(1);
        if (list.thread != node.thread + 1U) {
          continue;
        }
        const auto after =
            std::partition_point(list.items.begin(), list.items.end(),
                                 [&](uint32_t write) { return model().use(write).node < id; });
        if (after != list.items.begin()) {
          commits.push_back(model().use(*(after - 1)).node);
          orders.push_back({commits.back(), id});
        }
      }
    }
  }
  // The node that the other thread has come to, and no further; kNone: no such one.
  for (const NodeId there : {detour.from, detour.to, kNone}) {
    if (there != kNone && model().node(there).reads == 0) {
      continue;
    }
    std::vector<NodeId> meeting = {detour.last};
    if (there != kNone) {
      meeting.push_back(there);
    }
    const auto meets = [&](NodeId id) {
      return std::find(meeting.begin(), meeting.end(), id) != meeting.end();
    };
    std::vector<NodeId> included = commits;
    std::copy_if(all.begin(), all.end(), std::back_inserter(included),
                 [&](NodeId id) { return !meets(id); });
    std::vector<Reordering::Pair> inner;
    std::copy_if(orders.begin(), orders.end(), std::back_inserter(inner),
                 [&](const auto& pair) { return !meets(pair.from) && !meets(pair.to); });
    auto meeting_there = answer({meeting, included, inner}, sync_preserving);
    if (!meeting_there) {
      continue;
    }
    std::vector<uint32_t> last;
    for (auto at = meeting.rbegin(); at != meeting.rend(); ++at) {
      const Node& node = model().node(*at);
      last.push_back(node.event | (model().commits(node.thread) ? kCommit : 0));
    }
    end(&meeting_there->witness, last);
    return meeting_there;
  }
  return std::nullopt;
}

}  // namespace tsomon::predict
