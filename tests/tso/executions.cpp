#include "tests/tso/executions.h"

#include <algorithm>

#include "tests/tso/plain_units.h"
#include "tso/model/location_table.h"

namespace tsomon::testing {
namespace {

constexpr uint32_t kNot = 0xFFFFFFFFU;

}  // namespace

class Enumerator {
 public:
  Enumerator(const Executions& all, uint64_t max_steps,
             const std::function<void(const std::vector<Step>&)>& visit)
      : all_(all), trace_(all.trace_), options_(all.options_), budget_(max_steps), visit_(visit) {
    for (const uint32_t e : all.nodes_) {
      const ThreadId thread = trace_.events[e].thread;
      if (thread >= threads_.size()) {
        threads_.resize(thread + 1);
      }
      threads_[thread].push_back(e);
    }
    next_.resize(threads_.size());
    buffers_.resize(threads_.size());
    issued_.assign(trace_.events.size(), kNot);
    committed_.assign(trace_.events.size(), kNot);
    collect_constraints();
  }

  bool run() {
    step();
    return budget_ > 0;
  }

 private:
  // f may only be issued when e has taken effect (directed), or when e has been issued (conflicting
  // in this order).
  void collect_constraints() {
    after_effect_.resize(trace_.events.size());
    after_issue_.resize(trace_.events.size());
    for (size_t i = 0; i < all_.nodes_.size(); ++i) {
      for (size_t j = 0; j < all_.nodes_.size(); ++j) {
        const uint32_t e = all_.nodes_[i];
        const uint32_t f = all_.nodes_[j];
        if (i == j || trace_.events[e].thread == trace_.events[f].thread) {
          continue;
        }
        const Order order = all_.order_[i][j];
        const bool certain = options_.order == TraceOrder::kIssue &&
                             trace_.hi(trace_.events[e]) < trace_.events[f].lo;
        if (order == Order::kBefore) {
          after_effect_[f].push_back(e);
        } else if (order == Order::kUndirected && certain) {
          after_issue_[f].push_back(e);
        }
      }
    }
  }

  bool may_issue(uint32_t e) const {
    const Event& event = trace_.events[e];
    const auto& buffer = buffers_[event.thread];
    if (!all_.is_store(e) && event.kind() != EventKind::kRead && event.kind() != EventKind::kJoin &&
        event.kind() != EventKind::kReceive && !buffer.empty()) {
      return false;
    }
    if (all_.is_store(e) && options_.store_buffer != 0 && buffer.size() == options_.store_buffer) {
      return false;
    }
    if (event.kind() == EventKind::kRead) {
      for (size_t i = buffer.size(); i-- > 0;) {
        const Event& stored = trace_.events[buffer[i]];
        if (all_.same_location(buffer[i], e)) {
          if (!contains({stored.address, stored.size}, {event.address, event.size})) {
            return false;
          }
          break;
        }
      }
    }
    const auto held = [&](const NaiveChecker::Section& other) {
      const auto own = std::find_if(all_.sections_.begin(), all_.sections_.end(),
                                    [&](const auto& one) { return one.acquisition == e; });
      return own != all_.sections_.end() && all_.naive_.exclude(*own, other) &&
             issued_[other.acquisition] != kNot &&
             (all_.is_store(other.release) ? committed_ : issued_)[other.release] == kNot;
    };
    if (std::any_of(all_.sections_.begin(), all_.sections_.end(), held)) {
      return false;
    }
    return std::all_of(after_effect_[e].begin(), after_effect_[e].end(),
                       [&](uint32_t other) {
                         return (all_.is_store(other) ? committed_ : issued_)[other] != kNot;
                       }) &&
           std::all_of(after_issue_[e].begin(), after_issue_[e].end(),
                       [&](uint32_t other) { return issued_[other] != kNot; });
  }

  void step() {
    if (budget_ == 0 || --budget_ == 0) {
      return;
    }
    bool finished = true;
    for (uint32_t t = 0; t < threads_.size(); ++t) {
      if (next_[t] < threads_[t].size()) {
        finished = false;
        const uint32_t e = threads_[t][next_[t]];
        if (may_issue(e)) {
          issue(t, e);
        }
      }
      if (!buffers_[t].empty()) {
        finished = false;
        commit(t);
      }
    }
    if (finished) {
      visit_(steps_);
    }
  }

  void issue(uint32_t t, uint32_t e) {
    ++next_[t];
    issued_[e] = static_cast<uint32_t>(steps_.size());
    steps_.push_back({false, e});
    const bool store = all_.is_store(e);
    if (store) {
      buffers_[t].push_back(e);
    }
    if (store && options_.model == MemoryModel::kSc) {
      commit(t);
    } else {
      step();
    }
    if (store) {
      buffers_[t].pop_back();
    }
    steps_.pop_back();
    issued_[e] = kNot;
    --next_[t];
  }

  void commit(uint32_t t) {
    const uint32_t e = buffers_[t].front();
    buffers_[t].erase(buffers_[t].begin());
    committed_[e] = static_cast<uint32_t>(steps_.size());
    steps_.push_back({true, e});
    step();
    steps_.pop_back();
    committed_[e] = kNot;
    buffers_[t].insert(buffers_[t].begin(), e);
  }

  const Executions& all_;
  const Trace& trace_;
  const RelationOptions& options_;
  uint64_t budget_;
  const std::function<void(const std::vector<Step>&)>& visit_;
  std::vector<std::vector<uint32_t>> threads_;
  std::vector<size_t> next_;
  std::vector<std::vector<uint32_t>> buffers_;
  std::vector<uint32_t> issued_;
  std::vector<uint32_t> committed_;
  std::vector<std::vector<uint32_t>> after_effect_;
  std::vector<std::vector<uint32_t>> after_issue_;
  std::vector<Step> steps_;
};

// When each event is issued and takes effect, as positions in the execution.
struct Executions::Timeline {
  std::vector<uint32_t> issued;
  std::vector<uint32_t> effect;
  std::vector<uint32_t> forwarded;  // load -> store of its thread's buffer
};

Executions::Executions(const Trace& trace, const RelationOptions& options)
    : trace_(trace),
      options_(options),
      units_(numbered(plain_units(trace))),
      naive_(trace, options),
      sections_(naive_.sections()) {
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    if (is(trace.events[e], kinds::kNodes)) {
      nodes_.push_back(e);
    }
  }
  for (const uint32_t e : nodes_) {
    order_.emplace_back();
    for (const uint32_t f : nodes_) {
      order_.back().push_back(e == f ? Order::kNone : naive_.between(e, f));
    }
  }
}

bool Executions::is_store(uint32_t e) const {
  const EventKind kind = trace_.events[e].kind();
  return kind == EventKind::kWrite || kind == EventKind::kSend ||
         (kind == EventKind::kRelease && !options_.fenced_release);
}

bool Executions::same_location(uint32_t e, uint32_t f) const {
  const Event& a = trace_.events[e];
  const Event& b = trace_.events[f];
  return is(a, kinds::kAccesses) && is(b, kinds::kAccesses) &&
         overlap({a.address, a.size}, {b.address, b.size});
}

bool Executions::for_each(uint64_t max_steps,
                          const std::function<void(const std::vector<Step>&)>& visit) const {
  return Enumerator(*this, max_steps, visit).run();
}

Executions::Timeline Executions::timeline(const std::vector<Step>& execution) const {
  Timeline result;
  for (auto* times : {&result.issued, &result.effect, &result.forwarded}) {
    times->assign(trace_.events.size(), kNot);
  }
  for (uint32_t at = 0; at < execution.size(); ++at) {
    result.effect[execution[at].event] = at;
    if (!execution[at].commit) {
      result.issued[execution[at].event] = at;
    }
  }
  for (const uint32_t load : nodes_) {
    if (trace_.events[load].kind() != EventKind::kRead) {
      continue;
    }
    for (const uint32_t store : nodes_) {
      if (store < load && is_store(store) && result.effect[store] > result.issued[load] &&
          trace_.events[store].thread == trace_.events[load].thread && same_location(store, load)) {
        result.forwarded[load] = store;  // the newest wins
      }
    }
  }
  return result;
}

bool Executions::violates(Property property, const std::vector<Step>& execution) const {
  const std::vector<bool> on_cycle = violated(property, execution);
  return std::find(on_cycle.begin(), on_cycle.end(), true) != on_cycle.end();
}

std::vector<bool> Executions::violated(Property property,
                                       const std::vector<Step>& execution) const {
  const Timeline times = timeline(execution);
  const auto when = [&](uint32_t e) {
    return times.effect[times.forwarded[e] == kNot ? e : times.forwarded[e]];
  };
  const bool per_event = property == Property::kRobustness;
  const size_t count =
      per_event ? nodes_.size() : *std::max_element(units_.begin(), units_.end()) + 1;
  std::vector<std::vector<bool>> reach(count, std::vector<bool>(count, false));
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (size_t j = 0; j < nodes_.size(); ++j) {
      const uint32_t e = nodes_[i];
      const uint32_t f = nodes_[j];
      const size_t from = per_event ? i : units_[e];
      const size_t to = per_event ? j : units_[f];
      if (from == to) {
        continue;
      }
      if (trace_.events[e].thread == trace_.events[f].thread) {
        if (order_[i][j] == Order::kBefore || (per_event && e < f)) {
          reach[from][to] = true;
        }
      } else if (order_[i][j] != Order::kNone &&
                 (same_location(e, f) ? when(e) < when(f) : order_[i][j] == Order::kBefore)) {
        reach[from][to] = true;
      }
    }
  }
  for (size_t k = 0; k < count; ++k) {
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; reach[i][k] && j < count; ++j) {
        reach[i][j] = reach[i][j] || reach[k][j];
      }
    }
  }
  std::vector<bool> result(trace_.events.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const size_t node = per_event ? i : units_[nodes_[i]];
    result[nodes_[i]] = reach[node][node];
  }
  return result;
}

bool Executions::has_recorded_values(const std::vector<Step>& execution) const {
  const Timeline times = timeline(execution);
  return std::all_of(nodes_.begin(), nodes_.end(), [&](uint32_t load) {
    const auto recorded = trace_.read_value(trace_.events[load]);
    if (!recorded) {
      return true;
    }
    uint32_t from = times.forwarded[load];
    for (const uint32_t store : nodes_) {
      if (times.forwarded[load] == kNot && store != load && same_location(store, load) &&
          trace_.events[store].kind() != EventKind::kRead &&
          times.effect[store] < times.issued[load] &&
          (from == kNot || times.effect[from] < times.effect[store])) {
        from = store;
      }
    }
    return *recorded == (from == kNot ? 0 : trace_.write_value(trace_.events[from]));
  });
}

std::optional<Executions::Violated> Executions::all_violated(Property property, bool values,
                                                             uint64_t max_steps) const {
  Violated result;
  const bool all = for_each(max_steps, [&](const std::vector<Step>& execution) {
    if (!values || has_recorded_values(execution)) {
      result.insert(violated(property, execution));
    }
  });
  return all && !result.empty() ? std::optional(result) : std::nullopt;
}

std::optional<Verdict> Executions::verdict(Property property, bool values,
                                           uint64_t max_steps) const {
  const auto all = all_violated(property, values, max_steps);
  return all ? std::optional(verdict(*all)) : std::nullopt;
}

Verdict Executions::verdict(const Violated& violated) {
  const auto clean = [](const std::vector<bool>& execution) {
    return std::find(execution.begin(), execution.end(), true) == execution.end();
  };
  return std::all_of(violated.begin(), violated.end(), clean)    ? Verdict::kClean
         : std::none_of(violated.begin(), violated.end(), clean) ? Verdict::kDefinite
                                                                 : Verdict::kPossible;
}

}  // namespace tsomon::testing
