#include "monitor/service/flight_ring.h"

#include <utility>
#include <vector>

#include <fcntl.h>

namespace tsomon::service {

void FlightRing::drop_old(int64_t now) {
  while (!ring_.empty() && (bytes_ > bound_ || ring_.front().taken < now - time_.count())) {
    bytes_ -= ring_.front().bytes;
    ring_.pop_front();
  }
}

void FlightRing::add(int capture, uint64_t bytes, int64_t taken) {
  Slice slice;
  slice.capture = Descriptor(::fcntl(capture, F_DUPFD_CLOEXEC, 0));
  slice.bytes = bytes;
  slice.taken = taken;
  is_settled_ = !slice.capture.is_open();
  if (slice.capture.is_open()) {
    bytes_ += bytes;
    ring_.push_back(std::move(slice));
  }
  drop_old(taken);
  is_settled_ = is_settled_ || ring_.empty();
}

std::string FlightRing::settle(int64_t stored) {
  if (std::exchange(is_settled_, true) || ring_.empty()) {
    return {};
  }
  Slice& last = ring_.back();
  last.stored = stored != 0 ? stored : last.stored;
  if (incident_ == 0 || last.taken > until_) {
    incident_ = 0;
    return {};
  }
  std::string problem;
  std::vector<IncidentSlice> slices = {{last.capture.get(), last.taken, last.stored}};
  if (const auto added = store_->add_to_incident(incident_, place_, &slices, &problem); !added) {
    incident_ = 0;
    return added.error().to_string();
  }
  last.stored = slices.front().stored;
  return problem;
}

int64_t FlightRing::keep(const std::string& reason, int64_t happened, bool after,
                         std::string* problem) {
  drop_old(happened);
  const bool goes_on = incident_ != 0 && happened <= until_;
  if (ring_.empty() || (after && goes_on)) {
    return 0;
  }
  std::vector<IncidentSlice> slices;
  for (const Slice& slice : ring_) {
    slices.push_back({slice.capture.get(), slice.taken, slice.stored});
  }
  const auto number = store_->begin_incident(place_, happened, reason, &slices, problem);
  if (!number) {
    *problem = number.error().to_string();
    return 0;
  }
  for (size_t i = 0; i < slices.size(); ++i) {
    ring_[i].stored = slices[i].stored;
  }
  is_settled_ = true;
  if (after) {
    incident_ = *number;
    until_ = happened + time_.count();
  }
  return *number;
}

}  // namespace tsomon::service
