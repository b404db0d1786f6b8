#include "offline/linearizability/validate.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <set>

#include <fmt/format.h>

namespace tsomon::linearizability {
namespace {

bool wrong_order(const Part& part, const std::vector<uint32_t>& order) {
  uint32_t latest_call = 0;
  for (const uint32_t i : order) {
    if (part.ops[i].ret < latest_call) {
      return true;
    }
    latest_call = std::max(latest_call, part.ops[i].call);
  }
  return false;
}

// Each replays one operation; false where the specification does not allow it.
class CellReplay {
 public:
  CellReplay(const History& history, const Part& part)
      : history_(history), texts_(part.kind == ObjectKind::kKvAppend), value_(part.initial) {
    text_ = texts_ ? history.raw_text(part.initial) : "";
  }

  bool allows(const Op& op) {
    if (texts_) {
      return allows_text(op, history_.raw_text(op.a));
    }
    switch (op.step) {
      case Step::kRead:
        return value_ == op.a;
      case Step::kNot:
        return value_ != op.a;
      case Step::kWrite:
        value_ = op.a;
        return true;
      case Step::kCas:
      case Step::kUnless: {
        const bool allowed = (value_ == op.a) == (op.step == Step::kCas);
        value_ = op.b;
        return allowed;
      }
      case Step::kAdd:
        value_ = static_cast<int64_t>(static_cast<uint64_t>(value_) + static_cast<uint64_t>(op.a));
        return true;
      default:
        return false;
    }
  }

 private:
  bool allows_text(const Op& op, const std::string& text) {
    if (op.step == Step::kRead) {
      return text_ == text;
    }
    text_ = op.step == Step::kAppend ? text_ + text : text;
    return op.step == Step::kAppend || op.step == Step::kWrite;
  }

  const History& history_;
  bool texts_;
  HistoryValue value_;
  std::string text_;
};

class LineReplay {
 public:
  bool allows(const Op& op) {
    const bool front =
        op.step == Step::kPushFront || op.step == Step::kPopFront || op.step == Step::kPeekFront;
    if (is_push(op.step)) {
      values_.insert(front ? values_.begin() : values_.end(), op.a);
      return true;
    }
    if (op.step == Step::kIsEmpty || values_.empty()) {
      return op.step == Step::kIsEmpty && values_.empty();
    }
    const auto at = front ? values_.begin() : std::prev(values_.end());
    const bool allowed = op.pending || *at == op.a;
    if (is_pop(op.step)) {
      values_.erase(at);
    }
    return allowed;
  }

 private:
  std::deque<HistoryValue> values_;
};

class PriorityReplay {
 public:
  bool allows(const Op& op) {
    if (is_push(op.step)) {
      values_.insert(op.a);
      return true;
    }
    if (op.step == Step::kIsEmpty || values_.empty()) {
      return op.step == Step::kIsEmpty && values_.empty();
    }
    const bool largest = op.step == Step::kPopFront || op.step == Step::kPeekFront;
    const auto at = largest ? std::prev(values_.end()) : values_.begin();
    const bool allowed = op.pending || *at == op.a;
    if (is_pop(op.step)) {
      values_.erase(at);
    }
    return allowed;
  }

 private:
  std::multiset<HistoryValue> values_;
};

template <typename Replay>
std::string replay(const Part& part, const std::vector<uint32_t>& order, Replay replayed) {
  for (const uint32_t i : order) {
    if (!replayed.allows(part.ops[i])) {
      return fmt::format("operation {} is not allowed in its place", i);
    }
  }
  return {};
}

}  // namespace

std::string refused(const History& history, const Part& part, const std::vector<uint32_t>& order) {
  std::vector<uint8_t> times(part.ops.size());
  for (const uint32_t i : order) {
    if (i >= times.size() || ++times[i] > 1) {
      return "an operation is in it twice, or is none";
    }
  }
  for (size_t i = 0; i < part.ops.size(); ++i) {
    if (times[i] == 0 && !part.ops[i].pending) {
      return fmt::format("operation {} is missing", i);
    }
  }
  if (wrong_order(part, order)) {
    return "it is against the order in time";
  }
  if (part.kind == ObjectKind::kPriorityQueue) {
    return replay(part, order, PriorityReplay());
  }
  return is_container(part.kind) ? replay(part, order, LineReplay())
                                 : replay(part, order, CellReplay(history, part));
}

}  // namespace tsomon::linearizability
