#include "offline/predict/three_units.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace tsomon::predict {
namespace {

constexpr uint32_t kNearest = 8;
constexpr uint32_t kBefore = 4;  // units and events of a thread before one
constexpr uint64_t kMaxSteps = 2'000'000;
constexpr uint32_t kMaxAsked = 2'000;
constexpr uint32_t kMaxAccesses = 1'000'000;

// Accesses of a unit, or of an event of no unit, to a cell.
struct Touch {
  uint32_t item = 0;
  uint32_t cell = 0;
  NodeId first = kNone;
  NodeId last = kNone;
  NodeId first_write = kNone;
  NodeId last_write = kNone;
};

class ThreeUnits {
 public:
  ThreeUnits(Query& query, const AtomicityOptions& options, const UnitAccesses& units,
             KeptWitnesses* kept, AtomicityResult* result)
      : query_(query),
        model_(query.model()),
        options_(options),
        units_(units),
        kept_(*kept),
        result_(*result) {}

  void run() {
    if (model_.buffers() || model_.size() > kMaxAccesses || !collect()) {
      return;
    }
    looked_at_ = query_.looked_at();
    for (const AtomicityViolation& violation : result_.violations) {
      closed_.insert(place_of(violation.last));
    }
    for (const auto& [thread, touches] : items_) {
      if (!touches.empty() && units_.is_unit(units_.unit_of(touches.front().first))) {
        unit(thread, touches);
      }
      if (steps_ > kMaxSteps || asked_ > kMaxAsked ||
          query_.looked_at() - looked_at_ > AtomicityResult::kMaxNodes) {
        return;
      }
    }
  }

 private:
  using Chain = std::array<NodeId, 6>;

  bool collect() {
    cells_.resize(model_.cell_count());
    for (uint32_t thread = 0; thread < model_.threads(); ++thread) {
      UnitId current = UnitTable::kNone;
      bool open = false;
      for (const NodeId id : model_.of_thread(thread)) {
        if (model_.uses(id).empty() || !units_.accesses(id)) {
          continue;
        }
        const UnitId unit = units_.unit_of(id);
        if (!open || !units_.is_unit(unit) || unit != current) {
          items_.emplace_back(thread, std::vector<Touch>());
        }
        open = units_.is_unit(unit);
        current = unit;
        touch(id);
      }
    }
    for (uint32_t item = 0; item < items_.size(); ++item) {
      for (const Touch& touch : items_[item].second) {
        cells_[touch.cell].push_back(&touch);
      }
    }
    for (auto& touches : cells_) {
      std::sort(touches.begin(), touches.end(),
                [](const Touch* a, const Touch* b) { return a->first < b->first; });
      spend(1 + touches.size());
    }
    return items_.size() > 2;
  }

  void touch(NodeId id) {
    auto& touches = items_.back().second;
    for (const Use& use : model_.uses(id)) {
      spend(4);
      auto at = std::find_if(touches.begin(), touches.end(),
                             [&](const Touch& known) { return known.cell == use.cell; });
      if (at == touches.end()) {
        if (touches.size() >= AtomicityResult::kMaxCells) {  // as unit_accesses.h
          continue;
        }
        touches.push_back(
            {static_cast<uint32_t>(items_.size() - 1), use.cell, id, id, kNone, kNone});
        at = touches.end() - 1;
      }
      at->last = id;
      if (model_.node(id).writes) {
        at->first_write = at->first_write == kNone ? id : at->first_write;
        at->last_write = id;
      }
    }
  }

  // Those of two other items that are near.
  template <typename Visit>
  void near(uint32_t cell, NodeId id, const Visit& visit) {
    const auto& touches = cells_[cell];
    const auto at = static_cast<size_t>(
        std::partition_point(touches.begin(), touches.end(),
                             [&](const Touch* touch) { return touch->first < id; }) -
        touches.begin());
    const size_t end = std::min(touches.size(), at + kNearest);
    for (size_t i = at - std::min<size_t>(at, kNearest); i < end; ++i) {
      ++steps_;
      spend(2);
      if (steps_ > kMaxSteps) {
        return;
      }
      visit(*touches[i]);
    }
  }

  // What the item touches, and the last ones before it in its thread.
  template <typename Visit>
  void up_to(uint32_t item, const Visit& visit) const {
    const uint32_t begin = item - std::min(item, kBefore);
    for (uint32_t at = item + 1; at > begin && items_[at - 1].first == items_[item].first; --at) {
      for (const Touch& touch : items_[at - 1].second) {
        visit(touch);
      }
    }
  }

  void unit(uint32_t thread, const std::vector<Touch>& mine) {
    for (const Touch& end : mine) {
      near(end.cell, end.last, [&](const Touch& third) {
        const uint32_t there = items_[third.item].first;
        const auto back = there == thread ? std::nullopt : early_to_late(third, end);
        if (!back || closed_.count(place_of(model_.node(back->second).event)) != 0 ||
            model_.always_before(back->second, back->first)) {
          return;
        }
        up_to(third.item, [&](const Touch& reached) {
          near(reached.cell, reached.first, [&](const Touch& second) {
            if (items_[second.item].first != thread && items_[second.item].first != there) {
              through(mine, second, reached, *back);
            }
          });
        });
      });
    }
  }

  // From the early access of another unit to the late one of this.
  std::optional<std::pair<NodeId, NodeId>> early_to_late(const Touch& other,
                                                         const Touch& mine) const {
    if (other.first_write != kNone) {
      return std::pair(other.first_write, mine.last);
    }
    return mine.last_write != kNone ? std::optional(std::pair(other.first, mine.last_write))
                                    : std::nullopt;
  }

  void through(const std::vector<Touch>& mine, const Touch& second, const Touch& reached,
               const std::pair<NodeId, NodeId>& back) {
    const auto over = early_to_late(second, reached);
    if (!over || model_.always_before(over->second, over->first)) {
      return;
    }
    for (const Touch& begin : mine) {
      if (steps_ > kMaxSteps) {
        return;
      }
      up_to(second.item, [&](const Touch& entered) {
        ++steps_;
        spend(1);
        if (entered.cell != begin.cell) {
          return;
        }
        const auto out = early_to_late(begin, entered);
        if (out && out->first < back.second && !model_.always_before(out->second, out->first)) {
          ask({out->first, out->second, over->first, over->second, back.first, back.second});
        }
      });
    }
  }

  uint64_t place_of(uint32_t event) const {
    const uint32_t location = model_.trace().events[event].location;
    return options_.every_end || location == Event::kNoLocation ? event
                                                                : (uint64_t{1} << 32) | location;
  }

  void ask(const Chain& chain) {
    std::array<uint32_t, 6> events{};
    AskedPlaces::Places places;
    for (size_t i = 0; i < chain.size(); ++i) {
      events[i] = model_.node(chain[i]).event;
      places.push_back(place_of(events[i]));
    }
    AskedPlaces::Places sorted = places;
    std::sort(sorted.begin(), sorted.end());
    if ((!options_.every_end && found_.count(sorted) != 0) || closed_.count(places.back()) != 0 ||
        ++attempts_[places] > kNearest || ++asked_ > kMaxAsked) {
      return;
    }
    auto meeting = query_.circle(chain, options_.sync_preserving);
    const auto fails = [&](NodeId id) { return units_.attempts().fails(meeting->witness, id); };
    if (!meeting ||
        !query_.accepted(
            [&](Validator& validator) {
              return validator.check_circle(meeting->witness.tail, meeting->witness.start, events,
                                            units_.units());
            },
            &result_.invalid) ||
        fails(chain[3]) || fails(chain[4]) || fails(chain[5])) {
      return;
    }
    closed_.insert(places.back());
    found_.insert(std::move(sorted));
    ++result_.candidates;
    if (options_.asked != nullptr) {
      options_.asked->asked(places, true);
    }
    AtomicityViolation& violation = result_.violations.emplace_back();
    if (options_.asked != nullptr) {
      violation.in.places = std::move(places);
    }
    violation.first = events[0];
    violation.to = events[1];
    violation.via = {events[2], events[3]};
    violation.from = events[4];
    violation.last = events[5];
    violation.label = units_.units()[units_.unit_of(chain[0])].label;
    violation.tier = meeting->tier;
    kept_.keep(meeting->witness, meeting->tier == Tier::kSyncPreserving, &violation.witness,
               &violation.brief);
    result_.without_witness = kept_.in_short();
  }

  Query& query_;
  const Model& model_;
  const AtomicityOptions& options_;
  const UnitAccesses& units_;
  KeptWitnesses& kept_;
  AtomicityResult& result_;
  std::vector<std::pair<uint32_t, std::vector<Touch>>> items_;  // thread, cells
  std::vector<std::vector<const Touch*>> cells_;
  std::set<uint64_t> closed_;  // places of last accesses
  std::map<AskedPlaces::Places, uint32_t> attempts_;
  std::set<AskedPlaces::Places> found_;  // sorted: the same cycle, closed by any of its accesses
  uint64_t looked_at_ = 0;
  uint64_t steps_ = 0;
  uint32_t asked_ = 0;
};

}  // namespace

void three_unit_violations(Query& query, const AtomicityOptions& options, const UnitAccesses& units,
                           KeptWitnesses* kept, AtomicityResult* result) {
  ThreeUnits(query, options, units, kept, result).run();
}

}  // namespace tsomon::predict
