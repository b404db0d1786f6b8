// The store buffer of clients.cpp for Relacy: relacy_clients random | all ITERATIONS
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "relacy/relacy.hpp"

struct StoreBuffer : rl::test_suite<StoreBuffer, 2> {
  rl::atomic<int> x;
  rl::atomic<int> y;
  int read[2];

  void before() {
    x.store(0, rl::mo_relaxed, $);
    y.store(0, rl::mo_relaxed, $);
  }
  void thread(unsigned index) {
    rl::atomic<int>& mine = index == 0 ? x : y;
    rl::atomic<int>& other = index == 0 ? y : x;
    mine.store(1, rl::mo_release, $);
    read[index] = other.load(rl::mo_acquire, $);
  }
};

int main(int argc, char** argv) {
  rl::test_params params;
  const bool random = argc > 1 && std::strcmp(argv[1], "random") == 0;
  params.search_type = random ? rl::random_scheduler_type : rl::fair_full_search_scheduler_type;
  params.iteration_count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000000;
  rl::simulate<StoreBuffer>(params);
  std::cout << "iterations " << params.stop_iteration << std::endl;
  return 0;
}
