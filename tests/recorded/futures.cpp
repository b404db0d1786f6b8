// Correct: units that wait for futures, whose promises other threads keep meanwhile.
#include <chrono>
#include <cstdio>
#include <future>
#include <mutex>
#include <thread>

#include <tsomon.h>

namespace {

std::mutex lock;
long total = 0;

void count(std::future<int>& future) {
  TSOMON_UNIT("count");
  const int more = future.get();
  const std::lock_guard<std::mutex> guard(lock);
  total = total + more;
}

void ask(std::shared_future<int> future) {
  TSOMON_UNIT("ask");
  while (future.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
  }
  const std::lock_guard<std::mutex> guard(lock);
  total = total + future.get();
}

}  // namespace

int main() {
  for (int i = 0; i < 20; ++i) {
    std::promise<int> promise;
    std::future<int> future = promise.get_future();
    std::thread keeps([&promise, i] {
      std::this_thread::sleep_for(std::chrono::milliseconds(i % 3));
      promise.set_value(i);
    });
    count(future);
    keeps.join();
    std::packaged_task<int()> task([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      return 1;
    });
    const std::shared_future<int> answer = task.get_future().share();
    std::thread first(ask, answer);
    std::thread second(ask, answer);
    std::thread works(std::move(task));
    first.join();
    second.join();
    works.join();
  }
  std::printf("%ld\n", total);
  return 0;
}
