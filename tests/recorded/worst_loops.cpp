// What packs best: two threads go through an array over and over, in one unit: worst_loops ACCESSES
#include <cstdint>
#include <cstdlib>
#include <thread>

#include <tsomon.h>

namespace {

constexpr size_t kWords = 1000;
uint64_t words[2][kWords];

void go(uint64_t* own, uint64_t accesses) {
  TSOMON_UNIT("go");
  for (uint64_t i = 0; i < accesses / 2; ++i) {
    own[i % kWords] += 1;
  }
}

}  // namespace

int main(int count, char** arguments) {
  const uint64_t accesses = count > 1 ? std::strtoull(arguments[1], nullptr, 10) / 2 : 1000;
  std::thread other(go, words[0], accesses);
  go(words[1], accesses);
  other.join();
}
