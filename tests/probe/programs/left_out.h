// The part of left_out.cpp that accesses the declared data.
#pragma once

#include <atomic>
#include <vector>

struct Shared {
  long first = 0;
  long second = 0;
  std::vector<long> list;
};

namespace places {

// Inlined where it is called: into a file, and a function, that are left out.
inline __attribute__((always_inline)) void add(Shared& shared, long amount) {
  shared.first += amount;
  shared.second -= amount;
  shared.list[static_cast<size_t>(amount) % shared.list.size()] = amount;
}

}  // namespace places

// A function of its own, with code of the library in it.
inline __attribute__((noinline)) long sum(const Shared& shared) {
  long all = shared.first + shared.second;
  for (const long value : shared.list) {
    all += value;
  }
  return all;
}
