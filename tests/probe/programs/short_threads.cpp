// Many threads, one after the other, each with a unit; how much memory the process takes for them.
#include <cstdio>
#include <fstream>
#include <thread>

#include <unistd.h>

long total;
__attribute__((noinline)) void work() { ++total; }

int main() {
  constexpr int kFirst = 2'000;
  constexpr int kAll = 20'000;
  const auto pages = [](long* all, long* resident) {
    std::ifstream("/proc/self/statm") >> *all >> *resident;
  };
  long all_first = 0;
  long resident_first = 0;
  for (int i = 0; i < kAll; ++i) {
    if (i == kFirst) {
      pages(&all_first, &resident_first);
    }
    std::thread thread(work);
    thread.join();
  }
  long all = 0;
  long resident = 0;
  pages(&all, &resident);
  const long page = sysconf(_SC_PAGESIZE);
  std::printf("threads %d\n", kAll);
  std::printf("address_space %ld\n", (all - all_first) * page / (kAll - kFirst));
  std::printf("resident %ld\n", (resident - resident_first) * page / (kAll - kFirst));
}
