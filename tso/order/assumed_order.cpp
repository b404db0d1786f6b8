#include "tso/order/assumed_order.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "tso/order/issue_order.h"
#include "tso/order/partial_order.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

// A LoadSources of events by their places in a PartialOrder.
struct Rule {
  uint32_t load = 0;
  std::optional<uint32_t> overwritten_by;
  std::vector<uint32_t> stores;
  std::vector<bool> locked;  // of the stores: in memory at once
};

class Tries {
 public:
  Tries(const std::vector<Rule>& rules, uint32_t limit) : rules_(rules), left_(limit) {}

  bool possible(PartialOrder order) {
    const Rule* undecided = nullptr;
    if (!propagate(&order, &undecided)) {
      return false;
    }
    if (undecided == nullptr || left_ == 0) {
      return true;
    }
    --left_;
    PartialOrder other = order;
    uint64_t work = 0;
    return (order.insert(*undecided->overwritten_by, undecided->load, &work) &&
            possible(std::move(order))) ||
           (other.insert(undecided->load, *undecided->overwritten_by, &work) &&
            possible(std::move(other)));
  }

 private:
  // Adds what follows. False: something follows that cannot be.
  bool propagate(PartialOrder* order, const Rule** undecided) const {
    for (bool changed = true; changed;) {
      changed = false;
      *undecided = nullptr;
      for (const Rule& rule : rules_) {
        spend(1 + rule.stores.size());
        if (rule.overwritten_by && !order->reaches(*rule.overwritten_by, rule.load)) {
          if (!order->reaches(rule.load, *rule.overwritten_by)) {
            *undecided = &rule;
          }
          continue;
        }
        if (!keep(rule, order, &changed)) {
          return false;
        }
      }
    }
    return true;
  }

  // One of the sources comes before the load: the only one that is left does.
  static bool keep(const Rule& rule, PartialOrder* order, bool* changed) {
    std::optional<uint32_t> only;
    for (size_t i = 0; i < rule.stores.size(); ++i) {
      const uint32_t store = rule.stores[i];
      if (order->reaches(rule.load, store) ||
          (rule.overwritten_by && rule.locked[i] && order->reaches(store, *rule.overwritten_by))) {
        continue;
      }
      if (only) {
        return true;
      }
      only = store;
    }
    uint64_t work = 0;
    if (!only) {
      return false;
    }
    *changed = *changed || !order->reaches(*only, rule.load);
    return order->insert(*only, rule.load, &work);
  }

  const std::vector<Rule>& rules_;
  uint32_t left_;
};

class Places {
 public:
  uint32_t of(uint32_t event) {
    const auto [at, added] = places_.try_emplace(event, static_cast<uint32_t>(events_.size()));
    if (added) {
      events_.push_back(event);
    }
    return at->second;
  }
  const std::vector<uint32_t>& events() const { return events_; }

 private:
  std::unordered_map<uint32_t, uint32_t> places_;
  std::vector<uint32_t> events_;
};

}  // namespace

AssumedOrder::AssumedOrder(const Relation& issues, const AccessIndex& accesses,
                           const RecordedValues& values, const Reachability& order,
                           const std::vector<Edge>& open)
    : issues_(&issues), accesses_(&accesses), values_(&values), order_(&order) {
  for (const Edge& edge : open) {
    for (const uint32_t e : {edge.from, edge.to}) {
      if (values.read(e)) {
        loads_.push_back(e);
      }
    }
  }
  std::sort(loads_.begin(), loads_.end());
  loads_.erase(std::unique(loads_.begin(), loads_.end()), loads_.end());
}

// Those whose intervals meet the time in which the assumed orders came about.
std::vector<uint32_t> AssumedOrder::loads_near(const std::vector<Edge>& assumed) const {
  int64_t begin = kTimeMax;
  int64_t end = kTimeMin;
  for (const Edge& edge : assumed) {
    for (const uint32_t e : {edge.from, edge.to}) {
      begin = std::min(begin, issues_->lo(e));
      end = std::max(end, issues_->hi(e));
    }
  }
  std::vector<uint32_t> near;
  spend(loads_.size());
  for (const uint32_t e : loads_) {
    if (issues_->lo(e) <= end && issues_->hi(e) >= begin && near.size() < kMaxLoads) {
      near.push_back(e);
    }
  }
  return near;
}

bool AssumedOrder::possible(const std::vector<Edge>& assumed) const {
  Places places;
  std::vector<Rule> rules;
  for (const LoadSources& sources :
       foreign_sources(*issues_, *accesses_, *values_, *order_, loads_near(assumed))) {
    if (sources.stores.size() > kMaxSources) {
      continue;
    }
    Rule& rule = rules.emplace_back();
    rule.load = places.of(sources.load);
    if (sources.overwritten_by != Relation::kNever) {
      rule.overwritten_by = places.of(sources.overwritten_by);
    }
    for (const uint32_t store : sources.stores) {
      rule.stores.push_back(places.of(store));
      rule.locked.push_back(issues_->drains(store));
    }
  }
  std::vector<Edge> chosen;
  chosen.reserve(assumed.size());
  for (const Edge& edge : assumed) {
    chosen.push_back({places.of(edge.from), places.of(edge.to)});
  }
  PartialOrder order = order_->among(places.events());
  uint64_t work = 0;
  return std::all_of(chosen.begin(), chosen.end(),
                     [&](const Edge& edge) { return order.insert(edge.from, edge.to, &work); }) &&
         Tries(rules, kMaxTries).possible(std::move(order));
}

}  // namespace tsomon
