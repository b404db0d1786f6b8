// The store: what became of analysing its slices.
#include <fmt/format.h>

#include "monitor/service/store.h"

namespace tsomon::service {
namespace {

constexpr SliceAnalysis::What kAll[] = {SliceAnalysis::What::kCheck, SliceAnalysis::What::kExplain,
                                        SliceAnalysis::What::kPredict};

SliceAnalysis::What what_named(const std::string& name) {
  for (const SliceAnalysis::What what : kAll) {
    if (name == name_of(what)) {
      return what;
    }
  }
  return SliceAnalysis::What::kPredict;
}

// All that there is to do and was not done. Explanations of fewer violations at a time say more.
constexpr const char* kNext = R"(
WITH seen AS (
  SELECT slice, property, finding, definite FROM shown JOIN findings ON number = finding
  WHERE finding NOT IN (SELECT finding FROM predicted)),
tasks AS (
  SELECT DISTINCT slice, 1 AS rank, 'check' AS what, property FROM seen WHERE definite = 0
  UNION ALL
  SELECT seen.slice, 2, 'explain', property FROM seen
    LEFT JOIN explanations ON explanations.finding = seen.finding
    WHERE property IN ('serializability', 'robustness', 'sc-serializability')
    GROUP BY seen.slice, property HAVING max(ifnull(together, 1000000)) > count(*)
  UNION ALL
  SELECT number, 3, 'predict', '' FROM slices)
SELECT tasks.slice, tasks.what, tasks.property, target, build, taken,
       ifnull(tries, 0), ifnull(crashes, 0)
FROM tasks JOIN slices ON slices.number = tasks.slice
LEFT JOIN analyses ON analyses.slice = tasks.slice AND analyses.what = tasks.what
  AND analyses.property = tasks.property
WHERE ifnull(state, 0) = 0 ORDER BY taken DESC, tasks.slice DESC, rank, tasks.property LIMIT 1)";

// Its first columns: the slice, what is asked of it, and where and when it was taken.
SliceAnalysis task_of(const DatabaseRow& row) {
  SliceAnalysis one;
  one.slice = row.number(0);
  one.what = what_named(row.text(1));
  one.property = row.text(2);
  one.place.target = row.text(3);
  one.place.build = row.text(4);
  one.taken = row.number(5);
  return one;
}

}  // namespace

const char* name_of(SliceAnalysis::What what) {
  return what == SliceAnalysis::What::kCheck     ? "check"
         : what == SliceAnalysis::What::kExplain ? "explain"
                                                 : "predict";
}

Result<std::optional<SliceAnalysis>> Store::next_analysis() {
  std::optional<SliceAnalysis> next;
  return database_
      ->run(kNext, {},
            [&](const DatabaseRow& row) {
              SliceAnalysis& one = next.emplace(task_of(row));
              one.file = slice_file(one.slice).string();
              one.tries = static_cast<uint64_t>(row.number(6));
              one.crashes = static_cast<uint64_t>(row.number(7));
            })
      .map([&] { return next; });
}

Result<void> Store::write_analysis(const SliceAnalysis& analysis, int64_t time) {
  return database_->run(
      "INSERT OR REPLACE INTO analyses VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
      {analysis.slice, std::string_view(name_of(analysis.what)), analysis.property,
       static_cast<int64_t>(analysis.state), static_cast<int64_t>(analysis.tries),
       static_cast<int64_t>(analysis.crashes), analysis.result, time});
}

Result<std::optional<SliceAnalysis>> Store::begin_analysis(int64_t time) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!database_) {
    return became_damaged();
  }
  for (;;) {
    auto next = next_analysis();
    if (!next) {
      return lost(next.error());
    }
    if (!*next) {
      return next;
    }
    SliceAnalysis& one = **next;
    const bool left = one.tries >= kMostTries;
    if (left) {
      one.state = SliceAnalysis::State::kLeft;
      one.result = fmt::format("left: its end was not seen {} times", one.tries);
    } else {
      ++one.tries;
    }
    if (auto done = write_analysis(one, time); !done) {
      return lost(done.error());
    }
    if (!left) {
      return next;
    }
  }
}

// False: it is not known.
Result<bool> Store::raise_finding(const SeenFinding& finding) {
  return database_
      ->run(
          "UPDATE findings SET json = ?3, definite = 1 WHERE fingerprint = ?1 AND property = ?2 "
          "AND "
          "definite = 0",
          {finding.fingerprint, finding.property, finding.json})
      .and_then([&] {
        return database_->number(
            "SELECT count(*) FROM findings WHERE fingerprint = ? AND property = ?",
            {finding.fingerprint, finding.property});
      })
      .map([](int64_t known) { return known != 0; });
}

Result<void> Store::add_found(const SliceAnalysis& analysis, const AnalysisEnd& end,
                              std::vector<bool>* is_new) {
  for (const SeenFinding& finding : end.found) {
    const auto raised = finding.predicted ? Result<bool>(false) : raise_finding(finding);
    if (!raised) {
      return tl::unexpected<Error>(raised.error());
    }
    bool was_not_there = false;
    if (!*raised) {
      auto added = add_finding(analysis.place, analysis.taken, finding, &was_not_there)
                       .and_then([&](int64_t number) {
                         return database_->run("INSERT OR IGNORE INTO shown VALUES (?, ?)",
                                               {number, analysis.slice});
                       });
      if (!added) {
        return added;
      }
    }
    is_new->push_back(was_not_there);
  }
  return {};
}

// The explanation is of all findings that the slice shows, together.
Result<void> Store::explain_findings(const SliceAnalysis& analysis, const std::string& json) {
  std::vector<int64_t> findings;
  auto done = database_->run(
      "SELECT finding FROM shown JOIN findings ON number = finding WHERE slice = ? AND property = "
      "?",
      {analysis.slice, analysis.property},
      [&](const DatabaseRow& row) { findings.push_back(row.number(0)); });
  for (size_t i = 0; done && i < findings.size(); ++i) {
    done = database_->run(
        "INSERT INTO explanations VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET slice = ?2, "
        "together = ?3, json = ?4 WHERE together > ?3",
        {findings[i], analysis.slice, static_cast<int64_t>(findings.size()), json});
  }
  return done;
}

Result<std::vector<bool>> Store::end_analysis(const SliceAnalysis& analysis, const AnalysisEnd& end,
                                              int64_t time) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!database_) {
    return became_damaged();
  }
  std::vector<bool> is_new;
  const auto store_all = [&]() -> Result<void> {
    auto transaction = Transaction::begin(*database_);
    if (!transaction) {
      return tl::unexpected<Error>(transaction.error());
    }
    const auto there =
        database_->number("SELECT count(*) FROM slices WHERE number = ?", {analysis.slice});
    if (!there || *there == 0) {
      return there.map([](int64_t) {});
    }
    SliceAnalysis ended = analysis;
    ended.result = end.result;
    if (end.how == AnalysisEnd::How::kStopped) {
      ended.tries -= ended.tries != 0 ? 1 : 0;
    } else if (end.how == AnalysisEnd::How::kDone) {
      ended.state = SliceAnalysis::State::kDone;
    } else if (++ended.crashes >= kMostCrashes) {
      ended.state = SliceAnalysis::State::kLeft;
      ended.result = "left: " + end.result;
    }
    return write_analysis(ended, time)
        .and_then([&] { return add_found(analysis, end, &is_new); })
        .and_then([&] {
          return end.explanation.empty() ? Result<void>()
                                         : explain_findings(analysis, end.explanation);
        })
        .and_then([&] { return transaction->commit(); });
  };
  if (const auto done = store_all(); !done) {
    return lost(done.error());
  }
  (void)evict();  // what was found is kept, whether there is room again or not
  is_new.resize(end.found.size(), false);
  return is_new;
}

// `slice` 0: of all.
Result<std::vector<SliceAnalysis>> Store::analyses_of(int64_t slice) {
  std::vector<SliceAnalysis> list;
  return database_
      ->run(
          "SELECT slice, what, analyses.property, target, build, taken, state, tries, crashes, "
          "result FROM analyses JOIN slices ON number = slice WHERE ?1 = 0 OR slice = ?1 ORDER BY "
          "slice, what, analyses.property",
          {slice},
          [&](const DatabaseRow& row) {
            SliceAnalysis& one = list.emplace_back(task_of(row));
            one.file = slice_file(one.slice).string();
            one.state = row.number(6) == 0   ? SliceAnalysis::State::kBegun
                        : row.number(6) == 1 ? SliceAnalysis::State::kDone
                                             : SliceAnalysis::State::kLeft;
            one.tries = static_cast<uint64_t>(row.number(7));
            one.crashes = static_cast<uint64_t>(row.number(8));
            one.result = row.text(9);
          })
      .map([&] { return std::move(list); });
}

Result<std::vector<SliceAnalysis>> Store::analyses() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!database_) {
    return became_damaged();
  }
  return analyses_of(0);
}

}  // namespace tsomon::service
