// Concurrent objects and their operations, for `tsomon explore --clients`: see clients.toml.
//
//   explore_clients queue | queue_early_empty | stack | stack_racy | set | set_unlocked |
//                   register | register_buffered | counted
#undef NDEBUG  // the assertion is what is explored
#include <cassert>
#include <cstring>

#include <tsomon_client.h>

#include "objects.h"

namespace {

template <typename Queue>
tsomon::Clients<Queue> queue() {
  return tsomon::Clients<Queue>("queue")
      .call("enq", tsomon::kFresh, [](Queue& queue, int value) { queue.enq(value); })
      .call("deq", [](Queue& queue) { return queue.deq(); });
}

template <typename Stack>
tsomon::Clients<Stack> stack() {
  return tsomon::Clients<Stack>("stack")
      .call("push", tsomon::kFresh, [](Stack& stack, int value) { stack.push(value); })
      .call("pop", [](Stack& stack) { return stack.pop(); });
}

template <typename Set>
tsomon::Clients<Set> set() {
  return tsomon::Clients<Set>("set")
      .call("insert", {1, 2}, [](Set& set, int key) { return set.insert(key); })
      .call("remove", {1, 2}, [](Set& set, int key) { return set.remove(key); })
      .call("contains", {1, 2}, [](Set& set, int key) { return set.contains(key); });
}

template <typename Register>
tsomon::Clients<Register> cell() {
  return tsomon::Clients<Register>("register")
      .call("write", tsomon::kFresh, [](Register& cell, int value) { cell.write(value); })
      .call("read", [](Register& cell) { return cell.read(); });
}

// Nothing says what it should be, but that a counter of its operations is right in the end.
struct Counted {
  objects::Counter<true> counter;
  objects::Counter<false> calls;
};
tsomon::Clients<Counted> counted() {
  return tsomon::Clients<Counted>("")
      .call("add",
            [](Counted& counted) {
              counted.counter.fetch_add(1);
              counted.calls.fetch_add(1);
            })
      .at_end([](Counted& counted) {
        assert(counted.counter.fetch_add(0) == counted.calls.fetch_add(0));
      });
}

}  // namespace

int main(int argc, char** argv) {
  using namespace objects;
  const char* const what = argc > 1 ? argv[1] : "";
  const auto is = [what](const char* name) { return std::strcmp(what, name) == 0; };
  return is("queue")               ? queue<ArrayQueue<false>>().main(argc, argv)
         : is("queue_early_empty") ? queue<ArrayQueue<true>>().main(argc, argv)
         : is("stack")             ? stack<Stack<false>>().main(argc, argv)
         : is("stack_racy")        ? stack<Stack<true>>().main(argc, argv)
         : is("set")               ? set<Set<false>>().main(argc, argv)
         : is("set_unlocked")      ? set<Set<true>>().main(argc, argv)
         : is("register")          ? cell<Register<false>>().main(argc, argv)
         : is("register_buffered") ? cell<Register<true>>().main(argc, argv)
         : is("counted")           ? counted().main(argc, argv)
                                   : 2;
}
