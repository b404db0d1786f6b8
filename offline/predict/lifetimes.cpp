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

// What ends, where in the source it does and where it is used.
using LifetimePlaces = std::tuple<bool, uint64_t, uint64_t>;

struct LifetimeQuestion {
  LifetimePlaces places;
  bool is_free = true;
  std::vector<std::pair<NodeId, NodeId>> pairs;         // end, use
  std::vector<std::pair<uint32_t, uint32_t>> happened;  // events
};

struct LifetimeAnswer {
  std::optional<UseAfterEnd> use;  // without its witness
  Witness witness;
  bool asked = false;
  bool bounded = false;
  bool windowed = false;
  uint64_t invalid = 0;
};

// Finds the questions.
class LifetimeQuestions {
 public:
  LifetimeQuestions(const Query& query, const CellTable& cells, const LifetimeOptions& options)
      : query_(query), model_(query.model()), cells_(cells), options_(options) {}

  std::vector<LifetimeQuestion> find() {
    if (options_.frees) {
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
          question(places_of(before->second, i), true)->happened.emplace_back(before->second, i);
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
          LifetimeQuestion* const asked = question(places_of(ended_by[cell], i), true);
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
    for (uint32_t i = 0; options_.destroys && i < events.size(); ++i) {
      if (events[i].kind() == EventKind::kSend && says_begins(events[i].address)) {
        begins_[events[i].address & ~kBegins].push_back(i);
      }
    }
    spend(model_.size() + events.size());
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
    const auto middle = std::lower_bound(users.begin(), users.end(), end);
    const auto first = middle - std::min<ptrdiff_t>(kNear, middle - users.begin());
    const auto last = middle + std::min<ptrdiff_t>(kNear, users.end() - middle);
    for (auto at = first; at != last; ++at) {
      spend(2);
      const bool is_free = model_.event(end).kind() == EventKind::kFree;
      if (is_free && *at > end) {
        // The next block there has another name.
        const uint32_t events[] = {model_.node(end).event, model_.node(*at).event};
        question(places_of(events[0], events[1]), true)
            ->happened.emplace_back(events[0], events[1]);
      } else if (model_.owner(model_.node(*at).thread) != model_.owner(model_.node(end).thread) &&
                 !model_.always_before(*at, end) && (is_free || !of_two_locks(end, *at))) {
        candidate(end, *at);
      }
    }
  }

  // One of the two is of the lock that the program made there later.
  bool of_two_locks(NodeId end, NodeId user) const {
    const auto here = begins_.find(BlockNames::place(model_.event(end).address));
    if (here == begins_.end()) {
      return false;
    }
    const auto [first, last] = std::minmax({model_.node(end).event, model_.node(user).event});
    const auto between = std::lower_bound(here->second.begin(), here->second.end(), first);
    return between != here->second.end() && *between < last;
  }

  void candidate(NodeId end, NodeId user) {
    if (model_.always_before(end, user) || query_.carried(user) || model_.unreported(end) ||
        model_.unreported(user)) {
      return;
    }
    spend(8);
    const bool is_free = model_.event(end).kind() == EventKind::kFree;
    LifetimeQuestion* const asked =
        question(places_of(model_.node(end).event, model_.node(user).event), is_free);
    if (asked->pairs.size() <= LifetimeResult::kMaxAttempts) {
      asked->pairs.emplace_back(end, user);
    }
  }

  LifetimeQuestion* question(const LifetimePlaces& places, bool is_free) {
    const auto [at, is_new] = known_.try_emplace(places, questions_.size());
    if (is_new) {
      questions_.push_back({places, is_free, {}, {}});
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
    return {events[end].kind() == EventKind::kFree, place(events[end]), place(events[use])};
  }

  const Query& query_;
  const Model& model_;
  const CellTable& cells_;
  const LifetimeOptions& options_;
  std::map<uint64_t, std::vector<NodeId>> locks_;     // who uses the lock at an address
  std::map<uint64_t, std::vector<uint32_t>> begins_;  // events, by the place of the lock
  std::map<LifetimePlaces, size_t> known_;
  std::vector<LifetimeQuestion> questions_;
};

// Answers one.
class LifetimeSearch {
 public:
  LifetimeSearch(const LifetimeOptions& options, Query& query)
      : options_(options), query_(query), model_(query.model()) {}

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
  bool accept(uint32_t end, uint32_t use, Witness* witness, Tier tier, bool happened) {
    const bool valid = query_.accepted(
        [&](Validator& validator) {
          return validator.check_use(witness->tail, witness->start, end);
        },
        &answer_.invalid);
    if (valid) {
      answer_.use = UseAfterEnd{end, use, happened, tier, {}, {}};
      answer_.witness = std::move(*witness);
    }
    return valid;
  }

  const LifetimeOptions& options_;
  Query& query_;
  const Model& model_;
  LifetimeAnswer answer_;
};

AskedPlaces::Places listed_lifetime(const LifetimePlaces& places) {
  return {std::get<0>(places) ? 1U : 0U, std::get<1>(places), std::get<2>(places)};
}

}  // namespace

LifetimeResult predict_lifetimes(Query& query, const LifetimeOptions& options) {
  LifetimeResult result;
  try {
    std::vector<LifetimeQuestion> questions =
        LifetimeQuestions(query, query.cells(), options).find();
    if (options.asked != nullptr) {
      std::erase_if(questions, [&](const LifetimeQuestion& question) {
        return options.asked->found(listed_lifetime(question.places));
      });
    }
    KeptWitnesses kept(query.model(), options.max_witness_events);
    const auto answer = [&](Query& mine, size_t i) {
      return LifetimeSearch(options, mine).answer(questions[i]);
    };
    const auto commit = [&](size_t i, LifetimeAnswer&& answer) {
      if (answer.asked && options.asked != nullptr) {
        options.asked->asked(listed_lifetime(questions[i].places), answer.use.has_value());
      }
      result.candidates += answer.asked ? 1 : 0;
      result.refused += answer.asked && !answer.use ? 1 : 0;
      result.invalid += answer.invalid;
      result.bounded = result.bounded || answer.bounded;
      result.windowed = result.windowed || answer.windowed;
      if (answer.use) {
        auto& all = questions[i].is_free ? result.after_free : result.after_destroy;
        UseAfterEnd& use = all.emplace_back(std::move(*answer.use));
        kept.keep(answer.witness, use.tier == Tier::kSyncPreserving, &use.witness, &use.brief);
        result.without_witness = kept.in_short();
      }
    };
    Questions(query, options.jobs).in_order(questions.size(), answer, commit);
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

}  // namespace tsomon::predict
