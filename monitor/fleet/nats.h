// The NATS client library, with errors as values and owners for what it gives.
//
// Waiting     kWait at most for each answer; once a stop was asked for (tso/support/work.h), half a second, after which there is no
//             connection any more. Connections that break are made again behind the calls, which fail meanwhile.
// Signals     None is delivered to the library's threads.
// Errors      kUsage: the address is none. kEnvironment: all else, with what the library says.
// Thread-safety: one thread for each object.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nats/nats.h>

#include "monitor/fleet/credentials.h"
#include "tso/support/result.h"

namespace tsomon::fleet {

template <typename T, void (*destroy)(T*)>
struct NatsDestroy {
  void operator()(T* object) const { destroy(object); }
};
template <typename T, void (*destroy)(T*)>
using NatsOwner = std::unique_ptr<T, NatsDestroy<T, destroy>>;

using NatsMessage = NatsOwner<natsMsg, natsMsg_Destroy>;
using NatsSubscription = NatsOwner<natsSubscription, natsSubscription_Destroy>;

// A bucket of keys and values. What writes makes it again where the server has lost it.
class NatsBucket {
 public:
  NatsBucket(std::string name, int replicas, jsCtx* stream)
      : name_(std::move(name)), replicas_(replicas), stream_(stream) {}
  // Makes it where there is none.
  Result<void> open();
  Result<std::optional<std::string>> get(const std::string& key);
  // Without its value's way from the server.
  Result<bool> has(const std::string& key);
  Result<void> put(const std::string& key, std::string_view value);
  // False: there is one.
  Result<bool> create(const std::string& key, std::string_view value);
  Result<void> remove(const std::string& key);
  // What has such a key, "*" for one part of it; each(key, value).
  Result<void> each(const std::string& keys,
                    const std::function<void(std::string&&, std::string&&)>& each);
  Result<uint64_t> size();
  struct Since {
    uint64_t count = 0;
    uint64_t first = 0;  // the server's number for it, or for the next one
  };
  // What was written no longer ago, by this machine's clock.
  Result<Since> since(std::chrono::microseconds age);
  // All the rest. How many those were.
  Result<uint64_t> remove_older(std::chrono::microseconds age);
  const std::string& name() const { return name_; }

 private:
  std::string stream_name() const { return "KV_" + name_; }
  std::string subject_of(const std::string& key) const { return "$KV." + name_ + "." + key; }
  natsStatus make();
  // Once more, if the bucket is gone.
  natsStatus write(const std::function<natsStatus()>& act);

  std::string name_;
  int replicas_;
  jsCtx* stream_;
  NatsOwner<kvStore, kvStore_Destroy> store_;
};

class Nats {
 public:
  static constexpr int64_t kWait = 10'000;  // milliseconds

  // `url`: nats://HOST:PORT[,HOST:PORT...], tls://...
  static Result<Nats> connect(const std::string& url, const Credentials& credentials);
  Nats(Nats&& other) noexcept;
  ~Nats();

  int replicas() const { return replicas_; }
  jsCtx* stream() const { return stream_.get(); }
  std::string server() const;

 private:
  // Ends the connection where a stop was asked for, and so what waits for an answer.
  class StopLook;

  Nats();

  std::string name_;
  int replicas_ = 1;
  NatsOwner<natsConnection, natsConnection_Destroy> connection_;
  NatsOwner<jsCtx, jsCtx_Destroy> stream_;
  std::unique_ptr<StopLook> look_;
};

constexpr int64_t kNatsNanoseconds = 1'000'000;  // in a millisecond

// "what: what the library says".
tl::unexpected<Error> nats_error(natsStatus status, const std::string& what);

}  // namespace tsomon::fleet
