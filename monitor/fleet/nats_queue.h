// The work of a fleet's tenants in NATS JetStream: a stream for each, which is a work queue with one message for a subject.
//
// Taken       One message at a time, which is this one's until its lease is over: next() lets the one before go. What is called by a
//             number that is not the last one's was let go.
// Lost        What a server that was killed gives to nobody any more is given out again, once all else is, or within two minutes
//             (next()).
// Errors      Those of nats.h. Thread-safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/fleet/nats.h"
#include "tso/support/result.h"

namespace tsomon::fleet {

struct NatsDelivery {
  uint64_t number = 0;
  std::string tenant;
  std::string id;
  std::string text;
  uint64_t times = 1;  // that it was given out
};

class NatsQueue {
 public:
  struct Counts {
    uint64_t waiting = 0;
    uint64_t running = 0;
  };

  explicit NatsQueue(const Nats& server) : stream_(server.stream()), replicas_(server.replicas()) {}

  // Fails where it is there already, or the tenant has `most` messages.
  Result<void> publish(const std::string& tenant, const std::string& id, const std::string& text,
                       uint64_t most);
  // Waits, or somebody has it: only the server knows.
  Result<bool> has(const std::string& tenant, const std::string& id);
  Result<std::map<std::string, Counts>> counts();  // by tenant

  // Of each tenant in turn; none: nothing waits.
  Result<std::optional<NatsDelivery>> next(std::chrono::milliseconds lease);
  // False: it was let go.
  Result<bool> extend(uint64_t number, std::chrono::milliseconds lease);
  // It is over, or waits again after `wait`. Nothing is done where it was let go.
  Result<void> acknowledge(uint64_t number);
  Result<void> give_back(uint64_t number, std::chrono::milliseconds wait);

 private:
  using Clock = std::chrono::steady_clock;
  struct Subscription {
    std::string tenant;
    NatsSubscription subscription;
  };

  Result<void> make_stream(const std::string& tenant, uint64_t most);
  Result<std::vector<std::string>> tenants();
  Result<void> look_for_tenants(std::chrono::milliseconds lease);
  Result<void> subscribe(const std::string& tenant, std::chrono::milliseconds lease);
  Result<std::optional<NatsDelivery>> next_of(Subscription* queue);
  Result<void> look_for_forgotten();

  jsCtx* stream_;
  int replicas_;
  std::vector<std::string> made_;  // tenants with a stream
  std::vector<Subscription> queues_;
  size_t turn_ = 0;
  Clock::time_point looked_;
  Clock::time_point looked_for_forgotten_;
  std::map<std::string, uint64_t> forgotten_;  // by tenant: the first message that seems so
  uint64_t number_ = 0;                        // of the last delivery
  NatsMessage message_;                        // of it; nullptr: it was let go
  Clock::time_point extended_;
};

}  // namespace tsomon::fleet
