#include "offline/linearizability/cell.h"

namespace tsomon::linearizability {

Cell::Cell(const History& history, const Part& part)
    : history_(history), text_(part.kind == ObjectKind::kKvAppend), state_(part.initial) {
  if (text_) {
    state_ = node_of(part.initial);
  }
}

HistoryValue Cell::node_of(HistoryValue value) {
  const auto [node, is_new] = nodes_.try_emplace(value, 0);
  if (is_new) {
    *node = texts_.walk(0, history_.raw_text(value));
  }
  return *node;
}

bool Cell::apply(const Op& op) {
  const HistoryValue a = text_ && op.step != Step::kAppend ? node_of(op.a) : op.a;
  switch (op.step) {
    case Step::kRead:
      return state_ == a;
    case Step::kNot:
      return state_ != a;
    case Step::kWrite:
      set(a);
      return true;
    case Step::kCas:
      if (state_ != a) {
        return false;
      }
      set(op.b);
      return true;
    case Step::kUnless:
      if (state_ == a) {
        return false;
      }
      set(op.b);
      return true;
    case Step::kAdd:
      set(static_cast<HistoryValue>(static_cast<uint64_t>(state_) + static_cast<uint64_t>(op.a)));
      return true;
    case Step::kAppend:
      set(texts_.walk(static_cast<uint32_t>(state_), history_.raw_text(op.a)));
      return true;
    default:
      return false;
  }
}

void Cell::undo(const Op& op) {
  if (!is_observer(op.step)) {
    state_ = before_.back();
    before_.pop_back();
  }
}

}  // namespace tsomon::linearizability
