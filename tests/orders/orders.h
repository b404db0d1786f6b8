// What the ways have in common (orders.cpp).
#pragma once

#include <functional>
#include <vector>

#include <time.h>

namespace orders {

void must(bool worked);

// Plain accesses that the compiler keeps.
inline void use(long* place) {
  auto* const there = const_cast<volatile long*>(place);
  *there = *there + 1;
}
inline long look(const long* place) { return *const_cast<const volatile long*>(place); }

struct Place {
  long value = 0;
  void use() { orders::use(&value); }
};

inline timespec later(int seconds) {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  time.tv_sec += seconds;
  return time;
}

void hand_over(const std::function<void()>& give, const std::function<void()>& take);
void both(const std::function<void(int)>& work);

struct Way {
  const char* name;
  void (*run)();
};
const std::vector<Way>& library_ways();
const std::vector<Way>& kernel_ways();
const std::vector<Way>& kernel_races();  // the counterparts

}  // namespace orders
