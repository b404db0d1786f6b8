// Programs that stand still until somebody ends them: stuck WAY
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include <semaphore.h>
#include <unistd.h>

std::mutex first;
std::mutex second;
std::shared_mutex shared;
std::condition_variable told;
sem_t met;

void meet() {
  sem_post(&met);
  int here = 0;
  while (sem_getvalue(&met, &here) == 0 && here < 2) {
    usleep(1000);
  }
}

int main(int, char** argv) {
  const auto is = [&](const char* way) { return std::strcmp(argv[1], way) == 0; };
  sem_init(&met, 0, 0);
  if (is("circle")) {
    std::thread other([] {
      const std::lock_guard mine(second);
      meet();
      const std::lock_guard theirs(first);
    });
    const std::lock_guard mine(first);
    meet();
    const std::lock_guard theirs(second);
    other.join();
  } else if (is("itself")) {
    std::thread([] {
      first.lock();
      first.lock();
    }).join();
  } else if (is("kept")) {
    std::thread([] { first.lock(); }).join();
    first.lock();
  } else if (is("readers")) {
    std::thread other([] {
      const std::shared_lock mine(shared);
      meet();
      const std::lock_guard theirs(first);
    });
    const std::lock_guard mine(first);
    meet();
    const std::unique_lock theirs(shared);
    other.join();
  } else if (is("told_before")) {
    std::thread waits([] {
      usleep(100'000);
      std::unique_lock lock(first);
      told.wait(lock);
    });
    told.notify_one();
    waits.join();
  } else if (is("goes_on")) {
    std::thread busy([] {
      const std::lock_guard mine(first);
      meet();
      for (;;) {
        usleep(10'000);
      }
    });
    meet();
    first.lock();
  }
}
