// The units of one thread that are open, and which of them an access to a set belongs to.
//
// Source      Theory section 7: the outermost enclosing unit that is declared on the set.
// Scopes      Declared sets differ in the units that are declared on them: each is a scope. Where
//             all units are declared on all sets (one set of everything, objects), there is one
//             scope, in which each object has a node of its own. A unit that is declared on all
//             scopes is opened in those alone that have an access in it: there may be very many.
// Complexity  begin(), end(), wait(): the scopes that the unit is declared on, of one that is
//             declared on all of them those with an access. Nodes: O(1), or linear in at most
//             kLinear objects of a unit.
// Thread-safety: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <tsl/robin_map.h>

#include "online/graph/conflict_graph.h"

namespace tsomon {

class OpenUnits {
 public:
  using Node = ConflictGraph::Node;
  static constexpr Node kNone = ConflictGraph::kNone;

  struct Unit {
    bool open = false;
    uint32_t depth = 0;  // of the frame that opened it
    uint32_t label = Interner::kNone;
    uint64_t begin = 0;
    Node node = kNone;  // created with its first access
  };

  // `scopes`: on which the unit is declared.
  template <typename Scopes>
  void begin(const Scopes& scopes, uint32_t label, uint64_t index) {
    open(scopes, label, index, static_cast<uint32_t>(frames_.size()));
    frames_.push_back({label, index});
  }
  void begin_on_all(uint32_t label, uint64_t index) {
    open_on_all(label, index, static_cast<uint32_t>(frames_.size()));
    frames_.push_back({label, index});
  }
  // The scopes have changed: scopes_of(label) are those of a unit now, unless it is on all of them.
  // What was open stays so.
  template <typename IsOnAll, typename ScopesOf>
  void reopen(const IsOnAll& is_on_all, const ScopesOf& scopes_of) {
    for (uint32_t depth = 0; depth < frames_.size(); ++depth) {
      const auto& [label, begin] = frames_[depth];
      if (is_on_all(label)) {
        open_on_all(label, begin, depth);
      } else {
        open(scopes_of(label), label, begin, depth);
      }
    }
    std::stable_sort(open_.begin(), open_.end(),
                     [this](uint32_t a, uint32_t b) { return units_[a].depth < units_[b].depth; });
  }
  // finish(node) for the nodes of the units that end.
  template <typename Finish>
  void end(const Finish& finish) {
    if (frames_.empty()) {
      return;
    }
    frames_.pop_back();
    while (!open_.empty() && units_[open_.back()].depth == frames_.size()) {
      Unit& unit = units_[open_.back()];
      leave(unit, finish);
      unit.open = false;
      open_.pop_back();
    }
    on_all_.open = on_all_.open && on_all_.depth != frames_.size();
  }
  template <typename Finish>
  void wait(uint64_t index, const Finish& finish) {
    for (const uint32_t scope : open_) {
      leave(units_[scope], finish);
      units_[scope].begin = index;
    }
    on_all_.begin = index;
  }
  // All of them end here.
  template <typename Finish>
  void abandon(const Finish& finish) {
    close(finish);
    frames_.clear();
  }
  // In all scopes; reopen() opens the new ones.
  template <typename Finish>
  void close(const Finish& finish) {
    for (const uint32_t scope : open_) {
      leave(units_[scope], finish);
      units_[scope].open = false;
    }
    open_.clear();
    on_all_.open = false;
  }

  // Of an access to the scope; not open: it is in none.
  Unit& unit(uint32_t scope) {
    Unit& unit = of(scope);
    if (!unit.open && on_all_.open) {
      unit = on_all_;
      const auto behind = std::upper_bound(
          open_.begin(), open_.end(), unit.depth,
          [this](uint32_t depth, uint32_t at) { return depth < units_[at].depth; });
      open_.insert(behind, scope);
    }
    return unit;
  }

  // Of the open unit and an object; kNone: it has none yet.
  Node node_of(uint32_t object) const {
    const size_t at = place(object);
    return at == nodes_.size() ? kNone : nodes_[at].node;
  }
  void set_node(uint32_t object, Node node) {
    if (const size_t at = place(object); at != nodes_.size()) {
      nodes_[at].node = node;
      return;
    }
    if (nodes_.size() >= kLinear || !places_.empty()) {
      if (places_.empty()) {
        for (size_t i = 0; i < nodes_.size(); ++i) {
          places_[nodes_[i].object] = i;
        }
      }
      places_[object] = nodes_.size();
    }
    nodes_.push_back({object, node});
  }
  // The object has ended.
  template <typename Finish>
  void end_object(uint32_t object, const Finish& finish) {
    const size_t at = place(object);
    if (at == nodes_.size()) {
      return;
    }
    if (nodes_[at].node != kNone) {
      finish(nodes_[at].node);
    }
    if (!places_.empty()) {
      places_.erase(object);
      if (at + 1 != nodes_.size()) {
        places_[nodes_.back().object] = at;
      }
    }
    nodes_[at] = nodes_.back();
    nodes_.pop_back();
  }
  // After a sweep of the graph.
  template <typename Follow>
  void follow(const Follow& follow) {
    for (const uint32_t scope : open_) {
      units_[scope].node = follow(units_[scope].node);
    }
    for (ObjectNode& each : nodes_) {
      each.node = follow(each.node);
    }
  }

 private:
  static constexpr size_t kLinear = 8;

  struct ObjectNode {
    uint32_t object = 0;
    Node node = kNone;
  };

  size_t place(uint32_t object) const {
    if (!places_.empty()) {
      const auto at = places_.find(object);
      return at == places_.end() ? nodes_.size() : at->second;
    }
    size_t at = 0;
    while (at < nodes_.size() && nodes_[at].object != object) {
      ++at;
    }
    return at;
  }

  template <typename Finish>
  void leave(Unit& unit, const Finish& finish) {
    if (unit.node != kNone) {
      finish(unit.node);
      unit.node = kNone;
    }
    for (const ObjectNode& each : nodes_) {
      if (each.node != kNone) {
        finish(each.node);
      }
    }
    nodes_.clear();
    if (!places_.empty()) {
      places_ = {};
    }
  }

  Unit& of(uint32_t scope) {
    if (scope >= units_.size()) {
      units_.resize(scope + 1);
    }
    return units_[scope];
  }

  void open_on_all(uint32_t label, uint64_t index, uint32_t depth) {
    if (!on_all_.open) {
      on_all_ = {true, depth, label, index, kNone};
    }
  }
  template <typename Scopes>
  void open(const Scopes& scopes, uint32_t label, uint64_t index, uint32_t depth) {
    if (on_all_.open && on_all_.depth < depth) {
      return;  // they belong to that one
    }
    for (const uint32_t scope : scopes) {
      Unit& unit = of(scope);
      if (!unit.open) {
        unit = {true, depth, label, index, kNone};
        open_.push_back(scope);
      }
    }
  }

  struct Frame {
    uint32_t label = 0;
    uint64_t begin = 0;
  };
  std::vector<Frame> frames_;
  std::vector<Unit> units_;     // by scope
  std::vector<uint32_t> open_;  // scopes with an open unit, outermost first
  // The outermost unit that is declared on all scopes, in which it is the unit of those that have
  // none in `open_`.
  Unit on_all_;
  std::vector<ObjectNode> nodes_;
  tsl::robin_map<uint32_t, size_t> places_;  // in nodes_, when there are many
};

}  // namespace tsomon
