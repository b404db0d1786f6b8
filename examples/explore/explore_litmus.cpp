// Two threads and two or three variables: what each memory model shows.
//
//   explore_litmus store_buffering | store_buffering_fenced | message_passing | counter | plain
#include <atomic>
#include <cstring>
#include <thread>

#include <tsomon.h>

namespace {

std::atomic<int> x{0};
std::atomic<int> y{0};
int data = 0;
int read_x = -1;
int read_y = -1;

void fence_if(bool fenced) {
  if (fenced) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

// Both may read 0 under TSO, unless each looks behind a fence.
void store_buffering(bool fenced) {
  std::thread other([fenced] {
    y.store(1, std::memory_order_release);
    fence_if(fenced);
    read_x = x.load(std::memory_order_acquire);
  });
  x.store(1, std::memory_order_release);
  fence_if(fenced);
  read_y = y.load(std::memory_order_acquire);
  other.join();
  tsomon_outcome("x=%d y=%d", read_x, read_y);
}

// Stores commit in order: who sees the flag sees the data.
void message_passing() {
  std::thread writer([] {
    data = 42;
    x.store(1, std::memory_order_release);
  });
  const int seen = x.load(std::memory_order_acquire) == 1 ? data : -1;
  writer.join();
  tsomon_outcome("data=%d", seen);
}

// An increment that is a load and a store.
void counter() {
  const auto add = [] {
    TSOMON_UNIT("add");
    x.store(x.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  };
  std::thread other(add);
  add();
  other.join();
  tsomon_outcome("x=%d", x.load());
}

// The same with a plain variable, which is shared all the same.
void plain() {
  const auto add = [] { data = data + 1; };
  std::thread other(add);
  add();
  other.join();
  tsomon_outcome("data=%d", data);
}

}  // namespace

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  if (std::strcmp(what, "store_buffering") == 0) {
    store_buffering(false);
  } else if (std::strcmp(what, "store_buffering_fenced") == 0) {
    store_buffering(true);
  } else if (std::strcmp(what, "message_passing") == 0) {
    message_passing();
  } else if (std::strcmp(what, "counter") == 0) {
    counter();
  } else if (std::strcmp(what, "plain") == 0) {
    plain();
  } else {
    return 2;
  }
  return 0;
}
