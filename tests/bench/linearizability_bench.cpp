// How fast are histories of known verdict read and judged?
//
//   linearizability_bench KIND OPERATIONS [PROCESSES [faulty]]
//   KIND: queue stack priority-queue set
//
// Operations take effect at a random moment between call and return, so that the history is
// linearizable; `faulty` adds a few at the end that are not. Values are distinct.
#include <cstdlib>
#include <ctime>
#include <deque>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>

#include "decoders/histories/reader.h"
#include "offline/linearizability/check.h"

namespace {

using namespace tsomon;
using linearizability::ObjectKind;

struct Object {
  ObjectKind kind;
  std::deque<int64_t> line;
  std::priority_queue<int64_t> sorted;
  std::set<int64_t> present;

  std::string insert(int64_t value) {
    if (kind == ObjectKind::kSet) {
      return present.insert(value).second ? "true" : "false";
    }
    kind == ObjectKind::kPriorityQueue ? sorted.push(value) : line.push_back(value);
    return "";
  }
  std::string take(int64_t key) {
    if (kind == ObjectKind::kSet) {
      return present.erase(key) != 0 ? "true" : "false";
    }
    if (kind == ObjectKind::kPriorityQueue ? sorted.empty() : line.empty()) {
      return "empty";
    }
    int64_t value = 0;
    if (kind == ObjectKind::kPriorityQueue) {
      value = sorted.top();
      sorted.pop();
    } else if (kind == ObjectKind::kQueue) {
      value = line.front();
      line.pop_front();
    } else {
      value = line.back();
      line.pop_back();
    }
    return std::to_string(value);
  }
};

struct Names {
  const char* insert;
  const char* take;
};

Names names_of(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kQueue:
      return {"enq", "deq"};
    case ObjectKind::kStack:
      return {"push", "pop"};
    case ObjectKind::kSet:
      return {"insert", "remove"};
    default:
      return {"insert", "poll"};
  }
}

std::string fault(ObjectKind kind, int64_t value) {
  const Names names = names_of(kind);
  const auto done = [](const std::string& call, const std::string& result) {
    return fmt::format("Z|call({})|\nZ|ret({})|\n", call, result);
  };
  if (kind == ObjectKind::kSet) {
    return done(fmt::format("insert,{}", value), "true") +
           done(fmt::format("contains,{}", value), "false");
  }
  const int64_t wrong = kind == ObjectKind::kQueue ? value + 1 : value;
  return done(fmt::format("{},{}", names.insert, value), "") +
         done(fmt::format("{},{}", names.insert, value + 1), "") +
         done(names.take, std::to_string(wrong));
}

std::string history_of(ObjectKind kind, uint64_t operations, size_t processes, bool faulty) {
  struct Running {
    int phase = 0;  // 0: nothing is open, 1: called, 2: has taken effect
    bool inserts = false;
    int64_t value = 0;
    std::string result;
  };
  std::mt19937_64 random(1);
  Object object;
  object.kind = kind;
  const Names names = names_of(kind);
  std::vector<Running> running(processes);
  std::string text;
  text.reserve(operations * 36);
  uint64_t started = 0;
  int64_t next = 0;
  for (uint64_t done = 0; done < operations;) {
    const size_t p = random() % processes;
    Running& mine = running[p];
    if (mine.phase == 0 && started < operations) {
      ++started;
      mine.inserts = (random() & 1) != 0;
      // Priorities in no order, each once.
      mine.value =
          mine.inserts
              ? (next++ * 7919) % 1'000'000'007
              : (next > 0 ? ((next - 1 - static_cast<int64_t>(random() % 40) % next) * 7919) %
                                1'000'000'007
                          : 0);
      text += mine.inserts || kind == ObjectKind::kSet
                  ? fmt::format("T{}|call({},{})|\n", p, mine.inserts ? names.insert : names.take,
                                mine.value)
                  : fmt::format("T{}|call({})|\n", p, names.take);
      mine.phase = 1;
    } else if (mine.phase == 1) {
      mine.result = mine.inserts ? object.insert(mine.value) : object.take(mine.value);
      mine.phase = 2;
    } else if (mine.phase == 2) {
      text += fmt::format("T{}|ret({})|\n", p, mine.result);
      mine.phase = 0;
      ++done;
    }
  }
  return text + (faulty ? fault(kind, 2'000'000'000) : "");
}

long peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

}  // namespace

int main(int argc, char** argv) {
  const auto kind = argc > 2 ? linearizability::object_kind(argv[1]) : std::nullopt;
  if (!kind) {
    fmt::print(stderr, "usage: linearizability_bench KIND OPERATIONS [PROCESSES [faulty]]\n");
    return 2;
  }
  const uint64_t operations = std::strtoull(argv[2], nullptr, 10);
  const size_t processes = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 8;
  const std::string text = history_of(*kind, operations, processes, argc > 4);
  // Of the processor, so that other load does not count.
  const auto seconds = [begin = std::clock()] {
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  const long before = peak_mib();
  const auto history = read_history(text, "generated");
  const double read = seconds();
  if (!history) {
    fmt::print(stderr, "{}\n", history.error().to_string());
    return 2;
  }
  linearizability::Options options;
  options.object = kind;
  const auto report = linearizability::check(*history, options);
  const double checked = seconds() - read;
  const auto million = static_cast<double>(operations) / 1e6;
  fmt::print(
      "{} {} operations, {} processes: {}; read {:.2f} s, checked {:.2f} s, {:.2f} million "
      "operations/s in all; {} MiB at most, {} MiB of them text\n",
      argv[1], operations, processes, linearizability::verdict_name(report->verdict), read, checked,
      million / (read + checked), peak_mib(), before);
  return 0;
}
