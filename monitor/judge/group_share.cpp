#include "monitor/judge/group_share.h"

#include <algorithm>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tso/model/units.h"
#include "tso/support/text_hash.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

static_assert(std::has_unique_object_representations_v<Event>, "events are hashed as bytes");

template <typename T>
uint64_t hash_of(const std::vector<T>& values) {
  return text_hash({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}

uint64_t digest_of(const CheckOptions& options) {
  const AnalysisOptions& analysis = options.analysis;
  const RelationOptions& relation = analysis.relation;
  return hash_of(std::vector<uint64_t>{static_cast<uint64_t>(options.property),
                                       static_cast<uint64_t>(options.sets),
                                       options.history_events,
                                       options.max_whole,
                                       static_cast<uint64_t>(relation.model),
                                       static_cast<uint64_t>(relation.semantics),
                                       static_cast<uint64_t>(relation.order),
                                       relation.store_buffer,
                                       relation.fenced_release,
                                       relation.lock_order,
                                       relation.thread_order,
                                       analysis.values,
                                       analysis.max_undirected,
                                       analysis.bounds.max_steps,
                                       analysis.bounds.max_work,
                                       analysis.bounds.max_bytes,
                                       analysis.max_total_steps,
                                       analysis.max_total_work,
                                       analysis.max_findings,
                                       static_cast<uint64_t>(analysis.told)});
}

// It ended for what the machine, or somebody at it, did.
bool was_stopped(const Analysis& analysis) {
  return stop_asked() ||
         std::any_of(analysis.notes.begin(), analysis.notes.end(), [](const std::string& note) {
           return note == limit_text(WorkLimit::kStopped) || note == limit_text(WorkLimit::kMemory);
         });
}

bool fits(const Analysis& analysis, const Trace& slice) {
  const UnitTable units(slice);
  const auto is_unit = [&](UnitId unit) { return unit < units.size(); };
  return std::all_of(analysis.unfenced.begin(), analysis.unfenced.end(),
                     [&](const UnfencedUnit& each) {
                       return is_unit(each.unit) && each.after < slice.events.size();
                     }) &&
         std::all_of(analysis.unfenced_groups.begin(), analysis.unfenced_groups.end(),
                     [&](const std::vector<UnitId>& group) {
                       return std::all_of(group.begin(), group.end(), is_unit);
                     });
}

}  // namespace

GroupShare::GroupShare(const CheckOptions& options)
    : part_(options.part),
      found_(options.found),
      searched_(options.searched),
      digest_(part_ || searched_ ? digest_of(options) : 0) {}

void GroupShare::add(const EventBlock& block) {
  if (part_ || searched_) {
    digest_ = hash_of(std::vector<uint64_t>{digest_, hash_of(block.events), hash_of(block.extras)});
  }
}

bool GroupShare::own(const CandidateGroup& group, uint64_t number) const {
  return !part_ || (part_->has(number) &&
                    std::none_of(group.candidates.begin(), group.candidates.end(),
                                 [](const DetectedCandidate& each) { return each.directed; }));
}

JudgedGroup GroupShare::left_to_others(const CandidateShare& bounds) {
  JudgedGroup nothing;
  nothing.bounds = bounds;
  nothing.judgement.analysis = Analysis();
  return nothing;
}

std::optional<JudgedGroup> GroupShare::known(const CandidateGroup& group,
                                             const CandidateShare& bounds,
                                             const BoundedDetector& detector) const {
  if (!searched_ || !bounds.affordable) {
    return std::nullopt;
  }
  const SearchedGroup* const found = searched_->find(key_of(group, bounds, detector));
  if (found == nullptr) {
    return std::nullopt;
  }
  JudgedGroup judged;
  judged.bounds = bounds;
  judged.looks = found->looks;
  judged.judged = found->judged;
  judged.events = found->events;
  judged.work = found->work;
  judged.judgement.work = found->work;
  judged.judgement.analysis = found->analysis;
  // Whoever cuts a slice tells which words are locks there, and may have to take it back later (online/stream/lock_words.h).
  for (size_t look = 0; look < found->looks; ++look) {
    DetectedSlice slice = slice_of(group, look, detector);
    if (look == found->judged) {
      judged.judgement.slice = trace_of(&slice);
      judged.judgement.index = std::move(slice.index);
    }
  }
  if (!found->analysis.unfenced_groups.empty() && !fits(found->analysis, judged.judgement.slice)) {
    return std::nullopt;
  }
  return judged;
}

void GroupShare::keep(const CandidateGroup& group, const JudgedGroup& judged,
                      const BoundedDetector& detector) {
  const Judgement& judgement = judged.judgement;
  if (!part_ || !found_ || judged.looks == 0 || judgement.failed()) {
    return;
  }
  const Analysis& analysis = judgement.result();
  if (analysis.violations() == 0 && !was_stopped(analysis)) {
    found_->add(key_of(group, judged.bounds, detector),
                {judged.looks, judged.judged, judged.events, judged.work, analysis});
  }
}

uint64_t GroupShare::key_of(const CandidateGroup& group, const CandidateShare& bounds,
                            const BoundedDetector& detector) const {
  std::vector<uint64_t> parts = {digest_,           group.first, group.last,
                                 bounds.undirected, bounds.work, detector.simple()};
  for (const DetectedCandidate& candidate : group.candidates) {
    parts.insert(parts.end(),
                 {candidate.units.size(), candidate.directed, candidate.complete, candidate.set,
                  candidate.object.address, candidate.object.size, candidate.object_begin});
    for (const DetectedUnit& unit : candidate.units) {
      parts.insert(parts.end(),
                   {unit.thread, unit.label, unit.first, unit.last, unit.finished, unit.merged});
    }
  }
  return hash_of(parts);
}

}  // namespace tsomon
