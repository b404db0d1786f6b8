#include "offline/check/short_cycle.h"

#include <algorithm>

#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr size_t kBatch = 512;  // classes whose reach is computed at once

// The directed edges and a few chosen ones, closed under the rules.
class Consequences {
 public:
  Consequences(const OrientationProblem& problem, uint64_t* work)
      : problem_(problem), work_(*work) {}

  bool allow(Edge edge) {
    chosen_.assign(1, edge);
    if (problem_.before(edge.to, edge.from)) {
      return false;
    }
    for (size_t known = 0; known < chosen_.size();) {
      known = chosen_.size();
      for (const ReadsFrom& rule : problem_.rules) {
        if (!apply({rule.write, rule.other}, {rule.read, rule.other}) ||
            !apply({rule.other, rule.read}, {rule.other, rule.write})) {
          return false;
        }
      }
    }
    return true;
  }

 private:
  static constexpr size_t kMostChosen = 64;  // what has more consequences is left alone

  bool apply(Edge when, Edge then) {
    if (!reaches(when.from, when.to) || reaches(then.from, then.to)) {
      return true;
    }
    if (reaches(then.to, then.from) || chosen_.size() == kMostChosen) {
      return false;
    }
    chosen_.push_back(then);
    return true;
  }

  bool at_or_before(uint32_t a, uint32_t b) {
    ++work_;
    spend(2);
    return a == b || problem_.before(a, b);
  }

  bool reaches(uint32_t from, uint32_t to) {
    if (at_or_before(from, to)) {
      return true;
    }
    std::vector<uint32_t> heads{from};
    std::vector<bool> used(chosen_.size(), false);
    for (size_t at = 0; at < heads.size(); ++at) {
      for (size_t i = 0; i < chosen_.size(); ++i) {
        if (!used[i] && at_or_before(heads[at], chosen_[i].from)) {
          if (at_or_before(chosen_[i].to, to)) {
            return true;
          }
          used[i] = true;
          heads.push_back(chosen_[i].to);
        }
      }
    }
    return false;
  }

  const OrientationProblem& problem_;
  uint64_t& work_;
  std::vector<Edge> chosen_;
};

}  // namespace

std::optional<Edge> find_short_cycle(const OrientationProblem& problem, uint64_t max_work,
                                     uint64_t* work) {
  std::vector<std::vector<Edge>> entering(problem.class_count);  // by the class that is entered
  for (const MixedEdge& open : problem.open) {
    if (problem.class_of[open.from] != problem.class_of[open.to]) {
      entering[problem.class_of[open.to]].push_back({open.from, open.to});
      entering[problem.class_of[open.from]].push_back({open.to, open.from});
    }
  }
  std::vector<uint32_t> entered;
  for (uint32_t node = 0; node < problem.class_count; ++node) {
    if (!entering[node].empty()) {
      entered.push_back(node);
    }
  }
  Consequences consequences(problem, work);
  for (size_t first = 0; first < entered.size(); first += kBatch) {
    const std::vector<uint32_t> batch(
        entered.begin() + static_cast<ptrdiff_t>(first),
        entered.begin() + static_cast<ptrdiff_t>(std::min(first + kBatch, entered.size())));
    const size_t words = (batch.size() + 63) / 64;
    *work += (problem.class_count + problem.classes.size()) * (words + 4);
    if (*work > max_work) {
      return std::nullopt;
    }
    const std::vector<uint64_t> reached = reached_from(problem.class_count, problem.classes, batch);
    for (size_t i = 0; i < batch.size(); ++i) {
      for (const Edge& edge : entering[batch[i]]) {
        const size_t row = problem.class_of[edge.from] * words;
        if (((reached[row + i / 64] >> (i % 64)) & 1) != 0 && consequences.allow(edge)) {
          return edge;
        }
        if (++*work > max_work) {
          return std::nullopt;
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace tsomon
