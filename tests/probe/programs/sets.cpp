// Declares atomic sets before the first thread, twice the same, and from another thread; with an
// argument also more ranges than the probe keeps, or one that is in no program.
#include <cstring>
#include <thread>

#include "tsomon.h"

struct Pair {
  int x = 0;
  int y = 0;
};
Pair head;
Pair tail;
char many[5000];

__attribute__((noinline)) int counted() {
  static int count;
  return ++count;
}

int main(int argc, char** argv) {
  const char* const more = argc > 1 ? argv[1] : "";
  if (std::strcmp(more, "nowhere") == 0) {
    TSOMON_ATOMIC_SET("nowhere", reinterpret_cast<char*>(1UL << 47), 8);
    TSOMON_ATOMIC_SET("nowhere", reinterpret_cast<char*>(1UL << 48), 8);
  }
  TSOMON_ATOMIC_SET("ends", &head, sizeof head);
  TSOMON_ATOMIC_SET("ends", &head, sizeof head);
  tsomon_atomic_set("", &tail, sizeof tail);
  tsomon_atomic_set(nullptr, &tail, sizeof tail);
  tsomon_atomic_set("nothing", &tail, 0);
  std::thread other([] {
    TSOMON_UNIT("move;ends,counts");
    TSOMON_ATOMIC_SET("ends", &tail, sizeof tail);
    TSOMON_ATOMIC_SET("counts", &tail.y, sizeof tail.y);
    tail.x = 1;
  });
  other.join();
  head.x = 1;
  counted();
  for (unsigned i = 0; std::strcmp(more, "many") == 0 && i < sizeof many; ++i) {
    TSOMON_ATOMIC_SET("many", &many[i], 1);
  }
}
