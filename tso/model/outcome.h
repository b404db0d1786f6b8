// What was found and what could not be judged; the verdict follows from these and from nothing
// else.
//
// Purpose     The one place where verdicts come from: those of an analysis, of a check, of a watch.
//             None of them keeps a verdict beside its findings, so the two cannot disagree: a clean
//             report has no finding and no gap, a definite one has a definite finding.
// Complexity  O(findings) for a verdict.
// Thread-safety: plain data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tsomon {

enum class Verdict : uint8_t { kClean, kPossible, kDefinite, kInconclusive };

// How many violations there are of each kind.
struct Violations {
  uint64_t definite = 0;
  uint64_t possible = 0;

  uint64_t all() const { return definite + possible; }
  // `violation` is kDefinite or kPossible.
  void add(Verdict violation, uint64_t times = 1) {
    (violation == Verdict::kDefinite ? definite : possible) += times;
  }
  void add(const Violations& more) {
    definite += more.definite;
    possible += more.possible;
  }
  bool operator==(const Violations&) const = default;
};

// What a report says in words. A gap is a reason why something may have been missed.
class Notes {
 public:
  // Once, however many ask for it.
  void say(std::string what) {
    if (std::find(texts_.begin(), texts_.end(), what) == texts_.end()) {
      texts_.push_back(std::move(what));
    }
  }
  void missing(std::string why) {
    complete_ = false;
    say(std::move(why));
  }
  void add(const Notes& more) {
    complete_ = complete_ && more.complete_;
    for (const std::string& text : more.texts_) {
      say(text);
    }
  }
  // What it says goes, that there was a gap stays. False: it was not said.
  bool take_back(const std::string& text) {
    const auto at = std::find(texts_.begin(), texts_.end(), text);
    const bool found = at != texts_.end();
    if (found) {
      texts_.erase(at);
    }
    return found;
  }

  bool complete() const { return complete_; }
  bool empty() const { return texts_.empty(); }
  size_t size() const { return texts_.size(); }
  const std::string& front() const { return texts_.front(); }
  auto begin() const { return texts_.begin(); }
  auto end() const { return texts_.end(); }

 private:
  bool complete_ = true;
  std::vector<std::string> texts_;
};

inline Verdict verdict_of(const Violations& found, bool complete) {
  return found.definite > 0   ? Verdict::kDefinite
         : found.possible > 0 ? Verdict::kPossible
         : complete           ? Verdict::kClean
                              : Verdict::kInconclusive;
}

// `Finding`: verdict_of(finding) is kDefinite or kPossible, violations_of(finding) has it and those that it stands for.
template <typename Finding>
struct Outcome {
  std::vector<Finding> findings;  // the gravest first
  Violations more;                // that were counted and are not shown
  Notes notes;

  void missing(std::string why) { notes.missing(std::move(why)); }
  // Shown if it is one of the first `max_findings`.
  void add(Finding finding, size_t max_findings) {
    if (findings.size() < max_findings) {
      findings.push_back(std::move(finding));
    } else {
      more.add(violations_of(finding));
    }
  }
  // The gravest come first, and no more are shown than this.
  void arrange(size_t max_findings) {
    std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
      return verdict_of(a) > verdict_of(b);
    });
    while (findings.size() > max_findings) {
      more.add(violations_of(findings.back()));
      findings.pop_back();
    }
  }

  bool complete() const { return notes.complete(); }
  Violations all() const {
    Violations result = more;
    for (const Finding& finding : findings) {
      result.add(violations_of(finding));
    }
    return result;
  }
  uint64_t violations() const { return all().all(); }
  Verdict verdict() const { return tsomon::verdict_of(all(), complete()); }
};

}  // namespace tsomon
