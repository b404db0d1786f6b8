#include "offline/predict/failed_attempts.h"

#include <algorithm>

#include "tso/support/work.h"

namespace tsomon::predict {
namespace {

constexpr uint32_t kStores = kind_mask(EventKind::kWrite) | kind_mask(EventKind::kReadModifyWrite);

}  // namespace

FailedAttempts::FailedAttempts(const Model& model, const KnownValues* known)
    : model_(model), known_(known) {
  if (known != nullptr) {
    waiting_ = known->waiting;
  }
  for (NodeId id = 0; id < model.size(); ++id) {
    if (has(id) && model.event(id).location != Event::kNoLocation) {
      waiting_.insert(model.event(id).location);
    }
  }
  spend(model.size());
}

bool FailedAttempts::fails(const Witness& witness, NodeId id) const {
  const std::vector<Event>& events = model_.trace().events;
  const Event& attempt = model_.event(id);
  const bool waiting = waits(id);
  const bool locked = known_ != nullptr && attempt.kind() == EventKind::kReadModifyWrite &&
                      attempt.span_or_extra != 0;
  if (model_.node(id).reads == 0 || !(waiting || locked)) {
    return false;
  }
  const uint32_t store = found(witness, id);
  if (store == last_write(id, model_.node(id).event)) {
    return false;
  }
  return waiting ||
         (store != kNone && events[store].span_or_extra == attempt.span_or_extra &&
          events[store].address == attempt.address && events[store].size == attempt.size);
}

// The store, an event, that the access reads from in the witness; kNone: there is none.
uint32_t FailedAttempts::found(const Witness& witness, NodeId id) const {
  const std::vector<Event>& events = model_.trace().events;
  const Event& attempt = model_.event(id);
  const auto stores = [&](uint32_t step) {
    const Event& event = events[step & ~kCommit];
    const bool commits =
        (step & kCommit) != 0 || !model_.buffers() || event.kind() == EventKind::kReadModifyWrite;
    return commits && is(event, kStores) && event.address < attempt.address + attempt.size &&
           attempt.address < event.address + event.size;
  };
  spend(witness.tail.size());
  const auto at = std::find(witness.tail.rbegin(), witness.tail.rend(), model_.node(id).event);
  const auto before =
      std::find_if(at == witness.tail.rend() ? at : at + 1, witness.tail.rend(), stores);
  return before != witness.tail.rend() ? *before & ~kCommit : last_write(id, witness.start);
}

// The last store to one of its cells, before an event of the trace.
uint32_t FailedAttempts::last_write(NodeId id, uint32_t start) const {
  uint32_t last = kNone;
  for (const Use& mine : model_.uses(id)) {
    for (const ThreadList& list : model_.writes_of(mine.cell)) {
      const auto event = [&](uint32_t use) { return model_.node(model_.use(use).node).event; };
      const auto after = std::partition_point(list.items.begin(), list.items.end(),
                                              [&](uint32_t use) { return event(use) < start; });
      spend(8);
      if (after != list.items.begin() && (last == kNone || last < event(*(after - 1)))) {
        last = event(*(after - 1));
      }
    }
  }
  return last;
}

}  // namespace tsomon::predict
