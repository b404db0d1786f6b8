// Concurrent objects whose operations say where they begin and end, for
// `tsomon explore --property linearizability`.
//
//   explore_objects queue | queue_early_empty | stack | stack_racy | set | set_unlocked |
//                   register | register_buffered | counter | counter_racy | unrelated | nested
#include <cstring>
#include <thread>

#include <tsomon.h>

#include "objects.h"

namespace {

void returned(bool value) { tsomon_return("%s", value ? "true" : "false"); }
void returned(int value) { tsomon_return("%d", value); }
void returned(std::optional<int> value) {
  value ? tsomon_return("%d", *value) : tsomon_return("%s", "nil");
}

#define CALL(name, object, function) \
  do {                               \
    tsomon_call("%s", name);         \
    returned((object).function());   \
  } while (false)
#define CALL_WITH(name, object, function, argument) \
  do {                                              \
    tsomon_call(name ",%d", argument);              \
    returned((object).function(argument));          \
  } while (false)
#define CALL_ONLY(name, object, function, argument) \
  do {                                              \
    tsomon_call(name ",%d", argument);              \
    (object).function(argument);                    \
    tsomon_return("%s", "");                        \
  } while (false)

template <typename Queue>
int queue() {
  static Queue queue;
  std::thread other([] {
    CALL_ONLY("enq", queue, enq, 2);
    CALL("deq", queue, deq);
  });
  CALL_ONLY("enq", queue, enq, 1);
  other.join();
  CALL("deq", queue, deq);
  return 0;
}

template <typename Stack>
int stack() {
  static Stack stack;
  CALL_ONLY("push", stack, push, 1);
  std::thread other([] { CALL("pop", stack, pop); });
  CALL_ONLY("push", stack, push, 2);
  CALL("pop", stack, pop);
  other.join();
  return 0;
}

template <typename Set>
int set() {
  static Set set;
  std::thread other([] {
    CALL_WITH("insert", set, insert, 1);
    CALL_WITH("remove", set, remove, 2);
  });
  CALL_WITH("insert", set, insert, 2);
  CALL_WITH("contains", set, contains, 1);
  other.join();
  return 0;
}

template <typename Register>
int reg() {
  static Register cell;
  std::thread other([] { CALL("read", cell, read); });
  CALL_ONLY("write", cell, write, 1);
  other.join();
  return 0;
}

template <typename Counter>
int counter() {
  static Counter counter;
  std::thread other([] { CALL_WITH("fetch_add", counter, fetch_add, 1); });
  std::thread another([] { CALL_WITH("fetch_add", counter, fetch_add, 1); });
  CALL_WITH("fetch_add", counter, fetch_add, 1);
  other.join();
  another.join();
  return 0;
}

// What goes wrong needs the read to come after the write has returned, and the two touch no memory
// in common: one class of executions has both orders.
int unrelated() {
  static objects::Register<false> mine;
  static objects::Register<false> theirs;
  std::thread other([] { CALL_ONLY("write", theirs, write, 2); });
  CALL("read", mine, read);
  other.join();
  return 0;
}

// An object that is made of another.
int nested() {
  static objects::Register<false> cell;
  std::thread other([] {
    tsomon_call("outer.write,%d", 1);
    CALL_ONLY("write", cell, write, 1);
    tsomon_return("%s", "");
  });
  CALL("read", cell, read);
  other.join();
  CALL("read", cell, read);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace objects;
  const char* const what = argc > 1 ? argv[1] : "";
  const auto is = [what](const char* name) { return std::strcmp(what, name) == 0; };
  return is("queue")               ? queue<ArrayQueue<false>>()
         : is("queue_early_empty") ? queue<ArrayQueue<true>>()
         : is("stack")             ? stack<Stack<false>>()
         : is("stack_racy")        ? stack<Stack<true>>()
         : is("set")               ? set<Set<false>>()
         : is("set_unlocked")      ? set<Set<true>>()
         : is("register")          ? reg<Register<false>>()
         : is("register_buffered") ? reg<Register<true>>()
         : is("counter")           ? counter<Counter<false>>()
         : is("counter_racy")      ? counter<Counter<true>>()
         : is("unrelated")         ? unrelated()
         : is("nested")            ? nested()
                                   : 2;
}
