#include "monitor/fleet/nats_fleet.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "monitor/fleet/nats.h"
#include "monitor/fleet/nats_queue.h"
#include "monitor/report/json_fields.h"

namespace tsomon::fleet {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;

constexpr milliseconds kTryElsewhere{2'000};

// What happened to work before, where it was not taken for the first time.
struct Tries {
  uint64_t returned = 0;  // that were none
  std::string reason;

  static Tries read(const std::string& text) {
    const Json object = Json::parse(text, nullptr, false);
    return object.is_object()
               ? Tries{report::number_of(object, "returned"), report::text_of(object, "reason")}
               : Tries{};
  }
  std::string text() const {
    return Json({{"returned", returned}, {"reason", reason}})
        .dump(-1, ' ', false, Json::error_handler_t::replace);
  }
};

struct Parked {
  ParkedWork work;
  bool needs_content = false;

  static Parked read(const std::string& id, const std::string& text) {
    const Json object = Json::parse(text, nullptr, false);
    return object.is_object()
               ? Parked{{id, report::text_of(object, "tenant"), report::text_of(object, "name"),
                         report::text_of(object, "reason")},
                        report::flag_of(object, "needs_content", false)}
               : Parked{{id, "", "", "what was written about it is damaged"}, false};
  }
  std::string text() const {
    return Json({{"tenant", work.tenant},
                 {"name", work.name},
                 {"reason", work.reason},
                 {"needs_content", needs_content}})
        .dump(-1, ' ', false, Json::error_handler_t::replace);
  }
};

class NatsFleet final : public Fleet {
 public:
  NatsFleet(Nats server, NatsBucket verdicts, NatsBucket sightings, NatsBucket parked,
            NatsBucket tries, NatsBucket chunks, NatsBucket canaries)
      : server_(std::move(server)),
        verdicts_(std::move(verdicts)),
        sightings_(std::move(sightings)),
        parked_(std::move(parked)),
        tries_(std::move(tries)),
        chunks_(std::move(chunks)),
        canaries_(std::move(canaries)),
        queue_(server_) {}

  Result<State> put(const Work& work, bool again) override {
    const auto message = work_message(work);
    if (!message) {
      return error_of(message);
    }
    const auto before = standing(work.tenant, work.id);
    if (!before) {
      return error_of(before);
    }
    if (before->state == State::kParked) {
      if (!again && !before->needs_content) {
        return before->state;
      }
      if (const auto gone = forget_failures(work.id); !gone) {
        return error_of(gone);
      }
    } else if (before->state != State::kUnknown) {
      return before->state;
    }
    if (const auto put = queue_.publish(work.tenant, work.id, *message, kMostWaiting); !put) {
      const auto now = standing(work.tenant, work.id);
      if (now && now->state != State::kUnknown) {
        return now->state;  // somebody else was faster
      }
      return error_of(put);
    }
    return before->state;
  }

  Result<std::optional<Taken>> take(const std::string& worker, milliseconds lease) override {
    for (;;) {
      const auto delivery = queue_.next(lease);
      if (!delivery) {
        return error_of(delivery);
      }
      if (!*delivery) {
        return std::nullopt;
      }
      auto taken = read_delivery(**delivery, worker);
      if (!taken || *taken) {
        return taken;
      }
    }
  }

  Result<bool> extend(const Taken& taken, milliseconds lease) override {
    return queue_.extend(number_of(taken), lease);
  }

  Result<bool> done(const Taken& taken, const Verdict& verdict,
                    const std::vector<Sighting>& sightings) override {
    for (const Sighting& each : sightings) {
      const auto put = sightings_.create(
          fmt::format("{}.{}.{}", each.found.fingerprint, each.found.property, each.work),
          sighting_text(each));
      if (!put) {
        return error_of(put);
      }
    }
    const auto created = verdicts_.create(taken.work.id, verdict_text(verdict));
    if (!created) {
      return error_of(created);
    }
    if (const auto gone = forget_failures(taken.work.id); !gone) {
      return error_of(gone);
    }
    if (const auto acknowledged = queue_.acknowledge(number_of(taken)); !acknowledged) {
      return error_of(acknowledged);
    }
    return *created;
  }

  Result<void> park(const Taken& taken, const std::string& /*worker*/, Parking how,
                    const std::string& reason) override {
    const bool no_try = how == Parking::kBack || how == Parking::kLater;
    if (how == Parking::kAgain || no_try) {
      const auto before = tries_.get(taken.work.id);
      if (!before) {
        return error_of(before);
      }
      Tries tries = *before ? Tries::read(**before) : Tries{};
      tries.returned += no_try ? 1 : 0;
      tries.reason = reason;
      if (const auto put = tries_.put(taken.work.id, tries.text()); !put) {
        return put;
      }
      return queue_.give_back(number_of(taken), how == Parking::kBack    ? milliseconds(0)
                                                : how == Parking::kLater ? kLaterPause
                                                                         : kTryElsewhere);
    }
    const Parked parked{{taken.work.id, taken.work.tenant, taken.work.content.name, reason},
                        how == Parking::kNeedsContent};
    if (const auto put = parked_.put(taken.work.id, parked.text()); !put) {
      return put;
    }
    // Whoever has it since its lease ran out here may have judged it. done() writes the verdict before it forgets what was parked,
    // so one of the two sees the other.
    const auto is_done = verdicts_.has(taken.work.id);
    if (!is_done) {
      return error_of(is_done);
    }
    if (*is_done) {
      if (const auto gone = forget_failures(taken.work.id); !gone) {
        return gone;
      }
    }
    return queue_.acknowledge(number_of(taken));
  }

  Result<Standing> standing(const std::string& tenant, const std::string& id) override {
    Standing standing;
    const auto is_done = verdicts_.has(id);
    const auto waits = is_done && !*is_done ? queue_.has(tenant, id) : is_done;
    if (!waits) {
      return error_of(waits);
    }
    if (*waits) {
      standing.state = *is_done ? State::kDone : State::kWaiting;  // or somebody has it
      return standing;
    }
    const auto parked = parked_.get(id);
    if (!parked) {
      return error_of(parked);
    }
    if (*parked) {
      const Parked read = Parked::read(id, **parked);
      standing.state = State::kParked;
      standing.reason = read.work.reason;
      standing.needs_content = read.needs_content;
    }
    return standing;
  }

  Result<std::optional<Verdict>> verdict(const std::string& id) override {
    const auto text = verdicts_.get(id);
    if (!text) {
      return error_of(text);
    }
    if (!*text) {
      return std::nullopt;
    }
    auto verdict = read_verdict(**text);
    if (!verdict) {
      return error_of(verdict);
    }
    return std::move(*verdict);
  }

  Result<std::vector<std::string>> missing(const std::vector<std::string>& chunks) override {
    std::vector<std::string> missing;
    for (const std::string& digest : chunks) {
      const auto there = chunks_.has(digest);
      if (!there) {
        return error_of(there);
      }
      if (!*there) {
        missing.push_back(digest);
      }
    }
    return missing;
  }

  Result<void> put_chunk(const std::string& digest, std::string_view bytes) override {
    return chunks_.put(digest, bytes);
  }
  Result<std::optional<std::string>> chunk(const std::string& digest) override {
    return chunks_.get(digest);
  }
  Result<void> forget_chunk(const std::string& digest) override { return chunks_.remove(digest); }

  Result<void> put_canary(const Canary& canary) override {
    const auto message = canary_message(canary);
    return message ? canaries_.put(name_of(canary), *message) : error_of(message);
  }
  Result<void> canaries(const std::function<void(Canary&&)>& each) override {
    return for_each_message(&canaries_, "", read_canary, each);
  }

  Result<FleetStatus> status() override {
    FleetStatus status;
    status.server = server_.server();
    const auto counts = queue_.counts();
    if (!counts) {
      return error_of(counts);
    }
    for (const auto& [tenant, one] : *counts) {
      status.running += one.running;
      status.waiting += one.waiting;
      if (one.waiting != 0) {
        status.tenants[tenant] = one.waiting;
      }
    }
    std::vector<ParkedWork> listed;
    const auto parked = parked_.each(">", [&](std::string&& id, std::string&& text) {
      ++status.parked;
      if (listed.size() < kMostListed) {
        listed.push_back(Parked::read(id, text).work);
      }
    });
    if (!parked) {
      return error_of(parked);
    }
    for (ParkedWork& each : listed) {
      // A verdict counts, though whoever gave the work up was killed before he saw it.
      const auto is_done = verdicts_.has(each.id);
      if (!is_done) {
        return error_of(is_done);
      }
      if (*is_done) {
        --status.parked;
      } else {
        status.parked_work.push_back(std::move(each));
      }
    }
    const auto done = verdicts_.size();
    const auto lately = done ? verdicts_.since(std::chrono::minutes(1)) : error_of(done);
    if (!done) {
      return error_of(done);
    }
    status.done = *done;
    status.done_lately = lately ? lately->count : 0;  // it is not worth an error
    return status;
  }

  Result<void> sightings(const std::string& fingerprint,
                         const std::function<void(Sighting&&)>& each) override {
    return for_each_message(&sightings_, fingerprint, read_sighting, each);
  }

  Result<Pruned> prune(std::chrono::microseconds chunks,
                       std::chrono::microseconds results) override {
    Pruned pruned;
    // A verdict's sightings came shortly before it.
    constexpr std::chrono::minutes kMargin{1};
    const std::tuple<NatsBucket*, std::chrono::microseconds, uint64_t*> kAges[] = {
        {&verdicts_, results, &pruned.verdicts},
        {&sightings_, results + kMargin, &pruned.sightings},
        {&parked_, results, &pruned.parked},
        {&tries_, results, nullptr},
        {&canaries_, results, &pruned.canaries},
        {&chunks_, chunks, &pruned.chunks}};
    for (const auto& [bucket, age, count] : kAges) {
      const auto removed = bucket->remove_older(age);
      if (!removed) {
        return error_of(removed);
      }
      if (count != nullptr) {
        *count = *removed;
      }
    }
    return pruned;
  }

 private:
  // Those whose keys begin so. What cannot be read is an error, once all others were given.
  template <typename Message>
  static Result<void> for_each_message(NatsBucket* bucket, const std::string& prefix,
                                       Result<Message> (*read)(std::string_view),
                                       const std::function<void(Message&&)>& each) {
    Result<void> done;
    const auto all = bucket->each(">", [&](std::string&& key, std::string&& text) {
      if (!key.starts_with(prefix)) {
        return;
      }
      auto message = read(text);
      if (message) {
        each(std::move(*message));
      } else if (done) {
        done = error_of(message);
      }
    });
    return all ? done : all;
  }

  static uint64_t number_of(const Taken& taken) {
    return std::strtoull(taken.lease.c_str(), nullptr, 10);
  }

  // None: it is settled.
  Result<std::optional<Taken>> read_delivery(const NatsDelivery& delivery,
                                             const std::string& worker) {
    Taken taken;
    taken.tries = delivery.times;
    taken.lease = std::to_string(delivery.number);
    auto work = read_work(delivery.text);
    if (!work || work->id != delivery.id || work->tenant != delivery.tenant) {
      taken.work.id = delivery.id;
      taken.work.tenant = delivery.tenant;
      const auto parked = park(taken, worker, Parking::kForGood,
                               work ? "its subject is another one" : work.error().message);
      return parked ? Result<std::optional<Taken>>(std::nullopt) : error_of(parked);
    }
    taken.work = std::move(*work);
    const auto is_done = verdicts_.has(taken.work.id);
    if (!is_done) {
      return error_of(is_done);
    }
    if (*is_done) {
      // Its findings came before it. What comes behind it may be missing.
      const auto gone = forget_failures(taken.work.id);
      const auto settled = gone ? queue_.acknowledge(delivery.number) : gone;
      return settled ? Result<std::optional<Taken>>(std::nullopt) : error_of(settled);
    }
    if (taken.tries > 1) {
      const auto before = tries_.get(taken.work.id);
      if (!before) {
        return error_of(before);
      }
      taken.tries -= *before ? std::min(Tries::read(**before).returned, taken.tries - 1) : 0;
    }
    return taken;
  }

  Result<void> forget_failures(const std::string& id) {
    for (NatsBucket* bucket : {&parked_, &tries_}) {
      if (const auto gone = bucket->remove(id); !gone) {
        return gone;
      }
    }
    return {};
  }

  Nats server_;
  NatsBucket verdicts_;
  NatsBucket sightings_;
  NatsBucket parked_;
  NatsBucket tries_;
  NatsBucket chunks_;
  NatsBucket canaries_;
  NatsQueue queue_;
};

}  // namespace

Result<std::unique_ptr<Fleet>> open_nats_fleet(const std::string& url,
                                               const Credentials& credentials) {
  auto server = Nats::connect(url, credentials);
  if (!server) {
    return error_of(server);
  }
  std::vector<NatsBucket> buckets;
  for (const char* name : {"TSOMON_VERDICT", "TSOMON_SIGHTING", "TSOMON_PARKED", "TSOMON_TRY",
                           "TSOMON_CHUNK", "TSOMON_CANARY"}) {
    NatsBucket bucket(name, server->replicas(), server->stream());
    if (const auto opened = bucket.open(); !opened) {
      return error_of(opened);
    }
    buckets.push_back(std::move(bucket));
  }
  return std::make_unique<NatsFleet>(
      std::move(*server), std::move(buckets[0]), std::move(buckets[1]), std::move(buckets[2]),
      std::move(buckets[3]), std::move(buckets[4]), std::move(buckets[5]));
}

}  // namespace tsomon::fleet
