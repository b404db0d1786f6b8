// A program that monitors itself: two threads deposit money and tell a monitor what they do.
// Each access is under the lock, the deposit as a whole is not: updates get lost.

#include <barrier>
#include <cstdio>
#include <mutex>
#include <thread>

#include <tsomon/monitor.h>

int main() {
  tsomon::Monitor monitor(
      [](const tsomon::Monitor::Finding& finding) { std::puts(finding.text.c_str()); });
  long balance = 0;
  std::mutex lock;
  std::barrier meet(2);

  const auto deposit = [&](tsomon::Monitor::Thread thread) {
    thread.begin("deposit");
    lock.lock();
    thread.acquire(&lock);
    thread.read(&balance, sizeof balance);
    const long seen = balance;
    thread.release(&lock);
    lock.unlock();
    meet.arrive_and_wait();  // both have seen the same balance
    lock.lock();
    thread.acquire(&lock);
    thread.write(&balance, sizeof balance);
    balance = seen + 1;
    thread.release(&lock);
    lock.unlock();
    thread.end();
  };
  std::thread first(deposit, monitor.thread("first"));
  std::thread second(deposit, monitor.thread("second"));
  first.join();
  second.join();

  const tsomon::Monitor::Summary summary = monitor.finish();
  std::printf("balance %ld after 2 deposits; %llu violations\n", balance,
              static_cast<unsigned long long>(summary.findings));
  return summary.findings == 0 ? 0 : 1;
}
