// Units whose accesses are on one line each: one_line twice | change | through
#include <atomic>
#include <string_view>
#include <thread>

#include <tsomon.h>
#include <unistd.h>

namespace {

std::atomic<long> word{0};
std::atomic<long> differ{0};

constexpr int kRounds = 200;
void rest() { usleep(40); }

// clang-format off
void looks_twice() {
  for (int i = 0; i < kRounds; ++i) {
    TSOMON_UNIT("twice");
    if (word.load(std::memory_order_acquire) != (rest(), word.load(std::memory_order_acquire))) { differ.store(1, std::memory_order_relaxed); }
  }
}
void changes() {
  for (int i = 0; i < kRounds; ++i) {
    TSOMON_UNIT("change");
    const long now = word.load(); rest(); word.store(now + 1);
  }
}
inline long get() { return word.load(std::memory_order_acquire); }
void looks_through() {
  for (int i = 0; i < kRounds; ++i) {
    TSOMON_UNIT("through");
    const long first = get(); rest(); const long second = get();
    if (first != second) { differ.store(1, std::memory_order_relaxed); }
  }
}
// clang-format on
void writes() {
  for (int i = 0; i < kRounds; ++i) {
    word.store(i, std::memory_order_release);
    rest();
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view what = count > 1 ? arguments[1] : "";
  std::thread other(what == "change" ? changes : writes);
  (what == "change" ? changes : what == "twice" ? looks_twice : looks_through)();
  other.join();
}
