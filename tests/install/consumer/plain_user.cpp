// A lost update, fed into a monitor by one thread under two names.
#include <chrono>
#include <cstdio>
#include <thread>

#include <tsomon/monitor.h>

int main() {
  tsomon::Monitor monitor(
      [](const tsomon::Monitor::Finding& finding) { std::printf("%s\n", finding.text.c_str()); });
  int value = 0;
  tsomon::Monitor::Thread first = monitor.thread("first");
  tsomon::Monitor::Thread second = monitor.thread("second");
  first.begin("add");
  second.begin("add");
  first.read(&value, sizeof value);
  second.read(&value, sizeof value);
  // Longer than any clock's margin: of events closer together than it, nobody knows which came
  // first.
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (tsomon::Monitor::Thread* thread : {&first, &second}) {
    thread->write(&value, sizeof value);
    thread->end();
    thread->close();
  }
  return monitor.finish().findings == 0 ? 0 : 1;
}
