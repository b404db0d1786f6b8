// Linearizability by a specification that is run, against every order; and its bound.
#include "offline/linearizability/sequential.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/histories/reader.h"
#include "tests/linearizability/naive_history.h"
#include "tests/rounds.h"

using namespace tsomon;
using namespace tsomon::linearizability;
using tsomon::testing::naively_linearizable;
using tsomon::testing::NaiveObject;
using tsomon::testing::random_history;

namespace {

const uint64_t kSequentialRounds = rounds(400, 2'000);

// Carries the calls out on the twin's objects.
class NaiveSpecification : public SequentialObject {
 public:
  NaiveSpecification(History* history, ObjectKind kind) : history_(history), kind_(kind) {
    for (const HistoryOperation& operation : history->operations) {
      std::string text = std::string(history->names.text(operation.name)) + "(";
      for (uint8_t i = 0; i < operation.argument_count; ++i) {
        text += (i == 0 ? "" : ",") + history->raw_text(operation.arguments[i]);
      }
      operations_[text + ")"] = operation;
    }
  }
  Result<std::string> result_of(const std::vector<std::string>& calls) override {
    NaiveObject object;
    object.kind = kind_;
    std::optional<HistoryValue> result;
    for (const std::string& call : calls) {
      result = object.run(history_, operations_.at(call));
    }
    return !result                          ? std::string("it waits")
           : *result == history_values::kOk ? std::string()
                                            : history_->raw_text(*result);
  }

 private:
  History* history_;
  ObjectKind kind_;
  std::map<std::string, HistoryOperation> operations_;
};

}  // namespace

TEST_CASE("a specification that is run decides as all orders do") {
  uint64_t violations = 0;
  uint64_t clean = 0;
  for (const ObjectKind kind :
       {ObjectKind::kQueue, ObjectKind::kStack, ObjectKind::kDeque, ObjectKind::kCounter}) {
    for (uint64_t seed = 0; seed < kSequentialRounds; ++seed) {
      const std::string text =
          random_history(seed, kind, 2 + static_cast<int>(seed % 5), seed % 2 == 0, seed % 3 == 0);
      CAPTURE(text);
      auto history = read_history(text, "test");
      REQUIRE(history);
      NaiveSpecification specification(&*history, kind);
      Options options;
      options.specification = &specification;
      options.want_linearization = true;
      const auto report = check_sequentially(*history, options);
      REQUIRE(report);
      const bool allowed = naively_linearizable(&*history, kind, 0);
      CHECK((report->verdict == Verdict::kLinearizable) == allowed);
      (allowed ? clean : violations) += 1;
      if (report->verdict == Verdict::kLinearizable) {
        continue;
      }
      // Its beginning is a violation, and that up to the return before is none.
      REQUIRE(report->violation);
      History beginning = *history;
      std::vector<uint32_t> returns;
      for (size_t i = 0; i < report->violation->operations.size(); ++i) {
        const HistoryOperation& operation = history->operations[report->violation->operations[i]];
        if (operation.ret != HistoryOperation::kNever && !report->violation->without_return[i]) {
          returns.push_back(operation.ret);
        }
      }
      const uint32_t end = *std::max_element(returns.begin(), returns.end());
      for (const uint32_t from : {end + 1, end}) {
        std::vector<HistoryOperation> kept;
        for (HistoryOperation operation : history->operations) {
          if (operation.call >= from) {
            continue;
          }
          if (operation.ret >= from) {
            operation.ret = HistoryOperation::kNever;
            operation.outcome = OperationOutcome::kPending;
            operation.result_count = 0;
          }
          kept.push_back(operation);
        }
        beginning.operations = kept;
        CHECK(naively_linearizable(&beginning, kind, 0) == (from == end));
      }
    }
  }
  CHECK(violations > kSequentialRounds / 5);
  CHECK(clean > kSequentialRounds / 4);
}

TEST_CASE("past its bound a specification that is run decides nothing") {
  auto history = read_history(random_history(7, ObjectKind::kQueue, 6, true, 0), "test");
  REQUIRE(history);
  NaiveSpecification specification(&*history, ObjectKind::kQueue);
  Options options;
  options.specification = &specification;
  options.bounds.max_work = 2000;  // two calls
  const auto report = check_sequentially(*history, options);
  REQUIRE(report);
  CHECK(report->verdict == Verdict::kInconclusive);
  CHECK(report->notes.size() == 1);
}
