#include "offline/predict/deadlocks.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "offline/predict/kept_witnesses.h"
#include "offline/predict/questions.h"

namespace tsomon::predict {
namespace {

// A lock and how it is held or asked for.
using Mode = std::pair<uint32_t, bool>;  // lock, shared

bool modes_exclude(const Mode& a, const Mode& b) {
  return a.first == b.first && !(a.second && b.second);
}

// Acquisitions of one thread at one place that ask for the same lock and hold the same ones.
struct Step {
  uint32_t thread = 0;
  uint32_t location = 0;
  Mode asked;
  std::vector<Mode> held;
  std::vector<NodeId> nodes;

  bool holds(const Mode& mode) const {
    return std::any_of(held.begin(), held.end(),
                       [&](const Mode& mine) { return modes_exclude(mine, mode); });
  }
};

class DeadlockSearch {
 public:
  DeadlockSearch(Query& query, const DeadlockOptions& options, DeadlockResult* result)
      : query_(query),
        model_(query.model()),
        options_(options),
        result_(*result),
        questions_(query, options.jobs),
        kept_(query.model(), options.max_witness_events) {}

  void run() {
    lost_notifications();
    find_steps();
    drop_dead_ends();
    for (uint32_t first = 0; first < steps_.size(); ++first) {
      circle_ = {first};
      extend();
    }
    ask_all();
    result_.bounded =
        result_.bounded || std::any_of(tried_.begin(), tried_.end(), [](const auto& entry) {
          return entry.second.more && !entry.second.found;
        });
  }

 private:
  // Of a tuple of places.
  struct Tried {
    bool asked = false;
    bool found = false;
    bool more = false;  // than are tried
    std::vector<std::vector<NodeId>> waiting;
  };
  struct Answer {
    std::optional<Deadlock> deadlock;  // without its witness
    Witness witness;
    uint64_t invalid = 0;
    bool windowed = false;
  };
  static constexpr uint32_t kFound = UINT32_MAX;  // a number of tries
  using Entry = std::pair<const AskedPlaces::Places, Tried>;
  static constexpr uint64_t kLost = UINT64_MAX;  // begins the places of a wait
  using Known = std::map<std::tuple<uint32_t, uint32_t, Mode, std::vector<Mode>>, uint32_t>;

  // Waits that would begin after all notifications that come without them. What the thread has read
  // before decides whether it waits. One that had not ended with the trace is as likely a thread
  // that has nothing to do.
  void lost_notifications() {
    if (query_.branches() == Branches::kNone) {
      return;
    }
    std::map<AskedPlaces::Places, uint32_t> attempts;
    for (const Wait& wait : model_.waits()) {
      spend(1);
      if (wait.acquire == kNone) {
        continue;
      }
      const Event& event = model_.trace().events[wait.event];
      const bool known = event.location != Event::kNoLocation;
      const AskedPlaces::Places places = {kLost, known ? event.location : event.address, event.size,
                                          known ? 0 : uint64_t{event.thread} + 1};
      auto& tries = attempts[places];
      if (tries == kFound || found_before(places)) {
        continue;
      }
      std::vector<NodeId> notifications = before_waking(wait);
      if (notifications.empty()) {
        continue;
      }
      if (tries == 0) {
        ++result_.candidates;
        ++result_.refused;
      }
      if (tries >= DeadlockResult::kMaxAttempts) {
        result_.bounded = true;
        continue;
      }
      ++tries;
      if (ask_lost(wait, notifications, places)) {
        tries = kFound;
        --result_.refused;
      }
      remember(places, tries == kFound);
    }
  }

  // In another window of the input.
  bool found_before(const AskedPlaces::Places& places) const {
    return options_.asked != nullptr && options_.asked->found(places);
  }
  void remember(const AskedPlaces::Places& places, bool found) {
    if (options_.asked != nullptr) {
      options_.asked->asked(places, found);
    }
  }

  // The last notification of each other thread that does not come after the end of the wait. Empty:
  // there is none, or one of them comes after its beginning in every schedule.
  std::vector<NodeId> before_waking(const Wait& wait) const {
    std::map<uint32_t, NodeId> last;
    for (const NodeId id : model_.notifications_of(model_.trace().events[wait.event])) {
      spend(1);
      if (model_.node(id).thread != model_.node(wait.release).thread &&
          !model_.always_before(wait.acquire, id)) {
        last[model_.node(id).thread] = id;
      }
    }
    std::vector<NodeId> all;
    bool open = false;
    for (const auto& [thread, id] : last) {
      if (model_.always_before(wait.release, id)) {
        return {};
      }
      open = open || !model_.always_before(id, wait.release);
      all.push_back(id);
    }
    return open ? all : std::vector<NodeId>();
  }

  bool ask_lost(const Wait& wait, const std::vector<NodeId>& notifications,
                const AskedPlaces::Places& places) {
    auto meeting = query_.lost(wait.release, notifications, options_.sync_preserving);
    if (!meeting) {
      return false;
    }
    Deadlock deadlock;
    deadlock.kind = DeadlockKind::kLostNotification;
    deadlock.tier = meeting->tier;
    deadlock.requests = {wait.event};
    for (const NodeId id : notifications) {
      deadlock.holders.push_back(model_.node(id).event);
    }
    Witness& witness = meeting->witness;
    query_.end(&witness, {});
    const uint32_t release = model_.node(wait.release).event;
    if (!query_.accepted(
            [&](Validator& validator) {
              return validator.check_lost(witness.tail, release, wait.event, witness.start);
            },
            &result_.invalid)) {
      return false;
    }
    deadlock.looked = looked_before(release);
    keep(witness, places, std::move(deadlock));
    return true;
  }

  // An access of its thread since it got the lock that the release gives back.
  bool looked_before(uint32_t release) const {
    const auto& events = model_.trace().events;
    for (uint32_t i = release; i-- > 0;) {
      spend(1);
      if (events[i].thread != events[release].thread) {
        continue;
      }
      if (is(events[i], kind_mask(EventKind::kRead) | kind_mask(EventKind::kWrite) |
                            kind_mask(EventKind::kReadModifyWrite))) {
        return true;
      }
      if (is(events[i], kinds::kAcquisitions) && events[i].address == events[release].address) {
        break;
      }
    }
    return false;
  }

  void keep(const Witness& witness, const AskedPlaces::Places& places, Deadlock&& deadlock) {
    if (options_.asked != nullptr) {
      deadlock.in.places = places;
    }
    kept_.keep(witness, false, &deadlock.witness, &deadlock.brief);
    result_.without_witness = kept_.in_short();
    result_.deadlocks.push_back(std::move(deadlock));
  }

  void find_steps() {
    Known known;
    for (const Section& section : model_.sections()) {
      if (section.tried) {
        continue;
      }
      add_step(section.acquire, {section.lock, section.shared}, &known);
    }
    for (const NodeId id : model_.upgrades()) {
      add_step(id, {model_.lock_of(id), false}, &known);
    }
  }

  void add_step(NodeId id, const Mode& asked, Known* known) {
    const Node& node = model_.node(id);
    const auto held = model_.held(id);
    spend(1 + held.size());
    if (held.empty() || query_.carried(id)) {
      return;
    }
    const LockSet& modes = model_.lock_sets()[model_.lock_set(id)];
    const uint32_t location = model_.event(id).location;
    const auto [at, is_new] = known->try_emplace({node.thread, location, asked, modes},
                                                 static_cast<uint32_t>(steps_.size()));
    if (is_new) {
      steps_.push_back({node.thread, location, asked, modes, {}});
    }
    steps_[at->second].nodes.push_back(id);
  }

  // On no circle of locks: nobody holds what a step asks for, or asks for what it holds.
  void drop_dead_ends() {
    std::map<uint32_t, uint32_t> asked;
    std::map<uint32_t, uint32_t> held;
    for (const Step& step : steps_) {
      ++asked[step.asked.first];
      for (const Mode& mode : step.held) {
        ++held[mode.first];
      }
    }
    const auto dead = [&](const Step& step) {
      spend(1 + step.held.size());
      return held[step.asked.first] == 0 ||
             std::all_of(step.held.begin(), step.held.end(),
                         [&](const Mode& mode) { return asked[mode.first] == 0; });
    };
    for (size_t before = SIZE_MAX; steps_.size() < before;) {
      before = steps_.size();
      std::erase_if(steps_, [&](const Step& step) {
        if (!dead(step)) {
          return false;
        }
        --asked[step.asked.first];
        for (const Mode& mode : step.held) {
          --held[mode.first];
        }
        return true;
      });
    }
    for (uint32_t step = 0; step < steps_.size(); ++step) {
      for (const Mode& mode : steps_[step].held) {
        holding_[mode.first].push_back(step);
      }
    }
  }

  // The circle so far begins with its least step; each one asks for what the next one holds.
  void extend() {
    const Step& last = steps_[circle_.back()];
    const auto holders = holding_.find(last.asked.first);
    if (holders == holding_.end()) {
      return;
    }
    for (const uint32_t next : holders->second) {
      spend(1);
      if (++searched_ > DeadlockResult::kMaxSteps) {
        result_.bounded = true;
        return;
      }
      if (!steps_[next].holds(last.asked)) {
        continue;
      }
      if (next == circle_.front() && circle_.size() > 1) {
        try_circle();
      } else if (next > circle_.front() && fits(steps_[next])) {
        circle_.push_back(next);
        extend();
        circle_.pop_back();
      }
    }
  }

  // Of another thread than all of them, and no lock keeps it away from them.
  bool fits(const Step& step) const {
    return std::all_of(circle_.begin(), circle_.end(), [&](uint32_t other) {
      const Step& there = steps_[other];
      return there.thread != step.thread &&
             std::none_of(step.held.begin(), step.held.end(),
                          [&](const Mode& mode) { return there.holds(mode); });
    });
  }

  void try_circle() {
    const auto [at, is_new] = tried_.try_emplace(places());
    at->second.found = at->second.found || (is_new && found_before(at->first));
    if (at->second.found) {
      return;
    }
    const auto& waiting = at->second.waiting;
    const size_t before = waiting.size();
    nodes_.clear();
    attempts_ = 0;
    choose(&at->second);
    waiting_.add(&*at, before == 0 && !waiting.empty(), waiting.size() - before);
    if (waiting_.full()) {
      ask_all();
    }
  }

  // Events for the steps, one after another. False: enough of this circle.
  bool choose(Tried* tried) {
    if (nodes_.size() == circle_.size()) {
      tried->more = tried->more || attempts_ == DeadlockResult::kMaxAttempts;
      if (attempts_++ >= DeadlockResult::kMaxAttempts) {
        return false;
      }
      tried->waiting.push_back(nodes_);
      return true;
    }
    for (const NodeId id : steps_[circle_[nodes_.size()]].nodes) {
      spend(1 + nodes_.size());
      const bool together = std::none_of(nodes_.begin(), nodes_.end(), [&](NodeId other) {
        return model_.always_before(id, other) || model_.always_before(other, id);
      });
      if (!together) {
        continue;
      }
      nodes_.push_back(id);
      const bool more = choose(tried);
      nodes_.pop_back();
      if (!more) {
        return false;
      }
    }
    return true;
  }

  // Those of the present circle.
  AskedPlaces::Places places() const {
    std::vector<std::pair<uint64_t, uint64_t>> sorted;  // place, lock
    const bool known = std::all_of(circle_.begin(), circle_.end(), [&](uint32_t step) {
      return steps_[step].location != Event::kNoLocation;
    });
    for (const uint32_t step : circle_) {
      const Event& event = model_.event(steps_[step].nodes.front());
      sorted.emplace_back(known ? event.location : (uint64_t{1} << 63) | event.thread,
                          known ? 0 : event.address);
    }
    std::sort(sorted.begin(), sorted.end());
    AskedPlaces::Places all;
    for (const auto& [place, lock] : sorted) {
      all.push_back(place);
      all.push_back(lock);
    }
    return all;
  }

  // About what waits, in the order of its coming.
  void ask_all() {
    waiting_.ask(
        questions_, [&](Query& query, const Entry& entry) { return ask(query, entry.second); },
        [&](Entry* entry, Answer&& answer) {
          commit(entry->first, &entry->second, std::move(answer));
        });
  }

  Answer ask(Query& query, const Tried& tried) const {
    Answer answer;
    const uint64_t cut_short = query.cut_short();
    for (const std::vector<NodeId>& nodes : tried.waiting) {
      if (ask(query, nodes, &answer)) {
        break;
      }
    }
    answer.windowed = query.cut_short() > cut_short;
    return answer;
  }

  void commit(const AskedPlaces::Places& places, Tried* tried, Answer&& answer) {
    tried->waiting.clear();
    tried->found = answer.deadlock.has_value();
    result_.candidates += tried->asked ? 0 : 1;
    result_.refused += tried->asked ? 0 : 1;
    result_.refused -= tried->found ? 1 : 0;
    result_.invalid += answer.invalid;
    result_.windowed = result_.windowed || answer.windowed;
    tried->asked = true;
    remember(places, tried->found);
    if (tried->found) {
      keep(answer.witness, places, std::move(*answer.deadlock));
    }
  }

  bool ask(Query& query, const std::vector<NodeId>& tuple, Answer* answer) const {
    auto meeting = query.meet(tuple, options_.sync_preserving);
    if (!meeting) {
      return false;
    }
    Deadlock deadlock;
    deadlock.tier = meeting->tier;
    for (const NodeId id : tuple) {
      deadlock.requests.push_back(model_.node(id).event);
    }
    const auto least = std::min_element(deadlock.requests.begin(), deadlock.requests.end());
    const auto shift = least - deadlock.requests.begin();
    std::rotate(deadlock.requests.begin(), least, deadlock.requests.end());
    std::vector<NodeId> nodes = tuple;
    std::rotate(nodes.begin(), nodes.begin() + shift, nodes.end());
    for (size_t i = 0; i < nodes.size(); ++i) {
      deadlock.holders.push_back(holder(nodes[i], nodes[(i + 1) % nodes.size()]));
    }
    Witness& witness = meeting->witness;
    query.end(&witness, {});
    if (!query.accepted(
            [&](Validator& validator) {
              return validator.check_deadlock(witness.tail, deadlock.requests, witness.start);
            },
            &answer->invalid)) {
      return false;
    }
    answer->deadlock = std::move(deadlock);
    answer->witness = std::move(witness);
    return true;
  }

  // The event with which the thread of `next` acquired what `asking` waits for.
  uint32_t holder(NodeId asking, NodeId next) const {
    const bool shared = model_.event(asking).kind() == EventKind::kAcquireShared;
    for (const uint32_t held : model_.held(next)) {
      const Section& section = model_.sections()[held];
      if (section.lock == model_.lock_of(asking) && !(shared && section.shared)) {
        return model_.node(section.acquire).event;
      }
    }
    return kNone;
  }

  Query& query_;
  const Model& model_;
  const DeadlockOptions& options_;
  DeadlockResult& result_;
  Questions questions_;
  std::vector<Step> steps_;
  std::map<uint32_t, std::vector<uint32_t>> holding_;  // steps, by lock
  std::vector<uint32_t> circle_;
  std::vector<NodeId> nodes_;
  std::map<AskedPlaces::Places, Tried> tried_;
  WaitingQuestions<Entry> waiting_;
  uint64_t searched_ = 0;
  uint32_t attempts_ = 0;  // of the present circle
  KeptWitnesses kept_;
};

}  // namespace

DeadlockResult predict_deadlocks(Query& query, const DeadlockOptions& options) {
  DeadlockResult result;
  try {
    const uint64_t cut_short = query.cut_short();  // of waits
    DeadlockSearch(query, options, &result).run();
    result.windowed = result.windowed || query.cut_short() > cut_short;
  } catch (const WorkEnded& ended) {
    result.ended = ended.limit();
  }
  std::sort(result.deadlocks.begin(), result.deadlocks.end(),
            [](const Deadlock& a, const Deadlock& b) { return a.requests < b.requests; });
  return result;
}

}  // namespace tsomon::predict
