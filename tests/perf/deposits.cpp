// Two threads deposit into an account without a lock, each with a pause between load and store:
// what perf's breakpoints and probes of functions are tried on.

#include <thread>

#include <unistd.h>

extern "C" {
volatile int account = 0;

[[gnu::noinline]] void deposit(int amount) {
  const int before = account;
  usleep(300);
  account = before + amount;
}
}

namespace {

void deposit_often() {
  for (int i = 0; i < 20; ++i) {
    deposit(1);
  }
}

}  // namespace

int main() {
  std::thread first(deposit_often);
  std::thread second(deposit_often);
  first.join();
  second.join();
  return 0;
}
