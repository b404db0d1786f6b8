// Flights with few seats. The agent asks whether a seat is free, lets go of the lock, and sells:
// flights are overbooked.

#include <mutex>

#include "examples/kernels/kernel.h"

namespace {

constexpr uint32_t kSeats = 4;

struct Flight {
  uint32_t sold = 0;
};

class Airline {
 public:
  Airline(bool buggy, uint64_t flights) : buggy_(buggy), flights_(flights) {
    TSOMON_ATOMIC_SET("flights", flights_.data(), flights * sizeof(Flight));
  }

  // False: the flight is full.
  bool sell(uint64_t flight) {
    TSOMON_UNIT("sell;flights");
    std::unique_lock<std::mutex> lock(mutex_);
    if (flights_[flight].sold >= kSeats) {
      return false;
    }
    kernels::let_go(buggy_, lock);
    ++flights_[flight].sold;
    return true;
  }

  uint64_t overbooked() const {
    uint64_t count = 0;
    for (const Flight& flight : flights_) {
      count += flight.sold > kSeats ? 1 : 0;
    }
    return count;
  }

 private:
  const bool buggy_;
  std::mutex mutex_;
  std::vector<Flight> flights_;
};

uint64_t run(const kernels::Arguments& arguments) {
  const uint64_t flights = arguments.rounds / kSeats + 1;
  Airline airline(arguments.buggy, flights);
  kernels::run_threads(arguments, 2, [&](uint32_t) {
    for (uint64_t flight = 0; flight < flights; ++flight) {
      while (airline.sell(flight)) {
        arguments.pause();
      }
    }
  });
  return airline.overbooked();
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::run_kernel(argc, argv, 1000, "overbooked flights", run);
}
