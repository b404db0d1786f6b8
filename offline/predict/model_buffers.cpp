// The part of the model that knows store buffers.
#include <algorithm>

#include "offline/predict/model_state.h"
#include "tso/support/work.h"

namespace tsomon::predict {
namespace {

uint64_t own_cell(uint32_t thread, uint32_t cell) { return (uint64_t{thread} << 32) | cell; }

}  // namespace

// The last commit that has to come before the event; kNone. The buffer is empty then.
NodeId Model::drained_by(uint32_t i, std::vector<ThreadState>& states) {
  const Event& event = trace_.events[i];
  ThreadState* state = nullptr;
  if (is(event, kEmptiesBuffer | kind_mask(EventKind::kRelease))) {
    state = &states[number(event.thread)];
  } else if (event.kind() == EventKind::kJoin && event.address < threads() / 2) {
    state = &states[number(static_cast<ThreadId>(event.address))];
  }
  if (state == nullptr || state->pending.empty()) {
    return kNone;
  }
  const NodeId last = state->pending.back();
  state->drained += static_cast<uint32_t>(state->pending.size());
  state->pending.clear();
  releases_late_ = releases_late_ || (last != kNone && event.kind() == EventKind::kRelease);
  return last;
}

// The second node of a store.
NodeId Model::add_commit(uint32_t i, ThreadState& state) {
  const auto id = static_cast<NodeId>(nodes_.size());
  events_[state.thread].push_back(i);
  learn(state, id, id - 1);
  // Whoever commits is in the sections in which it was issued: they end with an empty buffer.
  state.held = nodes_[id - 1].held;
  put_node(i, state, false, true);
  state.owned_by = kNone;
  add_uses(id, cells_.of_event(i), state);
  needed_.push_back(state.clock);
  split_[i] = true;
  return id;
}

void Model::note_store(uint32_t i, ThreadState& state, NodeId commit) {
  const CellSpan span = cells_.of_event(i);
  const auto store = state.drained + static_cast<uint32_t>(state.pending.size());
  const NodeId last = state.pending.empty() ? kNone : state.pending.back();
  state.pending.push_back(commit != kNone ? commit : last);
  for (uint32_t cell = span.first; cell < span.first + span.count; ++cell) {
    *last_own_.try_emplace(own_cell(state.thread, cell), 0).first = store;
  }
  spend(2 * span.count);
}

// The last of its thread's stores that still wait in the load's cells; whether it covers all.
Model::Waiting Model::waiting_store(CellSpan span, const ThreadState& state) const {
  Waiting found;
  for (uint32_t cell = span.first; cell < span.first + span.count; ++cell) {
    const uint32_t* const store = last_own_.find(own_cell(state.thread, cell));
    if (store == nullptr || *store < state.drained) {
      found.whole = false;
      continue;
    }
    found.whole = found.whole && (found.store == kNone || *store == found.store);
    found.store = found.store == kNone ? *store : std::max(found.store, *store);
  }
  spend(2 * span.count);
  return found;
}

// A store that the load needs in memory, as it covers a part of it: the last commit up to there.
NodeId Model::covered_in_part_by(uint32_t i, const ThreadState& state) const {
  if (trace_.events[i].kind() != EventKind::kRead || state.pending.empty()) {
    return kNone;
  }
  const Waiting waiting = waiting_store(cells_.of_event(i), state);
  return waiting.store == kNone || waiting.whole ? kNone
                                                 : state.pending[waiting.store - state.drained];
}

// A load whose own store waits, which another thread has overwritten since: bound, it comes after
// the commit.
void Model::note_load(NodeId id, CellSpan span, ThreadState& state) {
  const Waiting waiting = waiting_store(span, state);
  const NodeId commit = waiting.store == kNone || !waiting.whole
                            ? kNone
                            : state.pending[waiting.store - state.drained];
  const auto mine = uses(id);
  if (commit == kNone || std::all_of(mine.begin(), mine.end(), [&](const Use& use) {
        return use.source != kNone && forwards(uses_[use.source].node, id);
      })) {
    return;
  }
  commits_first_.push_back({id, commit});
  if (bound_at_once(id)) {
    learn(state, id, commit);
  }
}

std::span<const Model::CommitFirst> Model::commits_first(NodeId read) const {
  const auto first =
      std::partition_point(commits_first_.begin(), commits_first_.end(),
                           [&](const CommitFirst& entry) { return entry.read < read; });
  const auto last = std::partition_point(
      first, commits_first_.end(), [&](const CommitFirst& entry) { return entry.read == read; });
  return {first, last};
}

}  // namespace tsomon::predict
