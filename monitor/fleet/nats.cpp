#include "monitor/fleet/nats.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <future>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "monitor/fleet/pause.h"
#include "tso/support/printable.h"
#include "tso/support/work.h"

namespace tsomon::fleet {
namespace {

// Threads that begin meanwhile get no signals.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;
  ~NoSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

std::vector<std::string> servers_of(const std::string& url) {
  const size_t begin = url.find("//") + 2;
  const std::string scheme = url.substr(0, begin);
  std::vector<std::string> servers;
  for (size_t at = begin; at <= url.size();) {
    const size_t end = std::min(url.find(',', at), url.size());
    const std::string one = url.substr(at, end - at);
    if (!one.empty()) {
      servers.push_back(one.find("//") == std::string::npos ? scheme + one : one);
    }
    at = end + 1;
  }
  return servers;
}

natsStatus take_credentials(natsOptions* options, const Credentials& credentials) {
  natsStatus status = NATS_OK;
  const auto set = [&](bool wanted, auto function) {
    if (status == NATS_OK && wanted) {
      status = function();
    }
  };
  set(!credentials.user.empty(), [&] {
    return natsOptions_SetUserInfo(options, credentials.user.c_str(), credentials.password.c_str());
  });
  set(!credentials.token.empty(),
      [&] { return natsOptions_SetToken(options, credentials.token.c_str()); });
  set(!credentials.nkey.empty(), [&] {
    return natsOptions_SetNKeyFromSeed(options, credentials.nkey.c_str(),
                                       credentials.nkey_seed.c_str());
  });
  set(!credentials.creds.empty(), [&] {
    return natsOptions_SetUserCredentialsFromFiles(options, credentials.creds.c_str(), nullptr);
  });
  set(credentials.tls || !credentials.ca.empty(),
      [&] { return natsOptions_SetSecure(options, true); });
  set(!credentials.ca.empty(),
      [&] { return natsOptions_LoadCATrustedCertificates(options, credentials.ca.c_str()); });
  set(!credentials.certificate.empty(), [&] {
    return natsOptions_LoadCertificatesChain(options, credentials.certificate.c_str(),
                                             credentials.key.c_str());
  });
  return status;
}

std::string value_of(kvEntry* entry) {
  const void* const value = kvEntry_Value(entry);
  return value == nullptr ? std::string()
                          : std::string(static_cast<const char*>(value),
                                        static_cast<size_t>(kvEntry_ValueLen(entry)));
}

struct Connected {
  NatsOwner<natsConnection, natsConnection_Destroy> connection;
  natsStatus status = NATS_OK;
  std::string why;  // it failed
};

// The library waits without a look at anything else: a thread does it, which is left alone where a stop was asked for.
std::optional<Connected> connected(NatsOwner<natsOptions, natsOptions_Destroy> options) {
  std::promise<Connected> promise;
  auto future = promise.get_future();
  {
    const NoSignals quiet;
    std::thread([options = std::move(options), promise = std::move(promise)]() mutable {
      Connected made;
      natsConnection* connection = nullptr;
      made.status = natsConnection_Connect(&connection, options.get());
      made.connection.reset(connection);
      if (made.status != NATS_OK) {
        const char* const why = nats_GetLastError(nullptr);
        made.why = why == nullptr ? std::string() : why;
      }
      promise.set_value(std::move(made));
    }).detach();
  }
  while (future.wait_for(kLook) != std::future_status::ready) {
    if (stop_asked()) {
      return std::nullopt;
    }
  }
  return future.get();
}

std::string why_text(natsStatus status, const std::string& more) {
  return fmt::format("{}{}{}", natsStatus_GetText(status), more.empty() ? "" : ": ",
                     printable(more));
}

using Entry = NatsOwner<kvEntry, kvEntry_Destroy>;
using Watcher = NatsOwner<kvWatcher, kvWatcher_Destroy>;

}  // namespace

tl::unexpected<Error> nats_error(natsStatus status, const std::string& what) {
  const char* const last = nats_GetLastError(nullptr);
  return tl::unexpected<Error>(Error{ErrorKind::kEnvironment,
                                     printable(what),
                                     {},
                                     why_text(status, last == nullptr ? std::string() : last)});
}

class Nats::StopLook {
 public:
  // `connection` and `meter` outlive it.
  StopLook(natsConnection* connection, WorkMeter* meter)
      : thread_([connection, meter](const std::stop_token& over) {
          const WorkScope scope(meter, WorkScope::Counted::kNo);
          std::chrono::milliseconds stopped{0};
          while (!over.stop_requested() && stopped < kAfterStop) {
            std::this_thread::sleep_for(kLook);
            stopped += stop_asked() ? kLook : std::chrono::milliseconds(0);
          }
          if (!over.stop_requested()) {
            natsConnection_Close(connection);
          }
        }) {}

 private:
  std::jthread thread_;
};

Nats::Nats() = default;
Nats::Nats(Nats&&) noexcept = default;
Nats::~Nats() = default;

Result<Nats> Nats::connect(const std::string& url, const Credentials& credentials) {
  const std::vector<std::string> servers = servers_of(url);
  if (servers.empty()) {
    return fail(ErrorKind::kUsage,
                fmt::format("expected nats://HOST:PORT, found {}", printable(url)));
  }
  std::vector<const char*> pointers;
  for (const std::string& server : servers) {
    pointers.push_back(server.c_str());
  }
  Nats made;
  made.name_ = servers.front().substr(servers.front().rfind('@') + 1);
  made.replicas_ = servers.size() >= 3 ? 3 : 1;

  natsOptions* raw = nullptr;
  natsStatus status = natsOptions_Create(&raw);
  NatsOwner<natsOptions, natsOptions_Destroy> options(raw);
  const auto then = [&](auto function) { status = status == NATS_OK ? function() : status; };
  then([&] {
    return natsOptions_SetServers(raw, pointers.data(), static_cast<int>(pointers.size()));
  });
  then([&] { return natsOptions_SetName(raw, "tsomon"); });
  then([&] { return natsOptions_SetTimeout(raw, kWait); });
  then([&] { return natsOptions_SetMaxReconnect(raw, -1); });
  then([&] { return natsOptions_SetReconnectWait(raw, 500); });
  then([&] { return natsOptions_SetFailRequestsOnDisconnect(raw, true); });
  then([&] { return take_credentials(raw, credentials); });
  if (status != NATS_OK) {
    return nats_error(status, made.name_);
  }
  auto connection = connected(std::move(options));
  if (!connection || connection->status != NATS_OK) {
    return tl::unexpected<Error>(Error{ErrorKind::kEnvironment,
                                       printable(made.name_),
                                       {},
                                       connection
                                           ? why_text(connection->status, connection->why)
                                           : "a stop was asked for before the server answered"});
  }
  made.connection_ = std::move(connection->connection);
  jsOptions waits;
  jsOptions_Init(&waits);
  waits.Wait = kWait;
  jsCtx* stream = nullptr;
  status = natsConnection_JetStream(&stream, made.connection_.get(), &waits);
  made.stream_.reset(stream);
  if (status != NATS_OK) {
    return nats_error(status, made.name_);
  }
  if (WorkMeter* const meter = current_meter(); meter != nullptr) {
    const NoSignals quiet;
    made.look_ = std::make_unique<StopLook>(made.connection_.get(), meter);
  }
  return made;
}

std::string Nats::server() const {
  return fmt::format("NATS at {}, {} replica{}", printable(name_), replicas_,
                     replicas_ == 1 ? "" : "s");
}

natsStatus NatsBucket::make() {
  kvConfig config;
  kvConfig_Init(&config);
  config.Bucket = name_.c_str();
  config.History = 1;
  config.Replicas = replicas_;
  config.StorageType = js_FileStorage;
  kvStore* store = nullptr;
  natsStatus status = js_CreateKeyValue(&store, stream_, &config);
  if (status != NATS_OK) {
    // Somebody else was faster.
    status = js_KeyValue(&store, stream_, name_.c_str()) == NATS_OK ? NATS_OK : status;
  }
  if (status == NATS_OK) {
    store_.reset(store);
  }
  return status;
}

Result<void> NatsBucket::open() {
  kvStore* store = nullptr;
  natsStatus status = js_KeyValue(&store, stream_, name_.c_str());
  if (status == NATS_OK) {
    store_.reset(store);
  } else if (status == NATS_NOT_FOUND) {
    status = make();
  }
  return status == NATS_OK ? Result<void>() : nats_error(status, name_);
}

natsStatus NatsBucket::write(const std::function<natsStatus()>& act) {
  const natsStatus status = act();
  kvStore* store = nullptr;
  if (status == NATS_OK || js_KeyValue(&store, stream_, name_.c_str()) != NATS_NOT_FOUND) {
    kvStore_Destroy(store);
    return status;
  }
  return make() == NATS_OK ? act() : status;
}

Result<std::optional<std::string>> NatsBucket::get(const std::string& key) {
  kvEntry* raw = nullptr;
  const natsStatus status = kvStore_Get(&raw, store_.get(), key.c_str());
  const Entry entry(raw);
  if (status == NATS_NOT_FOUND) {
    return std::nullopt;
  }
  if (status != NATS_OK) {
    return nats_error(status, name_);
  }
  return value_of(raw);
}

Result<void> NatsBucket::put(const std::string& key, std::string_view value) {
  const natsStatus status = write([&] {
    return kvStore_Put(nullptr, store_.get(), key.c_str(), value.data(),
                       static_cast<int>(value.size()));
  });
  return status == NATS_OK ? Result<void>() : nats_error(status, name_);
}

Result<bool> NatsBucket::create(const std::string& key, std::string_view value) {
  const natsStatus status = write([&] {
    return kvStore_Create(nullptr, store_.get(), key.c_str(), value.data(),
                          static_cast<int>(value.size()));
  });
  if (status == NATS_OK) {
    return true;
  }
  const auto error = nats_error(status, name_);
  // Whatever was said: what counts is whether there is one.
  const auto there = get(key);
  if (there && *there) {
    return false;
  }
  return error;
}

Result<bool> NatsBucket::has(const std::string& key) {
  const std::string subject = subject_of(key);
  jsOptions options;
  jsOptions_Init(&options);
  options.Stream.Info.SubjectsFilter = subject.c_str();
  jsStreamInfo* raw = nullptr;
  const natsStatus status =
      js_GetStreamInfo(&raw, stream_, stream_name().c_str(), &options, nullptr);
  const NatsOwner<jsStreamInfo, jsStreamInfo_Destroy> info(raw);
  if (status == NATS_NOT_FOUND) {
    return false;  // there is no bucket
  }
  if (status != NATS_OK) {
    return nats_error(status, name_);
  }
  return raw->State.Subjects != nullptr && raw->State.Subjects->Count > 0;
}

// Not as the library does it, which leaves a mark that has() would see.
Result<void> NatsBucket::remove(const std::string& key) {
  const std::string subject = subject_of(key);
  jsOptions options;
  jsOptions_Init(&options);
  options.Stream.Purge.Subject = subject.c_str();
  const natsStatus status = js_PurgeStream(stream_, stream_name().c_str(), &options, nullptr);
  return status == NATS_OK || status == NATS_NOT_FOUND ? Result<void>() : nats_error(status, name_);
}

Result<void> NatsBucket::each(const std::string& keys,
                              const std::function<void(std::string&&, std::string&&)>& each) {
  kvWatchOptions options;
  kvWatchOptions_Init(&options);
  options.IgnoreDeletes = true;
  kvWatcher* raw = nullptr;
  natsStatus status = kvStore_Watch(&raw, store_.get(), keys.c_str(), &options);
  const Watcher watcher(raw);
  while (status == NATS_OK) {
    kvEntry* next = nullptr;
    status = kvWatcher_Next(&next, raw, Nats::kWait);
    const Entry entry(next);
    if (status == NATS_OK && next == nullptr) {
      return {};  // that was all there is now
    }
    if (status == NATS_OK) {
      each(kvEntry_Key(next), value_of(next));
    }
  }
  return nats_error(status, name_);
}

Result<uint64_t> NatsBucket::size() {
  jsStreamInfo* raw = nullptr;
  const natsStatus status =
      js_GetStreamInfo(&raw, stream_, stream_name().c_str(), nullptr, nullptr);
  const NatsOwner<jsStreamInfo, jsStreamInfo_Destroy> info(raw);
  return status == NATS_OK ? Result<uint64_t>(raw->State.Msgs) : nats_error(status, name_);
}

// What a reader that begins there would get.
Result<NatsBucket::Since> NatsBucket::since(std::chrono::microseconds age) {
  jsConsumerConfig config;
  jsConsumerConfig_Init(&config);
  config.AckPolicy = js_AckExplicit;
  config.DeliverPolicy = js_DeliverByStartTime;
  config.OptStartTime = nats_NowInNanoSeconds() - age.count() * 1000;
  config.HeadersOnly = true;
  config.InactiveThreshold = 10'000 * kNatsNanoseconds;
  jsConsumerInfo* consumer = nullptr;
  const natsStatus status =
      js_AddConsumer(&consumer, stream_, stream_name().c_str(), &config, nullptr, nullptr);
  if (status != NATS_OK) {
    return nats_error(status, name_);
  }
  const NatsOwner<jsConsumerInfo, jsConsumerInfo_Destroy> owned(consumer);
  const Since since{consumer->NumPending, consumer->Delivered.Stream + 1};
  js_DeleteConsumer(stream_, stream_name().c_str(), consumer->Name, nullptr, nullptr);
  return since;
}

Result<uint64_t> NatsBucket::remove_older(std::chrono::microseconds age) {
  const auto before = size();
  if (!before) {
    return before;
  }
  const auto kept = since(age);
  if (!kept) {
    return tl::unexpected<Error>(kept.error());
  }
  if (kept->first <= 1) {
    return 0;  // to purge up to nothing would be all
  }
  jsOptions options;
  jsOptions_Init(&options);
  options.Stream.Purge.Sequence = kept->first;
  const natsStatus status = js_PurgeStream(stream_, stream_name().c_str(), &options, nullptr);
  if (status != NATS_OK) {
    return nats_error(status, name_);
  }
  const auto after = size();
  return after ? Result<uint64_t>(*before - std::min(*before, *after)) : after;
}

}  // namespace tsomon::fleet
