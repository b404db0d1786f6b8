// What threads do to memory that is freed and given out again, and to locks that end; each argument
// is one program. The right ones hand over what they free, the others do not.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sys/mman.h>

namespace {

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int* volatile shared = nullptr;

// Frees and allocates the same sizes, so that memory goes from thread to thread.
void churn() {
  std::vector<std::unique_ptr<int[]>> kept;
  for (int i = 0; i < 200; ++i) {
    kept.push_back(std::make_unique<int[]>(static_cast<size_t>(4 + i % 5)));
    kept.back()[0] = i;
    if (i % 3 == 0) {
      kept.erase(kept.begin());
    }
  }
}

void one_after_another(void (*what)()) {
  for (int i = 0; i < 3; ++i) {
    std::thread one(what);
    std::thread other(what);
    one.join();
    other.join();
  }
}

void map() {
  void* const page =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED) {
    *static_cast<volatile int*>(page) = 1;
    munmap(page, 4096);
  }
}

void frame() {
  volatile int numbers[64];
  for (int i = 0; i < 64; ++i) {
    numbers[i] = i;
  }
  static_cast<void>(numbers[7]);
}

// The last one frees it.
void count_references() {
  struct Block {
    std::atomic<int> references{2};
    int value = 0;
  };
  auto* const block = new Block;
  const auto use = [block] {
    static_cast<void>(*const_cast<volatile int*>(&block->value));
    if (block->references.fetch_sub(1) == 1) {
      delete block;
    }
  };
  std::thread one(use);
  std::thread other(use);
  one.join();
  other.join();
}

void* take_and_free(void*) {
  pthread_mutex_lock(&lock);
  std::free(shared);
  pthread_mutex_unlock(&lock);
  return nullptr;
}

// Which comes first does not depend on time, and no recording shows why.
volatile bool was_used = false;
__attribute__((no_sanitize_thread, noinline)) void set_used() { was_used = true; }
__attribute__((no_sanitize_thread, noinline)) void await_use() {
  while (!was_used) {
  }
}

void* use_lock(void*) {
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  set_used();
  return nullptr;
}

}  // namespace

int main(int, char** argv) {
  const std::string what = argv[1];
  pthread_t thread;
  if (what == "heap") {
    one_after_another(churn);
  } else if (what == "mappings") {
    one_after_another(map);
  } else if (what == "stacks") {
    one_after_another(frame);
  } else if (what == "references") {
    count_references();
  } else if (what == "joined") {
    shared = static_cast<int*>(std::malloc(sizeof(int)));
    *shared = 1;
    pthread_create(&thread, nullptr, take_and_free, nullptr);
    pthread_join(thread, nullptr);
    pthread_mutex_destroy(&lock);
  } else if (what == "used") {  // under the lock, but nobody looks whether it is still there
    shared = static_cast<int*>(std::malloc(sizeof(int)));
    pthread_create(&thread, nullptr, take_and_free, nullptr);
    pthread_mutex_lock(&lock);
    static_cast<void>(*const_cast<volatile int*>(shared));
    pthread_mutex_unlock(&lock);
    pthread_join(thread, nullptr);
  } else if (what == "destroyed") {
    pthread_create(&thread, nullptr, use_lock, nullptr);
    await_use();
    pthread_mutex_destroy(&lock);
    pthread_join(thread, nullptr);
  }
  return 0;
}
