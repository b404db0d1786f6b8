#include "monitor/fleet/nats_queue.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "monitor/fleet/work.h"

namespace tsomon::fleet {
namespace {

using std::chrono::milliseconds;

constexpr const char* kWorkStreams = "TSOMON_WORK_";
constexpr const char* kConsumer = "workers";
constexpr milliseconds kLookForTenants{2'000};
constexpr milliseconds kLookForForgotten{1'000};
constexpr milliseconds kLookWhenBusy{30'000};
// That a message has to come once it was asked for: without it the library does not wait for what is on its way.
constexpr milliseconds kNext{10};

using StreamInfo = NatsOwner<jsStreamInfo, jsStreamInfo_Destroy>;
using ConsumerInfo = NatsOwner<jsConsumerInfo, jsConsumerInfo_Destroy>;

std::string stream_of(const std::string& tenant) { return kWorkStreams + tenant; }
std::string subject_of(const std::string& tenant, const std::string& id) {
  return fmt::format("tsomon.work.{}.{}", tenant, id);
}

}  // namespace

Result<void> NatsQueue::publish(const std::string& tenant, const std::string& id,
                                const std::string& text, uint64_t most) {
  natsStatus status = NATS_OK;
  for (int time = 0; time < 2; ++time) {
    if (const auto made = make_stream(tenant, most); !made) {
      return made;
    }
    status = js_Publish(nullptr, stream_, subject_of(tenant, id).c_str(), text.data(),
                        static_cast<int>(text.size()), nullptr, nullptr);
    if (status == NATS_OK) {
      return {};
    }
    made_.clear();  // the server may have lost its stream
  }
  return nats_error(status, stream_of(tenant));
}

Result<bool> NatsQueue::has(const std::string& tenant, const std::string& id) {
  natsMsg* raw = nullptr;
  jsErrCode code{};
  const natsStatus status = js_GetLastMsg(&raw, stream_, stream_of(tenant).c_str(),
                                          subject_of(tenant, id).c_str(), nullptr, &code);
  const NatsMessage message(raw);
  if (status == NATS_NOT_FOUND || code == JSStreamNotFoundErr) {
    return false;
  }
  if (status != NATS_OK) {
    return nats_error(status, stream_of(tenant));
  }
  return true;
}

Result<std::map<std::string, NatsQueue::Counts>> NatsQueue::counts() {
  const auto all = tenants();
  if (!all) {
    return error_of(all);
  }
  std::map<std::string, Counts> counts;
  for (const std::string& tenant : *all) {
    const std::string name = stream_of(tenant);
    jsStreamInfo* raw = nullptr;
    natsStatus status = js_GetStreamInfo(&raw, stream_, name.c_str(), nullptr, nullptr);
    const StreamInfo info(raw);
    if (status != NATS_OK) {
      return nats_error(status, name);
    }
    jsConsumerInfo* consumer = nullptr;
    status = js_GetConsumerInfo(&consumer, stream_, name.c_str(), kConsumer, nullptr, nullptr);
    const ConsumerInfo owned(consumer);
    Counts& one = counts[tenant];
    one.running = status == NATS_OK
                      ? std::min(raw->State.Msgs, static_cast<uint64_t>(consumer->NumAckPending))
                      : 0;
    one.waiting = raw->State.Msgs - one.running;
  }
  return counts;
}

Result<std::optional<NatsDelivery>> NatsQueue::next(milliseconds lease) {
  message_.reset();  // what was not settled comes again when its lease is over
  if (Clock::now() - looked_for_forgotten_ >= kLookWhenBusy) {
    // One tenant's is not to wait until all others have nothing. What is wrong is told when there is nothing else to do.
    (void)look_for_forgotten();
  }
  if (const auto known = look_for_tenants(lease); !known) {
    return error_of(known);
  }
  for (size_t i = queues_.size(); i > 0 && !queues_.empty(); --i) {
    turn_ = (turn_ + 1) % queues_.size();
    auto delivery = next_of(&queues_[turn_]);
    if (!delivery || *delivery) {
      return delivery;
    }
  }
  if (const auto looked = look_for_forgotten(); !looked) {
    return error_of(looked);
  }
  return std::nullopt;
}

Result<std::optional<NatsDelivery>> NatsQueue::next_of(Subscription* queue) {
  jsFetchRequest request;
  jsFetchRequest_Init(&request);
  request.Batch = 1;
  request.NoWait = true;
  request.Expires = kNext.count() * kNatsNanoseconds;
  natsMsgList list{};
  natsStatus status = natsSubscription_FetchRequest(&list, queue->subscription.get(), &request);
  if (status == NATS_TIMEOUT || status == NATS_NOT_FOUND) {
    return std::nullopt;
  }
  if (status != NATS_OK) {
    const auto error = nats_error(status, stream_of(queue->tenant));
    // The stream may be another one now.
    queues_.erase(queues_.begin() + (queue - queues_.data()));
    looked_ = {};
    return error;
  }
  NatsMessage message(list.Count > 0 ? list.Msgs[0] : nullptr);
  if (list.Count > 0) {
    list.Msgs[0] = nullptr;
  }
  natsMsgList_Destroy(&list);
  if (message == nullptr) {
    return std::nullopt;
  }
  jsMsgMetaData* raw = nullptr;
  status = natsMsg_GetMetaData(&raw, message.get());
  const NatsOwner<jsMsgMetaData, jsMsgMetaData_Destroy> data(raw);
  if (status != NATS_OK) {
    return nats_error(status, stream_of(queue->tenant));
  }
  NatsDelivery delivery;
  delivery.number = ++number_;
  delivery.tenant = queue->tenant;
  const std::string subject = natsMsg_GetSubject(message.get());
  delivery.id = subject.substr(subject.rfind('.') + 1);
  delivery.text.assign(natsMsg_GetData(message.get()),
                       static_cast<size_t>(natsMsg_GetDataLength(message.get())));
  delivery.times = raw->NumDelivered;
  message_ = std::move(message);
  extended_ = Clock::now();
  return delivery;
}

Result<bool> NatsQueue::extend(uint64_t number, milliseconds lease) {
  if (number != number_ || message_ == nullptr || Clock::now() - extended_ > lease) {
    return false;
  }
  if (const natsStatus status = natsMsg_InProgress(message_.get(), nullptr); status != NATS_OK) {
    return nats_error(status, "lease");
  }
  extended_ = Clock::now();
  return true;
}

Result<void> NatsQueue::acknowledge(uint64_t number) {
  if (number != number_ || message_ == nullptr) {
    return {};
  }
  const natsStatus status = natsMsg_AckSync(message_.get(), nullptr, nullptr);
  if (status != NATS_OK) {
    return nats_error(status, "acknowledgement");
  }
  message_.reset();
  return {};
}

Result<void> NatsQueue::give_back(uint64_t number, milliseconds wait) {
  if (number != number_ || message_ == nullptr) {
    return {};
  }
  const NatsMessage message = std::move(message_);
  const natsStatus status = natsMsg_NakWithDelay(message.get(), wait.count(), nullptr);
  return status == NATS_OK ? Result<void>() : nats_error(status, "lease");
}

Result<void> NatsQueue::make_stream(const std::string& tenant, uint64_t most) {
  if (std::find(made_.begin(), made_.end(), tenant) != made_.end()) {
    return {};
  }
  const std::string name = stream_of(tenant);
  const std::string subjects = subject_of(tenant, "*");
  const char* const list[] = {subjects.c_str()};
  jsStreamInfo* raw = nullptr;
  natsStatus status = js_GetStreamInfo(&raw, stream_, name.c_str(), nullptr, nullptr);
  if (status == NATS_NOT_FOUND) {
    jsStreamConfig config;
    jsStreamConfig_Init(&config);
    config.Name = name.c_str();
    config.Subjects = const_cast<const char**>(list);
    config.SubjectsLen = 1;
    config.Retention = js_WorkQueuePolicy;
    config.Storage = js_FileStorage;
    config.Replicas = replicas_;
    config.MaxMsgs = static_cast<int64_t>(most);
    config.MaxMsgsPerSubject = 1;
    config.Discard = js_DiscardNew;
    config.DiscardNewPerSubject = true;
    status = js_AddStream(&raw, stream_, &config, nullptr, nullptr);
  }
  const StreamInfo info(raw);
  if (status != NATS_OK) {
    return nats_error(status, name);
  }
  made_.push_back(tenant);
  return {};
}

Result<std::vector<std::string>> NatsQueue::tenants() {
  jsStreamNamesList* raw = nullptr;
  const natsStatus status = js_StreamNames(&raw, stream_, nullptr, nullptr);
  const NatsOwner<jsStreamNamesList, jsStreamNamesList_Destroy> list(raw);
  if (status == NATS_NOT_FOUND) {
    return std::vector<std::string>();
  }
  if (status != NATS_OK) {
    return nats_error(status, "streams");
  }
  std::vector<std::string> tenants;
  for (int i = 0; i < raw->Count; ++i) {
    const std::string_view name = raw->List[i];
    if (name.starts_with(kWorkStreams)) {
      tenants.emplace_back(name.substr(std::string_view(kWorkStreams).size()));
    }
  }
  std::sort(tenants.begin(), tenants.end());
  return tenants;
}

Result<void> NatsQueue::look_for_tenants(milliseconds lease) {
  const auto now = Clock::now();
  if (now - looked_ < kLookForTenants) {
    return {};
  }
  const auto all = tenants();
  if (!all) {
    return error_of(all);
  }
  for (const std::string& tenant : *all) {
    const bool known = std::any_of(queues_.begin(), queues_.end(), [&](const Subscription& queue) {
      return queue.tenant == tenant;
    });
    if (!known) {
      if (const auto begun = subscribe(tenant, lease); !begun) {
        return begun;
      }
    }
  }
  looked_ = now;
  return {};
}

// Servers that were killed may have work again that they give to nobody: the consumer remembers that it was acknowledged, the
// stream does not; or of three servers the one that leads the consumer knows of no message in the stream, and says so for ever
// (both seen with nats-server 2.9). A new consumer gives out all that is there; what has a verdict is settled then.
Result<void> NatsQueue::look_for_forgotten() {
  const auto now = Clock::now();
  if (now - looked_for_forgotten_ < kLookForForgotten) {
    return {};
  }
  looked_for_forgotten_ = now;
  for (const Subscription& queue : queues_) {
    const std::string name = stream_of(queue.tenant);
    jsConsumerInfo* consumer = nullptr;
    jsStreamInfo* stream = nullptr;
    natsStatus status =
        js_GetConsumerInfo(&consumer, stream_, name.c_str(), kConsumer, nullptr, nullptr);
    const ConsumerInfo owned_consumer(consumer);
    status = status == NATS_OK ? js_GetStreamInfo(&stream, stream_, name.c_str(), nullptr, nullptr)
                               : status;
    const StreamInfo owned_stream(stream);
    if (status != NATS_OK) {
      return nats_error(status, name);
    }
    const uint64_t first = stream->State.FirstSeq;
    const bool knows_first = first > consumer->Delivered.Stream ? consumer->NumPending != 0
                                                                : consumer->NumAckPending != 0;
    const bool forgotten =
        stream->State.Msgs != 0 && (consumer->AckFloor.Stream >= first || !knows_first);
    // Twice, with the same message: it was there when the consumer said what it knows, and long before. An acknowledgement may be
    // on its way into the stream, or new work to the consumer.
    if (forgotten && forgotten_[queue.tenant] == first) {
      js_DeleteConsumer(stream_, name.c_str(), kConsumer, nullptr, nullptr);
      forgotten_.clear();
      queues_.clear();
      looked_ = {};
      return {};
    }
    forgotten_[queue.tenant] = forgotten ? first : 0;
  }
  return {};
}

Result<void> NatsQueue::subscribe(const std::string& tenant, milliseconds lease) {
  jsConsumerConfig config;
  jsConsumerConfig_Init(&config);
  config.Durable = kConsumer;
  config.AckPolicy = js_AckExplicit;
  config.AckWait = lease.count() * kNatsNanoseconds;
  config.MaxAckPending = -1;
  const std::string stream = stream_of(tenant);
  jsConsumerInfo* raw = nullptr;
  natsStatus status = js_AddConsumer(&raw, stream_, stream.c_str(), &config, nullptr, nullptr);
  if (status != NATS_OK) {
    // Another worker's had another lease: the last one's counts.
    status = js_UpdateConsumer(&raw, stream_, stream.c_str(), &config, nullptr, nullptr);
  }
  const ConsumerInfo info(raw);
  if (status != NATS_OK) {
    return nats_error(status, stream);
  }
  jsSubOptions bound;
  jsSubOptions_Init(&bound);
  bound.Stream = stream.c_str();
  bound.Consumer = kConsumer;
  natsSubscription* subscription = nullptr;
  status = js_PullSubscribe(&subscription, stream_, subject_of(tenant, "*").c_str(), kConsumer,
                            nullptr, &bound, nullptr);
  if (status != NATS_OK) {
    return nats_error(status, stream);
  }
  queues_.push_back({tenant, NatsSubscription(subscription)});
  return {};
}

}  // namespace tsomon::fleet
