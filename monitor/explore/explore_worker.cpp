#include "monitor/explore/explore_worker.h"

#include <algorithm>
#include <utility>

#include "monitor/explore/schedule.h"

namespace tsomon::explore {
namespace {

constexpr uint32_t kFirstLength = 16;

std::vector<Choice> executed(const Run& run) {
  std::vector<Choice> schedule;
  for (const Step& step : run.steps) {
    if (!step.waits) {
      schedule.push_back(step.choice);
    }
  }
  return schedule;
}

}  // namespace

void ExploreWorker::forget(const GraphBuilder::Ranges& ranges) {
  builder_ = {};
  builder_.set_ranges(ranges);
  graphs_.reset();
  sequences_.reset();
  states_.reset();
  bounded_ = false;
}

void ExploreWorker::begin(const ExplorePart& part, PickedRuns* picked) {
  picked_ = picked;
  next_pick_ = 0;
  end_of_picks_ = 0;
  if (options_.strategy == Strategy::kDpor) {
    graphs_ = std::make_unique<GraphSearch>(*program_, builder_, options_.model);
    graphs_->begin(part.subtree);
  } else if (options_.strategy == Strategy::kNaive) {
    sequences_ = std::make_unique<NaiveSearch>(*program_, options_.model, options_.preemptions);
    sequences_->begin(part.start);
  } else if (options_.strategy == Strategy::kStates) {
    states_ = std::make_unique<StateSearch>(
        *program_, options_.model,
        options_.serializability || options_.robustness || options_.linearizability ? Judged::kGraph
                                                                                    : Judged::kEnd);
  }
}

bool ExploreWorker::done() const {
  if (picks()) {
    return next_pick_ == end_of_picks_ && picked_->begun.load() >= most_picks();
  }
  return options_.strategy == Strategy::kDpor     ? graphs_->done()
         : options_.strategy == Strategy::kStates ? states_->done()
                                                  : sequences_->done();
}

uint64_t ExploreWorker::most_picks() const {
  return !options_.replay.empty() ? 1 : options_.executions != 0 ? options_.executions : kSampled;
}

Request ExploreWorker::request_of(uint64_t number) const {
  Request request;
  request.model = options_.model;
  request.seed = options_.seed + number;
  if (!options_.replay.empty()) {
    request.prefix = parse_schedule(options_.replay)->steps;
  } else {
    request.policy = options_.strategy == Strategy::kPct ? Policy::kPct : Policy::kRandom;
    request.depth = options_.depth;
    const uint32_t length = picked_->length.load();
    request.length = length == 0 ? kFirstLength : length;
  }
  return request;
}

const Run& ExploreWorker::pick() {
  constexpr uint64_t kTaken = 32;
  if (next_pick_ == end_of_picks_) {
    // The first one says how long they are.
    const uint64_t count = picked_->length.load() == 0 ? 1 : kTaken;
    next_pick_ = picked_->begun.fetch_add(count);
    end_of_picks_ = std::max(next_pick_ + 1, std::min(next_pick_ + count, most_picks()));
    std::vector<Request> expected;
    for (uint64_t number = next_pick_; number < end_of_picks_; ++number) {
      expected.push_back(request_of(number));
    }
    program_->expect(expected);
  }
  const uint64_t number = next_pick_++;
  const Run& run = program_->run(request_of(number));
  if (number == 0) {
    picked_->length = std::max(kFirstLength, static_cast<uint32_t>(run.steps.size()));
  }
  return run;
}

NextRun ExploreWorker::next() {
  NextRun next;
  if (!picks() && options_.strategy == Strategy::kDpor) {
    GraphSearch::Result result = graphs_->next();
    next.run = result.run;
    next.schedule = std::move(result.schedule);
    next.graph = result.graph;
    return next;
  }
  if (picks()) {
    next.run = &pick();
  } else if (options_.strategy == Strategy::kStates) {
    next.run = states_->next();
    if (next.run == nullptr) {
      return next;
    }
  } else {
    next.run = &sequences_->next();
    bounded_ = bounded_ || sequences_->bounded();
  }
  graph_ =
      next.run->end == End::kDiverged ? Graph() : builder_.of_run(*next.run, options_.model, true);
  next.graph = &graph_;
  next.schedule = executed(*next.run);
  return next;
}

bool ExploreWorker::give(ExplorePart* part) {
  if (picks() || options_.strategy == Strategy::kStates) {
    return false;
  }
  if (options_.strategy == Strategy::kDpor) {
    auto subtree = graphs_->give();
    if (subtree) {
      part->subtree = std::move(*subtree);
    }
    return subtree.has_value();
  }
  auto start = sequences_->give();
  if (start) {
    part->start = std::move(*start);
  }
  return start.has_value();
}

}  // namespace tsomon::explore
