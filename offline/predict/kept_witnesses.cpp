#include "offline/predict/kept_witnesses.h"

#include <algorithm>
#include <iterator>

#include "tso/support/work.h"

namespace tsomon::predict {

ShortWitness shortened(const Model& model, const Witness& witness, bool as_in_trace) {
  ShortWitness brief;
  std::vector<uint32_t> last(model.threads(), kNone);
  for (uint32_t thread = 0; thread < last.size(); thread += model.buffers() ? 2 : 1) {
    const auto mine = model.events_of(thread);
    const auto end = std::lower_bound(mine.begin(), mine.end(), witness.start);
    last[thread] = end == mine.begin() ? kNone : *(end - 1);
  }
  size_t sorted = 0;
  if (as_in_trace && !model.buffers()) {
    // The last two are no part of the order, even if they keep it.
    sorted = witness.tail.size() - std::min<size_t>(2, witness.tail.size());
    for (size_t at = 0; at < sorted; ++at) {
      last[model.trace().events[witness.tail[at]].thread] = witness.tail[at];
    }
    spend(sorted);
  }
  brief.tail.assign(witness.tail.begin() + static_cast<ptrdiff_t>(sorted), witness.tail.end());
  std::copy_if(last.begin(), last.end(), std::back_inserter(brief.last),
               [](uint32_t event) { return event != kNone; });
  return brief;
}

void KeptWitnesses::keep(const Witness& witness, bool as_in_trace, std::vector<uint32_t>* whole,
                         ShortWitness* brief) {
  if (witness.size() > left_) {
    ++in_short_;
    *brief = shortened(model_, witness, as_in_trace);
    return;
  }
  left_ -= witness.size();
  if (!model_.buffers()) {
    *whole = witness.whole();
    return;
  }
  whole->reserve(2 * witness.size());
  for (uint32_t i = 0; i < witness.start; ++i) {
    whole->push_back(i);
    if (is(model_.trace().events[i], kinds::kStores)) {
      whole->push_back(i | kCommit);
    }
  }
  whole->insert(whole->end(), witness.tail.begin(), witness.tail.end());
}

}  // namespace tsomon::predict
