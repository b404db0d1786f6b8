#include "offline/linearizability/operation.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "offline/linearizability/names.h"
#include "tso/support/flat_map.h"
#include "tso/support/printable.h"

namespace tsomon::linearizability {
namespace {

using namespace history_values;

constexpr std::array<const char*, kObjectKinds> kKindNames = {
    "register", "cas-register", "counter",        "set",   "map",  "kv-append",
    "queue",    "stack",        "priority-queue", "deque", "mutex"};

// An absent key, and a present one, of a set; a free and a taken mutex.
constexpr HistoryValue kAbsent = 0;
constexpr HistoryValue kPresent = 1;

// Wraps around.
HistoryValue sum(HistoryValue a, HistoryValue b) {
  return static_cast<HistoryValue>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

bool is_true(HistoryValue value) { return value == kTrue || value == 1; }
bool is_false(HistoryValue value) { return value == kFalse || value == 0; }

// One operation of a history, with its results as they are meant.
class Compiler {
 public:
  Compiler(const History& history, ObjectKind kind) : history_(history), kind_(kind) {}

  enum class Outcome : uint8_t { kStep, kNoStep, kWrong };

  // `key` is set where the object has keys. kNoStep: nothing was done or seen.
  Outcome compile(const HistoryOperation& operation, Meaning meaning, Op* op, HistoryValue* key) {
    from_ = &operation;
    op_ = op;
    pending_ = operation.outcome == OperationOutcome::kPending;
    op->pending = pending_;
    op->call = operation.call;
    op->ret = pending_ ? HistoryOperation::kNever : operation.ret;
    arguments_.assign(operation.arguments.begin(),
                      operation.arguments.begin() + operation.argument_count);
    results_.assign(operation.results.begin(), operation.results.begin() + operation.result_count);
    if (has_keys()) {
      if (arguments_.empty()) {
        return wrong("an operation with a key");
      }
      *key = arguments_.front();
      arguments_.erase(arguments_.begin());
    }
    drop_echo();
    const Outcome outcome = is_container(kind_) ? container(meaning) : cell(meaning);
    // What never returned and only looks says nothing.
    return outcome == Outcome::kStep && pending_ && is_observer(op->step) ? Outcome::kNoStep
                                                                          : outcome;
  }

  const std::string& expected() const { return expected_; }

 private:
  bool has_keys() const {
    return kind_ == ObjectKind::kSet || kind_ == ObjectKind::kMap || kind_ == ObjectKind::kKvAppend;
  }

  // Formats that repeat the arguments as results, and "ok": there is no result.
  void drop_echo() {
    if (results_.size() == 1 && results_[0] == kOk) {
      results_.clear();
    }
    if (!history_.echoes_arguments || results_.empty()) {
      return;
    }
    std::vector<HistoryValue> all(from_->arguments.begin(),
                                  from_->arguments.begin() + from_->argument_count);
    echoed_ = results_ == arguments_ || results_ == all;
  }

  Outcome wrong(std::string expected) {
    expected_ = std::move(expected);
    return Outcome::kWrong;
  }
  Outcome step(Step step, HistoryValue a = 0, HistoryValue b = 0) {
    op_->step = step;
    op_->a = a;
    op_->b = b;
    return Outcome::kStep;
  }

  bool has_result() const { return !pending_ && !results_.empty() && !echoed_; }
  HistoryValue result() const { return results_.front(); }

  // -1: no result or no truth value.
  int truth() const {
    if (!has_result()) {
      return -1;
    }
    return is_true(result()) ? 1 : is_false(result()) ? 0 : -1;
  }

  Outcome cell(Meaning meaning) {
    switch (meaning) {
      case Meaning::kRead:
        return read();
      case Meaning::kWrite:
        if (arguments_.size() != 1) {
          return wrong("one value to write");
        }
        if (kind_ == ObjectKind::kCounter && !is_number(arguments_[0])) {
          return wrong("a number to write");
        }
        if (truth() == 0 && kind_ != ObjectKind::kMap) {
          return Outcome::kNoStep;
        }
        // A map may return what was there before.
        return has_result() && truth() != 1 && kind_ == ObjectKind::kMap
                   ? step(Step::kCas, normal(result()), arguments_[0])
                   : step(Step::kWrite, arguments_[0]);
      case Meaning::kCas:
        return cas();
      case Meaning::kExchange:
        if (arguments_.size() != 1 || (!pending_ && results_.size() != 1)) {
          return wrong("one value to write and the one before as the result");
        }
        return pending_ ? step(Step::kWrite, arguments_[0])
                        : step(Step::kCas, results_[0], arguments_[0]);
      case Meaning::kFetchAdd:
      case Meaning::kAddFetch:
        return add(1, meaning == Meaning::kFetchAdd);
      case Meaning::kFetchSub:
      case Meaning::kSubFetch:
        return add(-1, meaning == Meaning::kFetchSub);
      case Meaning::kInsert:
        return change(kAbsent, kPresent);
      case Meaning::kRemove:
        return kind_ == ObjectKind::kMap ? remove_from_map() : change(kPresent, kAbsent);
      case Meaning::kContains:
        if (pending_) {
          return Outcome::kNoStep;
        }
        if (truth() < 0) {
          return wrong("true or false as the result");
        }
        return kind_ == ObjectKind::kMap ? step(truth() == 1 ? Step::kNot : Step::kRead, kNil)
                                         : step(Step::kRead, truth() == 1 ? kPresent : kAbsent);
      case Meaning::kPutIfAbsent:
        return put_if_absent();
      case Meaning::kAppend:
        return arguments_.size() == 1 ? step(Step::kAppend, arguments_[0])
                                      : wrong("one text to append");
      case Meaning::kLock:
        return truth() == 0 ? step(Step::kRead, kPresent) : step(Step::kCas, kAbsent, kPresent);
      case Meaning::kTryLock:
        return truth() < 0 && !pending_ ? wrong("true or false as the result")
                                        : change(kAbsent, kPresent);
      case Meaning::kUnlock:
        return step(Step::kCas, kPresent, kAbsent);
      default:
        return wrong("an operation of the object");
    }
  }

  // In a map an absent key reads as nil, which some write as an empty text.
  HistoryValue normal(HistoryValue value) const {
    const bool nil = kind_ == ObjectKind::kMap && value == kEmptyText;
    return nil ? kNil : value;
  }

  Outcome read() {
    if (pending_) {
      return Outcome::kNoStep;
    }
    if (results_.size() > 1) {
      return wrong("one value as the result");
    }
    // Without a result, nothing was there.
    const HistoryValue value = results_.empty() ? kNil : results_[0];
    if (kind_ == ObjectKind::kCounter && !is_number(value)) {
      return wrong("a number as the result");
    }
    return step(Step::kRead,
                kind_ == ObjectKind::kKvAppend && value == kNil ? kEmptyText : normal(value));
  }

  Outcome cas() {
    if (arguments_.size() != 2) {
      return wrong("the expected and the new value");
    }
    if (!pending_ && has_result() && truth() < 0) {
      return wrong("true or false as the result");
    }
    return truth() == 0 ? step(Step::kNot, normal(arguments_[0]))
                        : step(Step::kCas, normal(arguments_[0]), arguments_[1]);
  }

  Outcome add(int64_t sign, bool returns_old) {
    if (arguments_.size() > 1 || (!arguments_.empty() && !is_number(arguments_[0]))) {
      return wrong("at most one number to add");
    }
    const int64_t difference = sign * (arguments_.empty() ? 1 : arguments_[0]);
    if (!has_result()) {
      return step(Step::kAdd, difference);
    }
    if (!is_number(result())) {
      return wrong("a number as the result");
    }
    return returns_old ? step(Step::kCas, result(), sum(result(), difference))
                       : step(Step::kCas, sum(result(), -difference), result());
  }

  // From one state of a key to the other; false: it was in the other state already.
  Outcome change(HistoryValue from, HistoryValue to) {
    if (has_result() && truth() < 0) {
      return wrong("true or false as the result");
    }
    switch (truth()) {
      case 0:
        return step(Step::kRead, to);
      case 1:
        return step(Step::kCas, from, to);
      default:
        break;
    }
    // Pending: either it changes something, or it had better not taken effect.
    return pending_ ? step(Step::kCas, from, to) : step(Step::kWrite, to);
  }

  Outcome remove_from_map() {
    if (!has_result()) {
      return step(Step::kWrite, kNil);
    }
    if (result() == kTrue) {
      return step(Step::kUnless, kNil, kNil);
    }
    return result() == kFalse || normal(result()) == kNil ? step(Step::kRead, kNil)
                                                          : step(Step::kCas, result(), kNil);
  }

  Outcome put_if_absent() {
    if (arguments_.size() != 1) {
      return wrong("one value to put");
    }
    if (!pending_ && !has_result()) {
      return wrong("true, false or the value that was there as the result");
    }
    if (has_result() && result() == kFalse) {
      return step(Step::kNot, kNil);
    }
    return pending_ || result() == kTrue || normal(result()) == kNil
               ? step(Step::kCas, kNil, arguments_[0])
               : step(Step::kRead, result());
  }

  Outcome container(Meaning meaning) {
    switch (meaning) {
      case Meaning::kPushFront:
        return push(Step::kPushFront);
      case Meaning::kPushBack:
        return push(Step::kPushBack);
      case Meaning::kPopFront:
        return take(Step::kPopFront);
      case Meaning::kPopBack:
        return take(Step::kPopBack);
      case Meaning::kPeekFront:
        return take(Step::kPeekFront);
      case Meaning::kPeekBack:
        return take(Step::kPeekBack);
      default:
        return wrong("an operation of the object");
    }
  }

  Outcome push(Step way) {
    if (arguments_.size() != 1 || arguments_[0] == kNil) {
      return wrong("one value to put in");
    }
    if (kind_ == ObjectKind::kPriorityQueue && !is_number(arguments_[0])) {
      return wrong("a number to put in");
    }
    // Full: it has not been put in.
    return has_result() && result() == kFalse ? Outcome::kNoStep : step(way, arguments_[0]);
  }

  // A value, "true, value", "false", nil or nothing. What some histories have as the argument is
  // the result.
  Outcome take(Step way) {
    if (pending_) {
      return step(way);
    }
    std::vector<HistoryValue> values = results_.empty() ? arguments_ : results_;
    if (values.size() == 2 && values[0] == kTrue) {
      values.erase(values.begin());
    }
    if (values.size() > 1 && values[0] != kFalse) {
      return wrong("one value as the result");
    }
    const bool nothing = values.empty() || values[0] == kNil || values[0] == kFalse;
    if (nothing) {
      return step(Step::kIsEmpty);
    }
    return step(way, values[0]);
  }

  const History& history_;
  ObjectKind kind_;
  const HistoryOperation* from_ = nullptr;
  Op* op_ = nullptr;
  bool pending_ = false;
  bool echoed_ = false;
  std::vector<HistoryValue> arguments_;
  std::vector<HistoryValue> results_;
  std::string expected_;
};

HistoryValue initial_value(const History& history, ObjectKind kind, bool mentions_nil) {
  switch (kind) {
    case ObjectKind::kRegister:
    case ObjectKind::kCasRegister:
      return history.starts_nil || mentions_nil ? kNil : 0;
    case ObjectKind::kMap:
      return kNil;
    case ObjectKind::kKvAppend:
      return kEmptyText;
    default:
      return 0;  // a counter; nothing there, and free
  }
}

// What each object is.
Result<std::vector<ObjectKind>> kinds_of(const History& history, std::optional<ObjectKind> kind) {
  if (!kind && !history.declared_object.empty()) {
    kind = object_kind(history.declared_object);
  }
  if (kind) {
    return std::vector<ObjectKind>(history.objects.size(), *kind);
  }
  std::vector<std::vector<bool>> used(history.objects.size(),
                                      std::vector<bool>(history.names.size()));
  for (const HistoryOperation& operation : history.operations) {
    used[operation.object][operation.name] = true;
  }
  std::vector<ObjectKind> kinds;
  for (uint32_t object = 0; object < history.objects.size(); ++object) {
    std::vector<std::string> names;
    for (uint32_t name = 0; name < history.names.size(); ++name) {
      if (used[object][name]) {
        names.emplace_back(printable(history.names.text(name)));
      }
    }
    auto guessed = guess_kind(names);
    if (!guessed) {
      return tl::unexpected<Error>(std::move(guessed.error()));
    }
    kinds.push_back(*guessed);
  }
  return kinds;
}

class Partition {
 public:
  Partition(const History& history, std::vector<ObjectKind> kinds)
      : history_(history), kinds_(std::move(kinds)), meanings_(history.objects.size()) {
    for (const ObjectKind kind : kinds_) {
      compilers_.emplace_back(history, kind);
    }
    for (auto& meanings : meanings_) {
      meanings.resize(history.names.size());
    }
  }

  Result<Parts> make() {
    const std::vector<bool> nil = objects_with_nil();
    for (uint32_t i = 0; i < history_.operations.size(); ++i) {
      const HistoryOperation& operation = history_.operations[i];
      result_.failed += operation.outcome == OperationOutcome::kFailed ? 1 : 0;
      result_.pending += operation.outcome == OperationOutcome::kPending ? 1 : 0;
      if (operation.outcome == OperationOutcome::kFailed) {
        continue;
      }
      Op op;
      op.source = i;
      HistoryValue key = 0;
      const std::optional<Meaning> meaning = meaning_for(operation);
      Compiler& compiler = compilers_[operation.object];
      if (!meaning) {
        return wrong(operation,
                     fmt::format("an operation of a {}", kind_name(kinds_[operation.object])));
      }
      switch (compiler.compile(operation, *meaning, &op, &key)) {
        case Compiler::Outcome::kWrong:
          return wrong(operation, compiler.expected());
        case Compiler::Outcome::kNoStep:
          break;
        case Compiler::Outcome::kStep:
          part(operation.object, key, nil[operation.object]).ops.push_back(op);
          break;
      }
    }
    result_.kinds = std::move(kinds_);
    return std::move(result_);
  }

 private:
  std::optional<Meaning> meaning_for(const HistoryOperation& operation) {
    auto& known = meanings_[operation.object][operation.name];
    if (!known.looked_up) {
      known.looked_up = true;
      known.meaning = meaning_of(kinds_[operation.object], history_.names.text(operation.name));
    }
    return known.meaning;
  }

  std::vector<bool> objects_with_nil() const {
    std::vector<bool> nil(history_.objects.size());
    for (const HistoryOperation& operation : history_.operations) {
      for (uint8_t i = 0; i < operation.argument_count; ++i) {
        nil[operation.object] = nil[operation.object] || operation.arguments[i] == kNil;
      }
      for (uint8_t i = 0; i < operation.result_count; ++i) {
        nil[operation.object] = nil[operation.object] || operation.results[i] == kNil;
      }
    }
    return nil;
  }

  bool has_keys(uint32_t object) const {
    const ObjectKind kind = kinds_[object];
    return kind == ObjectKind::kSet || kind == ObjectKind::kMap || kind == ObjectKind::kKvAppend;
  }

  Part& part(uint32_t object, HistoryValue key, bool mentions_nil) {
    const bool keyed = has_keys(object);
    if (indexes_.size() <= object) {
      indexes_.resize(object + 1);
    }
    const auto [index, is_new] =
        indexes_[object].try_emplace(keyed ? key : 0, static_cast<uint32_t>(result_.parts.size()));
    if (is_new) {
      Part made;
      made.kind = kinds_[object];
      made.object = object;
      made.initial = initial_value(history_, made.kind, mentions_nil);
      if (keyed) {
        made.key = key;
      } else if (kinds_.size() == 1) {
        made.ops.reserve(history_.operations.size());
      }
      result_.parts.push_back(std::move(made));
    }
    return result_.parts[*index];
  }

  tl::unexpected<Error> wrong(const HistoryOperation& operation,
                              const std::string& expected) const {
    return tl::unexpected<Error>(Error{
        ErrorKind::kMalformed,
        {},
        fmt::format("line {}", operation.call_line),
        fmt::format("expected {}, found {}", expected, printable(history_.describe(operation)))});
  }

  struct KnownMeaning {
    bool looked_up = false;
    std::optional<Meaning> meaning;
  };

  const History& history_;
  std::vector<ObjectKind> kinds_;
  std::vector<Compiler> compilers_;
  std::vector<std::vector<KnownMeaning>> meanings_;
  std::vector<FlatMap<HistoryValue, uint32_t>> indexes_;
  Parts result_;
};

}  // namespace

const char* kind_name(ObjectKind kind) {
  return kind == ObjectKind::kSequential ? "sequential object"
                                         : kKindNames[static_cast<size_t>(kind)];
}

std::optional<ObjectKind> object_kind(std::string_view name) {
  for (size_t i = 0; i < kKindNames.size(); ++i) {
    if (name == kKindNames[i]) {
      return static_cast<ObjectKind>(i);
    }
  }
  return std::nullopt;
}

std::optional<Op> as_pending(const History& history, ObjectKind kind, const Op& op) {
  HistoryOperation operation = history.operations[op.source];
  operation.outcome = OperationOutcome::kPending;
  operation.result_count = 0;
  const auto meaning = meaning_of(kind, history.names.text(operation.name));
  Op result;
  result.source = op.source;
  HistoryValue key = 0;
  if (!meaning || Compiler(history, kind).compile(operation, *meaning, &result, &key) !=
                      Compiler::Outcome::kStep) {
    return std::nullopt;
  }
  return result;
}

Result<Parts> parts_of(const History& history, std::optional<ObjectKind> kind) {
  auto kinds = kinds_of(history, kind);
  if (!kinds) {
    return tl::unexpected<Error>(std::move(kinds.error()));
  }
  return Partition(history, std::move(*kinds)).make();
}

}  // namespace tsomon::linearizability
