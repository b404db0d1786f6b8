#include "online/set_policy/atomic_set_policy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "tso/check/set_objects.h"

namespace tsomon {
namespace {

constexpr std::array<uint32_t, 1> kOneScope = {0};

}  // namespace

// ---- Sets

OpenUnits& AtomicSetPolicy::new_thread(ThreadId id) {
  threads_.resize(id + 1);
  return threads_[id];
}

void AtomicSetPolicy::refresh_sets() {
  if (choice_ == SetChoice::kObjects || !members_.refresh(symbols_)) {
    return;
  }
  if (mode_ != Mode::kDeclared) {
    restart(Mode::kDeclared);
    return;
  }
  index_.for_each([this](LocationId id) {
    // What was accessed before is not known by the new sets.
    ++graph_.statistics().late_events;
    find_sets(id);
  });
  reopen_units();
}

// Units that are open now may be declared on sets that have become known.
void AtomicSetPolicy::reopen_units() {
  for (OpenUnits& thread : threads_) {
    if (mode_ == Mode::kDeclared) {
      thread.reopen([this](uint32_t label) { return members_.is_on_all(symbols_, label); },
                    [this](uint32_t label) -> const std::vector<uint32_t>& {
                      return members_.sets_of_label(symbols_, label);
                    });
    } else {
      thread.reopen([](uint32_t) { return false; },
                    [](uint32_t) -> const std::array<uint32_t, 1>& { return kOneScope; });
    }
  }
}

// The sets are others than it seemed: what was accessed so far is forgotten.
void AtomicSetPolicy::restart(Mode mode) {
  mode_ = mode;
  graph_.statistics().late_events += accesses_;  // locations may be known from further ahead
  accesses_ = 0;
  open_pairs_.clear();
  scopes_.clear();
  index_.for_each([this](LocationId id) {
    drop_cells(id);
    index_.erase(id);
  });
  for (OpenUnits& thread : threads_) {
    thread.close([this](Node node) { finish_unit(node); });
  }
  reopen_units();
}

// A location of declared sets gets the cells that it lacks.
void AtomicSetPolicy::find_sets(LocationId id) {
  std::vector<uint32_t> sets;
  members_.sets_of(index_.key(id), &sets);
  for (const uint32_t set : sets) {
    bool known = false;
    for (CellId at = id; at != kNoCell && info(at).used; at = info(at).next) {
      known = known || info(at).set == set;
    }
    if (!known) {
      add_cell(id, set, 0);
    }
  }
}

AtomicSetPolicy::CellId AtomicSetPolicy::add_cell(LocationId id, uint32_t set, uint32_t birth) {
  CellId added = id;
  if (infos_[id].used) {
    if (free_cells_.empty()) {
      free_cells_.push_back(kFurther | static_cast<CellId>(further_cells_.size()));
      further_cells_.emplace_back();
      further_infos_.emplace_back();
    }
    added = free_cells_.back();
    free_cells_.pop_back();
    info(added).next = infos_[id].next;
    infos_[id].next = added;
  }
  info(added).used = true;
  info(added).set = set;
  info(added).birth = birth;
  return added;
}

void AtomicSetPolicy::clear_cell(CellId id) {
  cell(id) = Cell();
  info(id).more.reset();
}

void AtomicSetPolicy::drop_cells(LocationId id) {
  for (CellId at = infos_[id].next; at != kNoCell;) {
    const CellId next = info(at).next;
    clear_cell(at);
    info(at) = CellInfo();
    free_cells_.push_back(at);
    at = next;
  }
  clear_cell(id);
  infos_[id] = CellInfo();
}

// ---- Events

// Cells are spread over memory: the lines are asked for some events ahead.
void AtomicSetPolicy::add(const EventBlock& block, uint64_t first_index) {
  refresh_sets();
  next_index_ = first_index + block.events.size();
  constexpr size_t kAhead = 16;
  std::array<LocationId, kAhead> found{};
  const size_t size = block.events.size();
  for (size_t i = 0; i < size + kAhead; ++i) {
    if (i >= kAhead) {
      const Event& event = block.events[i - kAhead];
      const uint64_t index = first_index + i - kAhead;
      if (!is_data(event)) {
        if (begins_object(event)) {
          allocate(block, event, index);
        } else if (event.kind() == EventKind::kFree && mode_ == Mode::kObjects) {
          end_object(objects_.free(event));
        } else {
          boundary(event, index);
        }
      } else if (mode_ == Mode::kObjects) {
        access_object(block, event, index);
      } else {
        access(block, event, index, found[i % kAhead]);
      }
    }
    if (i < size && mode_ != Mode::kObjects && is_data(block.events[i])) {
      const LocationId id = find_location(block.events[i]);
      found[i % kAhead] = id;
      __builtin_prefetch(&cells_[id]);
    }
  }
}

void AtomicSetPolicy::boundary(const Event& event, uint64_t index) {
  const auto finish = [this](Node node) { finish_unit(node); };
  switch (event.kind()) {
    case EventKind::kUnitBegin: {
      const auto label = static_cast<uint32_t>(event.address);
      if (mode_ == Mode::kDeclared && members_.is_on_all(symbols_, label)) {
        thread(event.thread).begin_on_all(label, index);
      } else if (mode_ == Mode::kDeclared) {
        thread(event.thread).begin(members_.sets_of_label(symbols_, label), label, index);
      } else {
        thread(event.thread).begin(kOneScope, label, index);
      }
      break;
    }
    case EventKind::kUnitEnd:
      thread(event.thread).end(finish);
      break;
    case EventKind::kWait:
      thread(event.thread).wait(index, finish);
      break;
    default:
      break;
  }
}

void AtomicSetPolicy::lost(ThreadId id) {
  open_pairs_.clear();
  lost_before_ = next_index_;
  for (ThreadId t = 0; t < threads_.size(); ++t) {
    if (id == kNoThread || id == t) {
      threads_[t].abandon([this](Node node) { finish_unit(node); });
    }
  }
}

AtomicSetPolicy::Node AtomicSetPolicy::unit_of(const Event& event, uint64_t index, uint32_t set) {
  OpenUnits& mine = thread(event.thread);
  const bool objects = mode_ == Mode::kObjects;
  OpenUnits::Unit& open = mine.unit(objects ? 0 : set);
  Node node = kNone;
  if (open.open) {
    node = objects ? mine.node_of(set) : open.node;
    if (node != kNone) {
      graph_.unit(node).last = index;
      Scope& here = scope(set);
      here.units_of_two = true;
      graph_.statistics().uncertain += std::exchange(here.uncertain, 0);
      return node;
    }
  }
  const uint32_t number = mode_ == Mode::kDeclared ? set : Interner::kNone;
  node = graph_.add_unit({event.thread, open.open ? open.label : Interner::kNone,
                          open.open ? open.begin : index, index, !open.open, 0},
                         number);
  if (open.open) {
    if (objects) {
      mine.set_node(set, node);
    } else {
      open.node = node;
    }
  }
  return node;
}

AtomicSetPolicy::Scope& AtomicSetPolicy::scope(uint32_t set) {
  if (set >= scopes_.size()) {
    scopes_.resize(set + 1);
  }
  Scope& scope = scopes_[set];
  if (mode_ == Mode::kObjects && scope.birth != objects_.birth(set)) {
    scope = {objects_.birth(set), false, 0};
  }
  return scope;
}

void AtomicSetPolicy::count_uncertain(uint32_t set) {
  Scope& here = scope(set);
  ++(here.units_of_two ? graph_.statistics().uncertain : here.uncertain);
}

LocationId AtomicSetPolicy::find_location(const Event& event) {
  bool is_new = false;
  const LocationId id = index_.find_or_add(event.address, event.size, &is_new);
  if (is_new) {
    if (id >= cells_.size()) {
      cells_.resize(id + 1);
      infos_.resize(id + 1);
    }
    if (mode_ == Mode::kEverything) {
      infos_[id].used = true;
    } else if (mode_ == Mode::kDeclared) {
      find_sets(id);
    }
  }
  return id;
}

void AtomicSetPolicy::access(const EventBlock& block, const Event& event, uint64_t index,
                             LocationId here) {
  ++accesses_;
  Current now{&event, index, block.hi(event), kNone, event.kind() != EventKind::kRead};
  if (mode_ == Mode::kEverything) {
    now.unit = unit_of(event, index, 0);
    access_cell(now, here, here);
    return;
  }
  for (CellId at = here; at != kNoCell && info(at).used; at = info(at).next) {
    now.set = info(at).set;
    now.unit = unit_of(event, index, now.set);
    access_cell(now, at, here);
  }
}

void AtomicSetPolicy::access_cell(Current& now, CellId mine, LocationId here) {
  if (now.event->lo != now_) {
    now_ = now.event->lo;
    tied_.clear();
  }
  now.theirs = index_.key(here);
  conflicts(mine, now);
  if (now.event->size != 0) {
    const CellInfo& own = info(mine);
    for (const LocationId other : index_.others(here)) {
      now.theirs = index_.key(other);
      if (mode_ == Mode::kDeclared && !members_.share(own.set, index_.key(here), now.theirs)) {
        continue;
      }
      for (CellId at = other; at != kNoCell && info(at).used; at = info(at).next) {
        if (info(at).set == own.set && info(at).birth == own.birth) {
          conflicts(at, now);
        }
      }
    }
  }
  record(mine, now);
}

// ---- Conflicts

void AtomicSetPolicy::link(const Point& from, const Current& now) {
  const Event& event = *now.event;
  const bool overlaps = from.thread != event.thread && from.hi >= event.lo;
  if (overlaps) {
    count_uncertain(now.set);
  }
  if (from.unit == now.unit || gone(from)) {
    return;
  }
  if (overlaps && flag_) {
    note_open_order(from, now);
  }
  const EdgeKind kind =
      overlaps || from.shaky || now.shaky ? EdgeKind::kOverlap : EdgeKind::kConflict;
  graph_.add_directed(from.unit, now.unit, kind,
                      [&](DetectedAccess& source, DetectedAccess& target) {
                        target = access_of(event, now.index);
                        source = target;
                        source.address = now.theirs.address;
                        source.size = now.theirs.size;
                        source.index = from.index;
                        source.location = from.location;
                        source.thread = from.thread;
                        source.kind = from.kind;
                      });
}

// Each of the two units may come first, and other conflicts of theirs may have the other order.
void AtomicSetPolicy::note_open_order(const Point& from, const Current& now) {
  const DetectedUnit& before = graph_.unit(from.unit);
  const DetectedUnit& after = graph_.unit(now.unit);
  const bool single = before.label == Interner::kNone && after.label == Interner::kNone;
  if (single || before.merged > 0 || before.first < lost_before_ || after.first < lost_before_) {
    return;
  }
  const auto same = [&](const OpenPair& pair) {
    const auto is = [&](size_t side, Node node) {
      return pair.sides[side].node == node ||
             (pair.sides[side].node == kNone &&
              pair.sides[side].unit.first == graph_.unit(node).first);
    };
    return (is(0, from.unit) && is(1, now.unit)) || (is(1, from.unit) && is(0, now.unit));
  };
  if (std::any_of(open_pairs_.begin(), open_pairs_.end(), same)) {
    return;
  }
  const uint64_t times =
      ++open_orders_[{from.location, now.event->location, before.label, after.label}];
  if (times > kCandidatesOfAPlace && !std::has_single_bit(times)) {
    return;
  }
  if (open_pairs_.size() == kMaxOpenPairs) {
    open_pairs_.erase(open_pairs_.begin());
  }
  OpenPair& pair = open_pairs_.emplace_back();
  pair.sides = {{{from.unit, {}}, {now.unit, {}}}};
  if (mode_ == Mode::kDeclared) {
    pair.candidate.set = now.set;
  } else if (mode_ == Mode::kObjects) {
    pair.candidate.object = objects_.key(now.set);
    pair.candidate.object_begin = objects_.begin(now.set);
  }
  // One that has ended already.
  for (const Node node : {from.unit, now.unit}) {
    if (graph_.unit(node).finished) {
      settle(node);
    }
  }
}

// Flags the pairs that only waited for this unit.
void AtomicSetPolicy::settle(Node ended) {
  for (size_t i = 0; i < open_pairs_.size();) {
    OpenPair& pair = open_pairs_[i];
    for (OpenPair::Side& side : pair.sides) {
      if (side.node == ended) {
        side = {kNone, graph_.unit(ended)};
      }
    }
    if (pair.sides[0].node != kNone || pair.sides[1].node != kNone) {
      ++i;
      continue;
    }
    OpenPair settled = std::move(pair);
    open_pairs_.erase(open_pairs_.begin() + static_cast<ptrdiff_t>(i));
    flag(settled);
  }
}

void AtomicSetPolicy::flag(OpenPair& pair) {
  pair.candidate.units = {pair.sides[0].unit, pair.sides[1].unit};
  if (pair.candidate.units[1].first < pair.candidate.units[0].first) {
    std::swap(pair.candidate.units[0], pair.candidate.units[1]);
  }
  flag_(std::move(pair.candidate));
}

void AtomicSetPolicy::conflicts(CellId id, const Current& now) {
  const Cell& theirs = cell(id);
  if (theirs.write.present) {
    link(theirs.write, now);
  }
  if (!now.writes || !theirs.read.present) {
    return;
  }
  link(theirs.read, now);
  if (theirs.read.more) {
    const MoreReads& more = *info(id).more;
    for (const Point& read : more.points) {
      link(read, now);
    }
    if (more.gone.of_others(now.event->thread) >= now.event->lo) {
      count_uncertain(now.set);
    }
  }
  for (const Tied& tied : tied_) {
    if (tied.cell == id && tied.thread != now.event->thread) {
      count_uncertain(now.set);
    }
  }
}

void AtomicSetPolicy::record(CellId id, const Current& now) {
  Point point;
  point.index = now.index;
  point.hi = now.hi;
  point.unit = now.unit;
  point.location = now.event->location;
  point.thread = now.event->thread;
  point.generation = graph_.generation(now.unit);
  point.kind = now.event->kind();
  point.present = true;
  point.shaky = now.shaky;
  if (!now.writes) {
    return record_read(id, point, now.event->lo);
  }
  Cell& mine = cell(id);
  if (mine.read.more) {
    info(id).more.reset();
  }
  mine.write = point;
  mine.read.present = false;
  mine.read.more = false;
}

// Of a unit the first load counts, and the one whose interval lasts longest.
void AtomicSetPolicy::record_read(CellId id, const Point& point, int64_t lo) {
  Cell& mine = cell(id);
  if (!mine.read.present) {
    mine.read = point;
    return;
  }
  MoreReads* more = mine.read.more ? info(id).more.get() : nullptr;
  Point& last = more == nullptr || more->points.empty() ? mine.read : more->points.back();
  if (last.unit == point.unit && last.generation == point.generation) {
    if (point.hi <= last.hi) {
      return;
    }
    if (point.hi == lo) {
      tied_.push_back({id, point.thread});
      return;
    }
    if (last.latest) {
      last.hi = point.hi;
      return;
    }
  }
  if (more == nullptr) {
    info(id).more = std::make_unique<MoreReads>();
    more = info(id).more.get();
    mine.read.more = true;
  }
  const Point& before = more->points.empty() ? mine.read : more->points.back();
  const bool latest = before.unit == point.unit && before.generation == point.generation;
  more->points.push_back(point);
  more->points.back().latest = latest;
  if (more->points.size() >= more->prune_at) {
    prune(*more, lo);
  }
}

void AtomicSetPolicy::prune(MoreReads& more, int64_t now) {
  std::erase_if(more.points, [&](const Point& read) {
    if (!gone(read)) {
      return false;
    }
    if (read.hi >= now) {
      more.gone.add(read.thread, read.hi);
    }
    return true;
  });
  more.prune_at = 2 * more.points.size() + 8;
}

// ---- Collection

// False: nothing is known of the point any more.
bool AtomicSetPolicy::follow(Point* point) const {
  if (!point->present || point->unit == kNone) {
    return point->present && point->hi >= now_;
  }
  const Node unit = graph_.moved_to(point->unit);
  // Merging gives up the node, and with it the generation, in the same sweep.
  const bool moved = unit != point->unit;
  const auto then = static_cast<uint16_t>(graph_.generation(point->unit) - (moved ? 1 : 0));
  if (unit == kNone || point->generation != then) {
    point->unit = kNone;
    return point->hi >= now_;
  }
  point->unit = unit;
  point->generation = graph_.generation(unit);
  return true;
}

// False: nothing is left of it.
bool AtomicSetPolicy::clean_up(CellId id) {
  Cell& mine = cell(id);
  mine.write.present = follow(&mine.write);
  const bool read = follow(&mine.read);
  bool more = false;
  if (mine.read.more) {
    MoreReads& rest = *info(id).more;
    for (Point& point : rest.points) {
      follow(&point);
    }
    prune(rest, now_);
    more = !rest.points.empty() || rest.gone.hi >= now_;
    if (!more) {
      info(id).more.reset();
      mine.read.more = false;
    }
  }
  mine.read.present = read || more;
  return mine.write.present || mine.read.present;
}

void AtomicSetPolicy::after_sweep() {
  const auto follow_node = [&](Node node) { return node == kNone ? kNone : graph_.moved_to(node); };
  for (OpenUnits& thread : threads_) {
    thread.follow(follow_node);
  }
  std::erase_if(open_pairs_, [&](OpenPair& pair) {
    bool collected = false;
    for (OpenPair::Side& side : pair.sides) {
      const bool open = side.node != kNone;
      side.node = follow_node(side.node);
      collected = collected || (open && side.node == kNone);
    }
    return collected;
  });
  if (!pace_.due(index_.size(), graph_.merged())) {
    return;
  }
  index_.for_each([this](LocationId id) {
    bool any = false;
    for (CellId at = id; at != kNoCell && info(at).used; at = info(at).next) {
      any = clean_up(at) || any;
    }
    const LocationKey& key = index_.key(id);
    if (!any && (key.size != 0 || key.address >= LocationIndex::kMaxNamed)) {
      drop_cells(id);
      index_.erase(id);
    }
  });
  pace_.done(index_.size(), graph_.size());
}

}  // namespace tsomon
