// Memory that is used too late or too early.
//
//   explore_memory freed | freed_later | freed_after_join | freed_by_last | freed_twice |
//                  unwritten | written | copied | wide | reused
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include <tsomon.h>

namespace {

struct Node {
  int value = 1;
  std::atomic<int> users{2};
};
Node* node = nullptr;
volatile int seen[2];

// One thread frees what the other may still read. The first of them runs first where nothing else
// decides, so only one of the two shows by itself.
int freed(bool later) {
  node = new Node;
  const auto use = [](bool frees) {
    if (frees) {
      delete node;
    } else {
      seen[0] = node->value;
    }
  };
  std::thread first(use, !later);
  std::thread second(use, later);
  first.join();
  second.join();
  return 0;
}

int freed_after_join() {
  node = new Node;
  std::thread first([] { seen[0] = node->value; });
  std::thread second([] { seen[1] = node->value; });
  first.join();
  second.join();
  delete node;
  return 0;
}

void use(int number) {
  seen[number] = node->value;
  if (node->users.fetch_sub(1) == 1) {
    delete node;
  }
}
int freed_by_last() {
  node = new Node;
  std::thread first([] { use(0); });
  std::thread second([] { use(1); });
  first.join();
  second.join();
  return 0;
}

int freed_twice() {
  static std::atomic<Node*> shared{new Node};
  // Taken without exchange: both may have it.
  const auto take = [] {
    Node* const taken = shared.load();
    shared.store(nullptr);
    delete taken;
  };
  std::thread first(take);
  std::thread second(take);
  first.join();
  second.join();
  return 0;
}

int publish(bool written) {
  static std::atomic<int*> shared{nullptr};
  std::thread writer([written] {
    int* const value = static_cast<int*>(std::malloc(sizeof(int)));
    if (written) {
      *value = 5;
    }
    shared.store(value);
    *value = 5;
  });
  int* const value = shared.load();
  if (value != nullptr) {
    tsomon_outcome("%d", *value);
  }
  writer.join();
  return 0;
}

// A copy of several fields at once is none of the memory: the fields may be of different times.
int copied() {
  struct Pair {
    int a;
    int b;
  };
  static Pair pair{};
  std::thread writer([] {
    pair.a = 1;
    pair.b = 1;
  });
  volatile size_t size = sizeof pair;
  Pair mine{};
  std::memcpy(&mine, &pair, size);
  writer.join();
  tsomon_outcome("a=%d b=%d", mine.a, mine.b);
  return 0;
}

// Sixteen bytes by one instruction, or two: each half is of its own time. The copies are of a whole
// aggregate, whose store compilers announce before the load.
struct Wide {
  long low;
  long high;
};
Wide from{};
Wide to{};

int wide() {
  std::thread writer([] {
    from.low = 1;
    from.high = 1;
  });
  std::thread copier([] { to = from; });
  const Wide mine = to;
  writer.join();
  copier.join();
  tsomon_outcome("%ld%ld %ld%ld", mine.low, mine.high, to.low, to.high);
  return 0;
}

// A slot is compared with what it held, while its content is replaced: by the same address, where
// the allocator gives that out again.
int reused() {
  static std::atomic<int*> slot{new int(1)};
  static std::atomic<bool> replaced{false};
  int* seen = slot.load();
  std::thread replacer([] {
    delete slot.exchange(nullptr);
    slot = new int(2);
    replaced = true;
  });
  const bool was_replaced = replaced.load();
  const bool same = slot.compare_exchange_strong(seen, nullptr);
  tsomon_outcome("%s", same && was_replaced ? "taken for another" : "right");
  replacer.join();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  const auto is = [what](const char* name) { return std::strcmp(what, name) == 0; };
  return is("freed")              ? freed(false)
         : is("freed_later")      ? freed(true)
         : is("freed_after_join") ? freed_after_join()
         : is("freed_by_last")    ? freed_by_last()
         : is("freed_twice")      ? freed_twice()
         : is("unwritten")        ? publish(false)
         : is("written")          ? publish(true)
         : is("copied")           ? copied()
         : is("wide")             ? wide()
         : is("reused")           ? reused()
                                  : 2;
}
