#include "monitor/attach/overhead.h"

#include <algorithm>

namespace tsomon::attach {

double Overhead::measure(uint64_t hits, std::vector<int64_t> gaps, double processor_seconds) {
  if (gaps.size() >= kFewest) {
    const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
    std::nth_element(gaps.begin(), middle, gaps.end());
    hit_cost_ = static_cast<double>(*middle);
  }
  const double in_hits = static_cast<double>(hits - hits_before_) * hit_cost_ / 1e9;
  const double time = processor_seconds - time_before_;
  hits_before_ = hits;
  time_before_ = processor_seconds;
  // A process that ends meanwhile has no time any more.
  return in_hits == 0 ? 0 : time <= in_hits ? 100 : 100 * in_hits / time;
}

}  // namespace tsomon::attach
