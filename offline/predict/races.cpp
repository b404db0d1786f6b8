#include "offline/predict/races.h"

#include <algorithm>
#include <array>
#include <map>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "offline/predict/access_groups.h"
#include "offline/predict/kept_witnesses.h"
#include "offline/predict/query.h"
#include "offline/predict/questions.h"

namespace tsomon::predict {
namespace {

// A pair of places in the source.
using Places = std::tuple<uint64_t, uint64_t, uint64_t>;

// Two groups of accesses to a cell.
struct Encounter {
  uint32_t cell = 0;
  uint32_t mine = 0;  // in groups_of(cell)
  uint32_t theirs = 0;
};

// What is asked about a pair of places, which has nothing to do with other pairs.
struct Question {
  Places places;
  std::vector<Encounter> encounters;
};

struct Answer {
  std::optional<Race> race;  // without its witness
  Witness witness;
  bool asked = false;  // of some accesses nothing ruled out at once that they meet
  bool bounded = false;
  bool windowed = false;
  uint64_t invalid = 0;
};

// The accesses to a cell. Two meet when they are next in their threads, wherever stores commit.
std::vector<AccessGroup> issues_of(const Model& model, uint32_t cell) {
  std::vector<AccessGroup> groups = groups_of(model, cell);
  for (AccessGroup& group : groups) {
    std::erase_if(group.nodes, [&](NodeId id) { return model.unreported(id); });
    if (!model.buffers()) {
      continue;
    }
    spend(group.nodes.size());
    for (NodeId& id : group.nodes) {
      id = model.issue_of(id);
    }
    group.thread = model.owner(group.thread);
  }
  return groups;
}

// visit(a, b) for the accesses that nothing orders, until it returns false.
template <typename Visit>
void each_open(const Model& model, const AccessGroup& mine, const AccessGroup& theirs,
               const Visit& visit) {
  size_t begin = 0;
  for (const NodeId a : mine.nodes) {
    spend(2);
    // What is before this one is before all that follow it.
    begin = skip_while(theirs.nodes, begin, [&](NodeId b) { return model.always_before(b, a); });
    for (size_t at = begin; at < theirs.nodes.size(); ++at) {
      const NodeId b = theirs.nodes[at];
      if (model.always_before(a, b)) {
        break;
      }
      if (!visit(a, b)) {
        return;
      }
    }
  }
}

// Finds the questions.
class RaceQuestions {
 public:
  explicit RaceQuestions(const Model& model) : model_(model) {}

  std::vector<Question> find() {
    for (uint32_t cell = 0; cell < model_.cell_count(); ++cell) {
      spend(1);
      if (model_.benign(cell) || all_exclude(model_, cell)) {
        continue;
      }
      const std::vector<AccessGroup> groups = issues_of(model_, cell);
      // Most groups of most cells hold the same locks: not each two of them are looked at.
      std::map<uint32_t, std::vector<uint32_t>> by_set;
      for (uint32_t i = 0; i < groups.size(); ++i) {
        for (const auto& [set, before] : by_set) {
          spend(2);
          if (exclude(model_.lock_sets()[groups[i].set], model_.lock_sets()[set])) {
            continue;
          }
          for (const uint32_t j : before) {
            spend(2);
            if (may_meet(groups[i], groups[j], cell)) {
              add({cell, i, j}, places(groups[i].nodes.front(), groups[j].nodes.front(), cell));
            }
          }
        }
        by_set[groups[i].set].push_back(i);
      }
    }
    return std::move(questions_);
  }

 private:
  // Of two groups that no lock keeps apart.
  bool may_meet(const AccessGroup& mine, const AccessGroup& theirs, uint32_t cell) const {
    if (mine.nodes.empty() || theirs.nodes.empty()) {
      return false;
    }
    // Of accesses with several cells the first common one counts.
    if (mine.thread == theirs.thread || !(mine.writes || theirs.writes) ||
        (mine.atomic && theirs.atomic) || std::max(mine.first_cell, theirs.first_cell) != cell) {
      return false;
    }
    bool open = false;
    each_open(model_, mine, theirs, [&](NodeId, NodeId) {
      open = true;
      return false;
    });
    return open;
  }

  void add(const Encounter& encounter, const Places& places) {
    spend(8);
    const auto [at, is_new] = known_.try_emplace(places, questions_.size());
    if (is_new) {
      questions_.push_back({places, {}});
    }
    questions_[at->second].encounters.push_back(encounter);
  }

  Places places(NodeId a, NodeId b, uint32_t cell) const {
    const Event& first = model_.event(a);
    const Event& second = model_.event(b);
    const bool known =
        first.location != Event::kNoLocation && second.location != Event::kNoLocation;
    const auto place = [&](const Event& event) {
      return known ? event.location
                   : (uint64_t{1} << 63) | (uint64_t{event.thread} << 8) | event.kind_bits;
    };
    const uint64_t one = place(first);
    const uint64_t other = place(second);
    return {std::min(one, other), std::max(one, other), known ? 0 : model_.address_of(cell)};
  }

  const Model& model_;
  std::map<Places, size_t> known_;
  std::vector<Question> questions_;
};

// Answers one.
class RaceSearch {
 public:
  RaceSearch(const RaceOptions& options, Query& query)
      : options_(options), query_(query), model_(query.model()) {}

  Answer answer(const Question& question) {
    const uint64_t cut_short = query_.cut_short();
    uint32_t cell = kNone;
    for (const Encounter& encounter : question.encounters) {
      if (tried_.over()) {
        answer_.bounded = answer_.bounded || !tried_.found;
        break;
      }
      if (cell != kNone && cell != encounter.cell) {
        spend(4 * uses_of(encounter.cell));
      }
      cell = encounter.cell;
      const std::vector<AccessGroup>& groups = groups_at(cell);
      pairs(groups[encounter.mine], groups[encounter.theirs]);
    }
    answer_.windowed = query_.cut_short() > cut_short;
    return std::move(answer_);
  }

 private:
  struct Tried {
    bool found = false;
    uint32_t attempts = 0;
    uint64_t nodes = 0;  // of the windows in which an order was looked for

    bool over() const {
      return found || attempts >= RaceResult::kMaxAttempts || nodes >= RaceResult::kMaxNodes;
    }
  };
  static constexpr size_t kClosest = 16;

  uint64_t uses_of(uint32_t cell) const {
    uint64_t uses = 0;
    for (const ThreadList& list : model_.accesses_of(cell)) {
      uses += list.items.size();
    }
    return uses;
  }

  // Questions about one cell follow each other: its groups are made once. Who answers what must not
  // show in the work: those of a question's first cell were counted when it was found, those of
  // others are counted in answer().
  const std::vector<AccessGroup>& groups_at(uint32_t cell) {
    Query::OfCell& known = query_.of_cell();
    if (known.cell != cell) {
      WorkMeter meter;
      const WorkScope scope(&meter, WorkScope::Counted::kNo);
      known.cell = kNone;
      known.groups = issues_of(model_, cell);
      known.cell = cell;
    }
    return known.groups;
  }

  // The accesses of two threads that nothing orders: first those that are closest in the trace,
  // whose meeting takes the least to find and to tell.
  void pairs(const AccessGroup& mine, const AccessGroup& theirs) {
    for (const auto& [a, b] : closest(mine, theirs)) {
      if (!consider(std::min(a, b), std::max(a, b))) {
        return;
      }
    }
    each_open(model_, mine, theirs,
              [&](NodeId a, NodeId b) { return consider(std::min(a, b), std::max(a, b)); });
  }

  // Of the pairs that follow each other in the trace.
  std::vector<std::pair<NodeId, NodeId>> closest(const AccessGroup& mine,
                                                 const AccessGroup& theirs) const {
    using Near = std::tuple<NodeId, NodeId, NodeId>;  // distance, mine, theirs
    std::priority_queue<Near> found;
    const auto consider = [&](NodeId a, NodeId b) {
      const NodeId distance = a < b ? b - a : a - b;
      if (found.size() == kClosest && std::get<0>(found.top()) <= distance) {
        return;
      }
      spend(4);
      if (!model_.always_before(std::min(a, b), std::max(a, b))) {
        found.emplace(distance, a, b);
        if (found.size() > kClosest) {
          found.pop();
        }
      }
    };
    for (size_t i = 0, j = 0; i < mine.nodes.size() && j < theirs.nodes.size();) {
      spend(2);
      consider(mine.nodes[i], theirs.nodes[j]);
      mine.nodes[i] < theirs.nodes[j] ? ++i : ++j;
    }
    std::vector<std::pair<NodeId, NodeId>> pairs;
    for (; !found.empty(); found.pop()) {
      pairs.emplace_back(std::get<1>(found.top()), std::get<2>(found.top()));
    }
    std::reverse(pairs.begin(), pairs.end());
    return pairs;
  }

  // False: enough of these places.
  bool consider(NodeId a, NodeId b) {
    if (tried_.over()) {
      answer_.bounded = answer_.bounded || !tried_.found;
      return false;
    }
    ++tried_.attempts;
    answer_.asked = true;
    const uint64_t before = query_.looked_at();
    if (ask(a, b)) {
      tried_.found = true;
      return false;
    }
    tried_.nodes += query_.looked_at() - before;
    return true;
  }

  bool ask(NodeId a, NodeId b) {
    const std::array<NodeId, 2> nodes = {a, b};
    auto meeting = query_.meet(nodes, options_.sync_preserving);
    if (!meeting) {
      return false;
    }
    Race race;
    race.first = model_.node(a).event;
    race.second = model_.node(b).event;
    race.tier = meeting->tier;
    Witness& witness = meeting->witness;
    query_.end(&witness, std::array<uint32_t, 2>{race.second, race.first});
    const bool valid = query_.accepted(
        [&](Validator& validator) { return validator.check_race(witness.tail, witness.start); },
        &answer_.invalid);
    if (!valid) {
      return false;
    }
    answer_.witness = std::move(witness);
    answer_.race = std::move(race);
    return true;
  }

  const RaceOptions& options_;
  Query& query_;
  const Model& model_;
  Tried tried_;
  Answer answer_;
};

AskedPlaces::Places listed(const Places& places) {
  return {std::get<0>(places), std::get<1>(places), std::get<2>(places)};
}

}  // namespace

RaceResult predict_races(Query& query, const RaceOptions& options) {
  RaceResult result;
  result.branches = query.branches();
  try {
    std::vector<Question> questions = RaceQuestions(query.model()).find();
    if (options.asked != nullptr) {
      std::erase_if(questions, [&](const Question& question) {
        return options.asked->found(listed(question.places));
      });
    }
    KeptWitnesses kept(query.model(), options.max_witness_events);
    const auto answer = [&](Query& mine, size_t i) {
      return RaceSearch(options, mine).answer(questions[i]);
    };
    const auto commit = [&](size_t i, Answer&& answer) {
      if (answer.asked && options.asked != nullptr) {
        options.asked->asked(listed(questions[i].places), answer.race.has_value());
      }
      result.candidates += answer.asked ? 1 : 0;
      result.refused += answer.asked && !answer.race ? 1 : 0;
      result.invalid += answer.invalid;
      result.bounded = result.bounded || answer.bounded;
      result.windowed = result.windowed || answer.windowed;
      if (answer.race) {
        Race& race = result.races.emplace_back(std::move(*answer.race));
        if (options.asked != nullptr) {
          race.in.places = listed(questions[i].places);
        }
        kept.keep(answer.witness, race.tier == Tier::kSyncPreserving, &race.witness, &race.brief);
        result.without_witness = kept.in_short();
      }
    };
    Questions(query, options.jobs).in_order(questions.size(), answer, commit);
  } catch (const WorkEnded& ended) {
    result.ended = ended.limit();
  }
  std::sort(result.races.begin(), result.races.end(), [](const Race& a, const Race& b) {
    return std::tie(a.first, a.second) < std::tie(b.first, b.second);
  });
  return result;
}

RaceResult predict_races(const Trace& trace, const RaceOptions& options) {
  RaceResult result;
  result.branches = resolved(options.branches, trace);
  try {
    Query query(trace, result.branches, options.windows);
    return predict_races(query, options);
  } catch (const WorkEnded& ended) {
    result.ended = ended.limit();
  }
  return result;
}

}  // namespace tsomon::predict
