#include "tests/linearizability/naive_history.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>

namespace tsomon::testing {
namespace {

using namespace history_values;

// Where the next value comes from or goes to.
bool is(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

HistoryValue truth(bool value) { return value ? kTrue : kFalse; }

HistoryValue take(std::vector<HistoryValue>* values, bool front, bool remove) {
  if (values->empty()) {
    return kNil;
  }
  const HistoryValue value = front ? values->front() : values->back();
  if (remove) {
    values->erase(front ? values->begin() : values->end() - 1);
  }
  return value;
}

class Orders {
 public:
  explicit Orders(History* history) : history_(history) {
    for (const HistoryOperation& operation : history->operations) {
      done_.push_back(operation.outcome == OperationOutcome::kFailed);
    }
  }

  bool any(const NaiveObject& object) {
    const std::vector<HistoryOperation>& all = history_->operations;
    bool open = false;
    for (size_t i = 0; i < all.size(); ++i) {
      open = open || (!done_[i] && all[i].outcome == OperationOutcome::kReturned);
    }
    if (!open) {
      return true;
    }
    for (size_t i = 0; i < all.size(); ++i) {
      if (done_[i] || !may_be_next(i)) {
        continue;
      }
      NaiveObject next = object;
      const auto result = next.run(history_, all[i]);
      if (!result || !agrees(all[i], *result)) {
        continue;
      }
      done_[i] = true;
      const bool found = any(next);
      done_[i] = false;
      if (found) {
        return true;
      }
    }
    return false;
  }

  static bool agrees(const HistoryOperation& operation, HistoryValue result) {
    return operation.outcome != OperationOutcome::kReturned || operation.result_count == 0 ||
           operation.results[0] == result;
  }

 private:
  bool may_be_next(size_t i) const {
    const std::vector<HistoryOperation>& all = history_->operations;
    for (size_t k = 0; k < all.size(); ++k) {
      if (!done_[k] && all[k].outcome == OperationOutcome::kReturned && all[k].ret < all[i].call) {
        return false;
      }
    }
    return true;
  }

  History* history_;
  std::vector<bool> done_;
};

}  // namespace

std::optional<HistoryValue> NaiveObject::run(History* history, const HistoryOperation& operation) {
  const std::string_view name = history->names.text(operation.name);
  const HistoryValue a = operation.arguments[0];
  const HistoryValue b = operation.arguments[1];
  switch (kind) {
    case ObjectKind::kRegister:
    case ObjectKind::kCasRegister:
    case ObjectKind::kCounter: {
      const HistoryValue before = value;
      if (name == "read") {
        return value;
      }
      if (name == "write") {
        value = a;
        return kOk;
      }
      if (name == "cas") {
        const bool same = value == a;
        value = same ? b : value;
        return truth(same);
      }
      if (name == "swap") {
        value = a;
        return before;
      }
      value += name == "dec" ? -1 : name == "fetch_add" ? a : 1;
      return name == "fetch_add" ? before : value;
    }
    case ObjectKind::kSet: {
      const bool present = entries.count(a) != 0;
      if (name == "insert") {
        entries[a] = 1;
        return truth(!present);
      }
      if (name == "remove") {
        entries.erase(a);
      }
      return truth(present);
    }
    case ObjectKind::kMap: {
      const HistoryValue before = entries.count(a) != 0 ? entries[a] : kNil;
      if (name == "put") {
        entries[a] = b;
        return kOk;
      }
      if (name == "put_if_absent" && before == kNil) {
        entries[a] = b;
      }
      if (name == "remove") {
        entries.erase(a);
      }
      return name == "contains" ? truth(before != kNil) : before;
    }
    case ObjectKind::kKvAppend:
      if (name == "get") {
        return history->value_of(texts[a].empty() ? "\"\"" : texts[a]);
      }
      texts[a] = (name == "append" ? texts[a] : "") + history->raw_text(b);
      return kOk;
    case ObjectKind::kMutex:
      if (name == "try_lock") {
        const bool free = value == 0;
        value = 1;
        return truth(free);
      }
      if ((name == "lock") == (value != 0)) {
        return std::nullopt;
      }
      value = name == "lock" ? 1 : 0;
      return kOk;
    default:
      break;
  }
  if (is(name, {"enq", "push", "insert", "push_back"})) {
    values.push_back(a);
    if (kind == ObjectKind::kPriorityQueue) {
      std::sort(values.begin(), values.end(), std::greater<>());
    }
    return kOk;
  }
  if (name == "push_front") {
    values.insert(values.begin(), a);
    return kOk;
  }
  const bool front = is(name, {"deq", "poll", "pop_front", "peek_front", "front", "peek"});
  const bool remove = is(name, {"deq", "pop", "poll", "delete_min", "pop_front", "pop_back"});
  return take(&values, front, remove);
}

bool naively_linearizable(History* history, ObjectKind kind, HistoryValue start) {
  NaiveObject object;
  object.kind = kind;
  object.value = start;
  return Orders(history).any(object);
}

bool naively_allowed(History* history, ObjectKind kind, HistoryValue start,
                     const std::vector<uint32_t>& order) {
  NaiveObject object;
  object.kind = kind;
  object.value = start;
  std::vector<int> times(history->operations.size());
  for (size_t at = 0; at < order.size(); ++at) {
    const HistoryOperation& operation = history->operations[order[at]];
    ++times[order[at]];
    for (size_t later = at + 1; later < order.size(); ++later) {
      if (history->operations[order[later]].ret < operation.call) {
        return false;
      }
    }
    const auto result = object.run(history, operation);
    if (!result || !Orders::agrees(operation, *result)) {
      return false;
    }
  }
  for (size_t i = 0; i < times.size(); ++i) {
    // What is pending and only looks need not be in it.
    if (times[i] > 1 ||
        (times[i] == 0 && history->operations[i].outcome == OperationOutcome::kReturned)) {
      return false;
    }
  }
  return true;
}

namespace {

const std::vector<std::string>& operations_of(ObjectKind kind) {
  static const std::map<ObjectKind, std::vector<std::string>> kOperations = {
      {ObjectKind::kRegister, {"read", "write", "read"}},
      {ObjectKind::kCasRegister, {"read", "write", "cas", "cas", "swap"}},
      {ObjectKind::kCounter, {"read", "inc", "dec", "fetch_add"}},
      {ObjectKind::kSet, {"insert", "remove", "contains"}},
      {ObjectKind::kMap, {"put", "get", "remove", "contains", "put_if_absent", "get"}},
      {ObjectKind::kKvAppend, {"append", "get", "put", "append", "get"}},
      {ObjectKind::kQueue, {"enq", "deq", "enq", "deq", "enq", "deq", "peek"}},
      {ObjectKind::kStack, {"push", "pop", "push", "pop", "push", "pop", "top"}},
      {ObjectKind::kPriorityQueue, {"insert", "poll"}},
      {ObjectKind::kDeque,
       {"push_front", "push_back", "pop_front", "pop_back", "peek_front", "peek_back"}},
      {ObjectKind::kMutex, {"lock", "unlock", "try_lock"}},
  };
  return kOperations.at(kind);
}

struct Generator {
  std::mt19937_64 random;
  ObjectKind kind;
  bool distinct;
  bool smallest;  // of a priority queue, and some rounds of the others, without peeks
  int next_value = 0;

  int below(int end) { return static_cast<int>(random() % static_cast<uint64_t>(end)); }
  std::string value() { return std::to_string(distinct ? ++next_value : 1 + below(3)); }

  std::string call() {
    const std::vector<std::string>& names = operations_of(kind);
    const auto count = static_cast<int>(names.size());
    const bool container = linearizability::is_container(kind) && kind != ObjectKind::kDeque;
    std::string name = names[static_cast<size_t>(
        below(container && smallest && kind != ObjectKind::kPriorityQueue ? count - 1 : count))];
    if (name == "poll" && smallest) {
      name = "delete_min";
    }
    const std::string key = std::to_string(1 + below(2));
    if (is(name, {"cas"})) {
      return fmt::format("{}({}, {})", name, below(3), 1 + below(3));
    }
    if (kind == ObjectKind::kSet || is(name, {"get"}) ||
        (kind == ObjectKind::kMap && is(name, {"remove", "contains"}))) {
      return fmt::format("{}({})", name, distinct ? value() : key);
    }
    if (is(name, {"put", "put_if_absent"})) {
      return fmt::format("{}({}, {})", name, key, value());
    }
    if (name == "append") {
      return fmt::format("{}({}, {})", name, key, static_cast<char>('a' + below(3)));
    }
    if (is(name,
           {"write", "swap", "fetch_add", "enq", "push", "insert", "push_front", "push_back"})) {
      return fmt::format("{}({})", name, value());
    }
    return name + "()";
  }
};

struct Running {
  std::string call;
  bool effect = false;
  HistoryValue result = 0;
};

}  // namespace

std::string random_history(uint64_t seed, ObjectKind kind, int operations, bool distinct,
                           int faults) {
  Generator generator{std::mt19937_64(seed), kind, distinct, (seed & 1) != 0};
  History words;  // for the values of results
  NaiveObject object;
  object.kind = kind;
  std::string text = fmt::format("# @object {}\n", linearizability::kind_name(kind));
  constexpr int kProcesses = 3;
  std::vector<std::optional<Running>> running(kProcesses);
  std::vector<int> process_names(kProcesses);
  for (int i = 0; i < kProcesses; ++i) {
    process_names[static_cast<size_t>(i)] = i;
  }
  int started = 0;
  int next_process = kProcesses;
  for (int steps = 0; steps < 40 * operations; ++steps) {
    const auto at = static_cast<size_t>(generator.below(kProcesses));
    std::optional<Running>& mine = running[at];
    const int process = process_names[at];
    if (!mine) {
      if (started == operations) {
        continue;
      }
      ++started;
      mine = Running{generator.call(), false, 0};
      text += fmt::format("[{}] call {}\n", process, mine->call);
    } else if (!mine->effect) {
      // The operation once more as a history of its own, to have it as one.
      HistoryOperation operation;
      const size_t bracket = mine->call.find('(');
      operation.name = words.names.intern(mine->call.substr(0, bracket));
      std::string arguments = mine->call.substr(bracket + 1);
      for (size_t i = 0; i < 2 && arguments != ")"; ++i) {
        const size_t end = arguments.find_first_of(",)");
        operation.arguments[i] = words.value_of(arguments.substr(0, end));
        arguments.erase(0, arguments[end] == ',' ? end + 2 : end);
      }
      const auto result = object.run(&words, operation);
      if (result || generator.below(20) == 0) {
        mine->effect = true;
        mine->result = result.value_or(kOk);
      }
    } else if (generator.below(12) == 0) {
      process_names[at] = next_process++;  // it has crashed
      mine.reset();
    } else {
      HistoryValue result = mine->result;
      if (generator.below(10) < faults) {
        if (kind == ObjectKind::kKvAppend && result != kOk) {
          result = words.value_of("a");
        } else if (result == kTrue || result == kFalse) {
          result = result == kTrue ? kFalse : kTrue;
        } else if (is_number(result) || result == kNil) {
          const int other = generator.below(distinct ? 6 : 4);
          result = other == 0 && kind != ObjectKind::kCounter ? kNil : other;
        }
      }
      text += fmt::format("[{}] return {}\n", process, result == kOk ? "" : words.text_of(result));
      mine.reset();
    }
  }
  return text;
}

}  // namespace tsomon::testing
