// Two threads record as fast as they can, until somebody ends them: flood [ignore]
//   ignore: SIGTERM and SIGINT do not, and little is recorded; it ends by itself after a minute
#include <atomic>
#include <csignal>
#include <string>
#include <thread>

#include <unistd.h>

int main(int count, char** arguments) {
  std::atomic<long> sum{0};
  if (count > 1 && std::string(arguments[1]) == "ignore") {
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    std::thread other([&] {
      for (int i = 0; i < 600; ++i) {
        sum.fetch_add(1);
        usleep(100'000);
      }
    });
    other.join();
    return 0;
  }
  const auto add = [&] {
    for (;;) {
      sum.fetch_add(1);
    }
  };
  std::thread other(add);
  add();
}
