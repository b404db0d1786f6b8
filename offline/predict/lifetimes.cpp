#include "offline/predict/lifetimes.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "offline/predict/block_names.h"
#include "offline/predict/kept_witnesses.h"
#include "offline/predict/questions.h"
#include "tso/model/channels.h"

namespace tsomon::predict {
namespace {

constexpr uint32_t kReleases = kinds::kLocks & ~kinds::kAcquisitions;

// What ends (or begins), where in the source it does and where it is used.
using LifetimePlaces = std::tuple<EventKind, uint64_t, uint64_t>;

struct LifetimeQuestion {
  LifetimePlaces places;
  std::vector<std::pair<NodeId, NodeId>> pairs;         // end, use
  std::vector<std::pair<uint32_t, uint32_t>> happened;  // events
};

struct LifetimeAnswer {
  std::optional<UseAfterEnd> use;  // without its witness
  std::optional<Race> race;        // likewise
  Witness witness;
  bool asked = false;
  bool bounded = false;
  bool windowed = false;
  uint64_t invalid = 0;
};

// Finds the questions.
class LifetimeQuestions {
 public:
  // `races`: of an end and a use that can both be next, and of a beginning likewise.
  LifetimeQuestions(const Query& query, const CellTable& cells, const LifetimeOptions& options,
                    bool races)
      : query_(query), model_(query.model()), cells_(cells), options_(options), races_(races) {}

  std::vector<LifetimeQuestion> find() {
    if (options_.frees && !races_) {
      find_happened();
    }
    find_locks();
    for (NodeId id = 0; id < model_.size(); ++id) {
      const EventKind kind = model_.event(id).kind();
      spend(1);
      if (query_.carried(id)) {
        continue;
      }
      if (kind == EventKind::kFree && options_.frees) {
        after_free(id);
      } else if (kind == EventKind::kDestroy && options_.destroys) {
        const auto locks = locks_.find(model_.event(id).address);
        if (locks != locks_.end()) {
          after_end_of_lock(id, locks->second);
        }
      } else if (races_ && lock_begins(model_.event(id))) {
        before_beginning(id);
      }
    }
    return std::move(questions_);
  }

 private:
  static constexpr ptrdiff_t kNear = 64;  // uses of a lock that are looked at, on either side

  // What the trace itself has.
  void find_happened() {
    const std::vector<Event>& events = model_.trace().events;
    std::vector<uint32_t> ended_by(cells_.size(), kNone);
    std::unordered_map<uint64_t, uint32_t> freed;  // by name
    std::unordered_map<ThreadId, uint64_t> ignored;
    const auto is_ignored = [&](const Event& event, uint64_t which) {
      const auto mine = ignored.find(event.thread);
      return mine != ignored.end() && (mine->second & which) != 0;
    };
    for (uint32_t i = 0; i < events.size(); ++i) {
      const Event& event = events[i];
      spend(1);
      if (event.kind() == EventKind::kAllocate) {
        const CellSpan span = cells_.starting_in(event.address, block_bytes(model_.trace(), event));
        std::fill_n(ended_by.begin() + span.first, span.count, kNone);
        spend(span.count);
        freed.erase(event.address);
        continue;
      }
      if (event.kind() == EventKind::kSend && says_ignored(event.address)) {
        ignored[event.thread] = event.address & 3U;
      }
      if (event.kind() == EventKind::kFree) {
        if (is_ignored(event, 2)) {
          continue;
        }
        const uint64_t bytes = block_bytes(model_.trace(), event);
        const auto [before, first] = freed.try_emplace(event.address, i);
        if (!first && bytes < BlockNames::kUnmapped) {
          question(places_of(before->second, i))->happened.emplace_back(before->second, i);
        }
        const CellSpan span = cells_.of_event(i);
        if (bytes < BlockNames::kUnmapped) {
          std::fill_n(ended_by.begin() + span.first, span.count, i);
          spend(span.count);
        }
        continue;
      }
      if (event.size == 0 || !is(event, kinds::kAccesses & ~kinds::kLocks) ||
          is_ignored(event, event.kind() == EventKind::kRead ? 1 : 2)) {
        continue;
      }
      const CellSpan span = cells_.of_event(i);
      for (uint32_t cell = span.first; cell < span.first + span.count; ++cell) {
        if (ended_by[cell] != kNone) {
          LifetimeQuestion* const asked = question(places_of(ended_by[cell], i));
          if (asked->happened.empty()) {
            asked->happened.emplace_back(ended_by[cell], i);
          }
          break;
        }
      }
    }
  }

  void find_locks() {
    for (NodeId id = 0; id < model_.size(); ++id) {
      const Event& event = model_.event(id);
      if (event.size == 0 && is(event, kUsesOfLocks)) {
        locks_[event.address].push_back(id);
      }
    }
    const std::vector<Event>& events = model_.trace().events;
    for (uint32_t i = 0; (options_.destroys || races_) && i < events.size(); ++i) {
      if (lock_begins(events[i])) {
        begins_[events[i].address & ~kBegins].push_back(i);
      }
    }
    if (races_ && !begins_.empty()) {
      find_changes();
    }
    spend(model_.size() + events.size());
  }

  // Where what lies at the place of a lock that begins becomes another one.
  void find_changes() {
    const std::vector<Event>& events = model_.trace().events;
    for (uint32_t i = 0; i < events.size(); ++i) {
      const Event& event = events[i];
      const bool destroys = event.kind() == EventKind::kDestroy;
      if (!destroys && event.kind() != EventKind::kAllocate && event.kind() != EventKind::kFree) {
        continue;
      }
      const uint64_t place = BlockNames::place(event.address);
      const uint64_t bytes = destroys ? 1 : block_bytes(model_.trace(), event);
      for (auto at = begins_.lower_bound(place); at != begins_.end() && at->first - place < bytes;
           ++at) {
        spend(1);
        changes_[at->first].push_back(i);
      }
    }
    for (NodeId id = 0; id < model_.size(); ++id) {
      const Event& event = model_.event(id);
      if (event.size == 0 && is(event, kUsesOfLocks & ~kReleases) &&
          begins_.count(BlockNames::place(event.address)) != 0) {
        users_at_[BlockNames::place(event.address)].push_back(id);
      }
    }
    spend(model_.size() + events.size());
  }

  // Asks about uses of the lock, by other threads, that its beginning may race with.
  void before_beginning(NodeId begin) {
    const auto users = users_at_.find(model_.event(begin).address & ~kBegins);
    if (users == users_at_.end()) {
      return;
    }
    each_near(begin, users->second, [&](NodeId user) {
      if (model_.owner(model_.node(user).thread) != model_.owner(model_.node(begin).thread) &&
          !model_.always_before(user, begin) && !of_two_locks(begin, user)) {
        candidate(begin, user);
      }
    });
  }

  // visit(user) for the nearest ones of those who use a lock.
  template <typename Visit>
  static void each_near(NodeId id, const std::vector<NodeId>& users, const Visit& visit) {
    const auto middle = std::lower_bound(users.begin(), users.end(), id);
    const auto first = middle - std::min<ptrdiff_t>(kNear, middle - users.begin());
    const auto last = middle + std::min<ptrdiff_t>(kNear, users.end() - middle);
    for (auto at = first; at != last; ++at) {
      spend(2);
      visit(*at);
    }
  }

  void after_free(NodeId end) {
    const Event& event = model_.event(end);
    const uint64_t bytes = block_bytes(model_.trace(), event);
    for (auto at = locks_.lower_bound(event.address);
         BlockNames::has_locks(event.address) && at != locks_.end() &&
         at->first - event.address < bytes;
         ++at) {
      after_end_of_lock(end, at->second);
    }
    const auto uses = model_.uses(end);
    for (const Use& use : uses) {
      for (const ThreadList& list : model_.accesses_of(use.cell)) {
        if (model_.owner(list.thread) == model_.owner(model_.node(end).thread)) {
          continue;
        }
        for (auto at = list.items.rbegin(); at != list.items.rend(); ++at) {
          const NodeId user = model_.issue_of(model_.use(*at).node);
          spend(2);
          if (model_.always_before(user, end)) {
            break;  // so are those before it
          }
          if (model_.event(user).kind() != EventKind::kFree) {
            candidate(end, user);
          }
        }
      }
    }
  }

  void after_end_of_lock(NodeId end, const std::vector<NodeId>& users) {
    const bool is_free = model_.event(end).kind() == EventKind::kFree;
    each_near(end, users, [&](NodeId user) {
      if (is_free && user > end && !races_) {
        // The next block there has another name.
        const uint32_t events[] = {model_.node(end).event, model_.node(user).event};
        question(places_of(events[0], events[1]))->happened.emplace_back(events[0], events[1]);
      } else if (model_.owner(model_.node(user).thread) != model_.owner(model_.node(end).thread) &&
                 !model_.always_before(user, end) && (is_free || !of_two_locks(end, user))) {
        candidate(end, user);
      }
    });
  }

  // Between the end or beginning and the use another lock begins there, or what there is ends.
  bool of_two_locks(NodeId end, NodeId user) const {
    const Event& event = model_.event(end);
    const bool begins = event.kind() == EventKind::kSend;
    const uint64_t place = begins ? event.address & ~kBegins : BlockNames::place(event.address);
    const auto [first, last] = std::minmax({model_.node(end).event, model_.node(user).event});
    const auto any_in = [&](const std::map<uint64_t, std::vector<uint32_t>>& all) {
      const auto here = all.find(place);
      if (here == all.end()) {
        return false;
      }
      const auto between = std::upper_bound(here->second.begin(), here->second.end(), first);
      return between != here->second.end() && *between < last;
    };
    return any_in(begins_) || (begins && any_in(changes_));
  }

  void candidate(NodeId end, NodeId user) {
    if (model_.always_before(end, user) || query_.carried(user) || model_.unreported(end) ||
        model_.unreported(user)) {
      return;
    }
    spend(8);
    LifetimeQuestion* const asked =
        question(places_of(model_.node(end).event, model_.node(user).event));
    if (asked->pairs.size() <= LifetimeResult::kMaxAttempts) {
      asked->pairs.emplace_back(end, user);
    }
  }

  LifetimeQuestion* question(const LifetimePlaces& places) {
    const auto [at, is_new] = known_.try_emplace(places, questions_.size());
    if (is_new) {
      questions_.push_back({places, {}, {}});
    }
    return &questions_[at->second];
  }

  LifetimePlaces places_of(uint32_t end, uint32_t use) const {
    const std::vector<Event>& events = model_.trace().events;
    const auto place = [&](const Event& event) {
      return event.location != Event::kNoLocation
                 ? event.location
                 : (uint64_t{1} << 63) | (uint64_t{event.thread} << 8) | event.kind_bits;
    };
    return {events[end].kind(), place(events[end]), place(events[use])};
  }

  const Query& query_;
  const Model& model_;
  const CellTable& cells_;
  const LifetimeOptions& options_;
  const bool races_;
  std::map<uint64_t, std::vector<NodeId>> locks_;  // who uses the lock at an address
  // By the place of a lock that begins.
  std::map<uint64_t, std::vector<NodeId>> users_at_;
  std::map<uint64_t, std::vector<uint32_t>> begins_;   // events
  std::map<uint64_t, std::vector<uint32_t>> changes_;  // events
  std::map<LifetimePlaces, size_t> known_;
  std::vector<LifetimeQuestion> questions_;
};

// Answers one.
class LifetimeSearch {
 public:
  LifetimeSearch(const LifetimeOptions& options, Query& query, bool races)
      : options_(options), query_(query), model_(query.model()), races_(races) {}

  LifetimeAnswer answer(const LifetimeQuestion& question) {
    const uint64_t cut_short = query_.cut_short();
    for (const auto& [end, use] : question.happened) {
      answer_.asked = true;
      Witness witness{use, {use}};
      if (accept(end, use, &witness, Tier::kSyncPreserving, true)) {
        return std::move(answer_);
      }
    }
    uint32_t attempts = 0;
    for (const auto& [end, use] : question.pairs) {
      if (++attempts > LifetimeResult::kMaxAttempts) {
        answer_.bounded = true;
        break;
      }
      answer_.asked = true;
      if (races_) {
        if (meets(end, use)) {
          break;
        }
        continue;
      }
      auto meeting = query_.lost(use, std::span(&end, 1), options_.sync_preserving);
      if (!meeting) {
        continue;
      }
      const uint32_t event = model_.node(use).event;
      query_.end(&meeting->witness, std::span(&event, 1));
      if (accept(model_.node(end).event, event, &meeting->witness, meeting->tier, false)) {
        break;
      }
    }
    answer_.windowed = query_.cut_short() > cut_short;
    return std::move(answer_);
  }

 private:
  // Each of the two is what its thread does next.
  bool meets(NodeId a, NodeId b) {
    const std::array<NodeId, 2> nodes = {std::min(a, b), std::max(a, b)};
    auto meeting = query_.meet(nodes, options_.sync_preserving);
    if (!meeting) {
      return false;
    }
    Race race;
    race.first = model_.node(nodes[0]).event;
    race.second = model_.node(nodes[1]).event;
    race.tier = meeting->tier;
    Witness& witness = meeting->witness;
    query_.end(&witness, std::array<uint32_t, 2>{race.second, race.first});
    const bool valid = query_.accepted(
        [&](Validator& validator) {
          return validator.check_lifetime_race(witness.tail, witness.start);
        },
        &answer_.invalid);
    if (valid) {
      answer_.race = std::move(race);
      answer_.witness = std::move(witness);
    }
    return valid;
  }

  bool accept(uint32_t end, uint32_t use, Witness* witness, Tier tier, bool happened) {
    const bool valid = query_.accepted(
        [&](Validator& validator) {
          return validator.check_use(witness->tail, witness->start, end);
        },
        &answer_.invalid);
    if (valid) {
      answer_.use = UseAfterEnd{end, use, happened, tier, {}, {}, {}};
      answer_.witness = std::move(*witness);
    }
    return valid;
  }

  const LifetimeOptions& options_;
  Query& query_;
  const Model& model_;
  const bool races_;
  LifetimeAnswer answer_;
};

AskedPlaces::Places listed_lifetime(const LifetimePlaces& places) {
  return {static_cast<uint64_t>(std::get<0>(places)), std::get<1>(places), std::get<2>(places)};
}

// Asks all questions; take(places, answer) for each answer that has found something.
template <typename Take>
void ask_all(Query& query, const LifetimeOptions& options, bool races, SearchOutcome* result,
             const Take& take) {
  std::vector<LifetimeQuestion> questions =
      LifetimeQuestions(query, query.cells(), options, races).find();
  if (options.asked != nullptr) {
    std::erase_if(questions, [&](const LifetimeQuestion& question) {
      return options.asked->found(listed_lifetime(question.places));
    });
  }
  const auto answer = [&](Query& mine, size_t i) {
    return LifetimeSearch(options, mine, races).answer(questions[i]);
  };
  const auto commit = [&](size_t i, LifetimeAnswer&& answer) {
    const bool found = answer.use || answer.race;
    if (answer.asked && options.asked != nullptr) {
      options.asked->asked(listed_lifetime(questions[i].places), found);
    }
    result->candidates += answer.asked ? 1 : 0;
    result->refused += answer.asked && !found ? 1 : 0;
    result->invalid += answer.invalid;
    result->bounded = result->bounded || answer.bounded;
    result->windowed = result->windowed || answer.windowed;
    if (found) {
      take(questions[i].places, answer);
    }
  };
  Questions(query, options.jobs).in_order(questions.size(), answer, commit);
}

}  // namespace

LifetimeResult predict_lifetimes(Query& query, const LifetimeOptions& options) {
  LifetimeResult result;
  KeptWitnesses kept(query.model(), options.max_witness_events);
  try {
    ask_all(
        query, options, false, &result, [&](const LifetimePlaces& places, LifetimeAnswer& answer) {
          const bool is_free = std::get<0>(places) == EventKind::kFree;
          auto& all = is_free ? result.after_free : result.after_destroy;
          UseAfterEnd& use = all.emplace_back(std::move(*answer.use));
          use.in.places = listed_lifetime(places);
          kept.keep(answer.witness, use.tier == Tier::kSyncPreserving, &use.witness, &use.brief);
          result.without_witness = kept.in_short();
        });
  } catch (const WorkEnded& ended) {
    result.ended = ended.limit();
  }
  const auto by_events = [](const UseAfterEnd& a, const UseAfterEnd& b) {
    return std::tie(a.end, a.use) < std::tie(b.end, b.use);
  };
  std::sort(result.after_free.begin(), result.after_free.end(), by_events);
  std::sort(result.after_destroy.begin(), result.after_destroy.end(), by_events);
  return result;
}

void predict_lifetime_races(Query& query, const LifetimeOptions& options, RaceResult* races) {
  KeptWitnesses kept(query.model(), options.max_witness_events);
  const uint64_t in_short = races->without_witness;
  try {
    ask_all(query, options, true, races, [&](const LifetimePlaces& places, LifetimeAnswer& answer) {
      Race& race = races->races.emplace_back(std::move(*answer.race));
      race.in.places = listed_lifetime(places);
      kept.keep(answer.witness, race.tier == Tier::kSyncPreserving, &race.witness, &race.brief);
      races->without_witness = in_short + kept.in_short();
    });
  } catch (const WorkEnded& ended) {
    races->ended = races->ended ? races->ended : ended.limit();
  }
  std::sort(races->races.begin(), races->races.end(), [](const Race& a, const Race& b) {
    return std::tie(a.first, a.second) < std::tie(b.first, b.second);
  });
}

}  // namespace tsomon::predict
