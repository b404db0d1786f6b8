// Units that end and never began, on three threads.
#include <cstdio>
#include <thread>

#include "tsomon.h"

int main() {
  for (int thread = 0; thread < 3; ++thread) {
    std::thread([] {
      for (int i = 0; i < 1000; ++i) {
        tsomon_unit_end();
      }
    }).join();
  }
  std::puts("done 1");
}
