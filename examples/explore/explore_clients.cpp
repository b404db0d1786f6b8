// Concurrent objects and their operations, for `tsomon explore --clients`: see clients.toml.
//
//   explore_clients queue | queue_early_empty | stack | stack_racy | set | set_unlocked |
//                   register | register_buffered | counted | account | account_racy | account_specified |
//                   account_specified_racy
#undef NDEBUG  // the assertion is what is explored
#include <cassert>
#include <cstring>
#include <mutex>

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

// An object of a kind of its own: a withdrawal that would overdraw is refused.
template <bool kRacy>
class Account {
 public:
  int deposit(int amount) {
    const std::lock_guard lock(mutex_);
    balance_ += amount;
    return balance_;
  }
  bool withdraw(int amount) {
    std::unique_lock lock(mutex_);
    const int before = balance_;
    if (before < amount) {
      return false;
    }
    if (kRacy) {
      lock.unlock();
      lock.lock();
    }
    balance_ = before - amount;
    return true;
  }

 private:
  std::mutex mutex_;
  int balance_ = 2;
};

// What it should do, in the simplest words.
struct Money {
  int left = 2;
  int deposit(int amount) { return left += amount; }
  bool withdraw(int amount) { return left >= amount && (left -= amount, true); }
};

// As it does itself, one call after the other.
template <typename Account>
tsomon::Clients<Account> account() {
  return tsomon::Clients<Account>("sequential")
      .call("deposit", {1, 2}, [](Account& account, int amount) { return account.deposit(amount); })
      .call("withdraw", {2}, [](Account& account, int amount) { return account.withdraw(amount); });
}

template <typename Account>
tsomon::Clients<Account, Money> specified() {
  return tsomon::Clients<Account, Money>("sequential")
      .call("deposit", {1, 2}, [](auto& account, int amount) { return account.deposit(amount); })
      .call("withdraw", {2}, [](auto& account, int amount) { return account.withdraw(amount); });
}

}  // namespace

int main(int argc, char** argv) {
  using namespace objects;
  const char* const what = argc > 1 ? argv[1] : "";
  const auto is = [what](const char* name) { return std::strcmp(what, name) == 0; };
  return is("queue")                    ? queue<ArrayQueue<false>>().main(argc, argv)
         : is("queue_early_empty")      ? queue<ArrayQueue<true>>().main(argc, argv)
         : is("stack")                  ? stack<Stack<false>>().main(argc, argv)
         : is("stack_racy")             ? stack<Stack<true>>().main(argc, argv)
         : is("set")                    ? set<Set<false>>().main(argc, argv)
         : is("set_unlocked")           ? set<Set<true>>().main(argc, argv)
         : is("register")               ? cell<Register<false>>().main(argc, argv)
         : is("register_buffered")      ? cell<Register<true>>().main(argc, argv)
         : is("counted")                ? counted().main(argc, argv)
         : is("account")                ? account<Account<false>>().main(argc, argv)
         : is("account_racy")           ? account<Account<true>>().main(argc, argv)
         : is("account_specified")      ? specified<Account<false>>().main(argc, argv)
         : is("account_specified_racy") ? specified<Account<true>>().main(argc, argv)
                                        : 2;
}
