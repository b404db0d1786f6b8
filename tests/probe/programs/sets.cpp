// Declares atomic sets before the first thread, twice the same, and from another thread; with an
// argument also more ranges than the probe keeps.
#include <thread>

#include "tsomon.h"

struct Pair {
  int x = 0;
  int y = 0;
};
Pair head;
Pair tail;
char many[5000];

int main(int argc, char**) {
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
  for (unsigned i = 0; argc > 1 && i < sizeof many; ++i) {
    TSOMON_ATOMIC_SET("many", &many[i], 1);
  }
}
