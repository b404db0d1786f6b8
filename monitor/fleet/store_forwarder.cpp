#include "monitor/fleet/store_forwarder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "monitor/service/durable_file.h"
#include "monitor/service/status_client.h"
#include "monitor/service/store.h"
#include "monitor/service/system_time.h"

namespace tsomon::fleet {
namespace {

namespace fs = std::filesystem;

// Of "slices/17.tsomon"; 0: it is none.
int64_t number_of_slice(const std::string& file) {
  const std::string stem = fs::path(file).stem().string();
  int64_t number = 0;
  const auto end = std::from_chars(stem.data(), stem.data() + stem.size(), number);
  return end.ec == std::errc() && end.ptr == stem.data() + stem.size() ? number : 0;
}

bool is_there(const std::string& file) {
  std::error_code error;
  return fs::exists(file, error);
}

}  // namespace

StoreForwarder::StoreForwarder(Fleet& fleet, std::string store, SubmissionOptions options)
    : fleet_(fleet), store_(std::move(store)), options_(std::move(options)) {
  std::ifstream file(mark_file());
  file >> settled_;
  if (!file || settled_ < 0) {
    settled_ = 0;
  }
  sent_ = settled_;
}

Result<StoreForwarder::Slices> StoreForwarder::slices_to_send() const {
  const auto store = service::Store::visit(store_);
  if (!store) {
    return error_of(store);
  }
  const auto findings = (*store)->findings();
  if (!findings) {
    return error_of(findings);
  }
  Slices slices;
  for (const service::KeptFinding& finding : *findings) {
    for (const std::string& file : finding.files) {
      const int64_t number = number_of_slice(file);
      if (number > sent_) {
        slices.emplace(number, file);
      }
    }
  }
  return slices;
}

Result<bool> StoreForwarder::step(const std::function<bool()>& stopped) {
  ids_.clear();
  const auto slices = slices_to_send();
  if (!slices) {
    return error_of(slices);
  }
  bool all = true;
  for (const auto& [number, file] : *slices) {
    if (stopped() || pending_.size() >= kMostPending) {
      all = false;
      break;
    }
    if (const auto done = send(number, file, false); !done) {
      return error_of(done);
    }
    sent_ = number;
  }
  for (auto each = pending_.begin(); each != pending_.end() && !stopped();) {
    const auto waits = is_pending(each->first, each->second.first);
    if (!waits) {
      return error_of(waits);
    }
    each = *waits ? std::next(each) : pending_.erase(each);
  }
  if (const auto kept = keep_mark(); !kept) {
    return error_of(kept);
  }
  if (const auto told = tell_counters(); !told) {
    return error_of(told);
  }
  return all && pending_.empty();
}

// A store that no service keeps now is sent all the same.
Result<void> StoreForwarder::tell_counters() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_canary_) {
    return {};
  }
  const auto status = service::ask_status(store_);
  next_canary_ = now + kBetweenCanaries;
  if (!status) {
    return {};
  }
  return fleet_.put_canary(
      {options_.tenant, options_.host, store_, service::now_in_microseconds(), *status});
}

Result<void> StoreForwarder::send(int64_t number, const std::string& file, bool again) {
  if (!is_there(file)) {
    ++counters_.lost;  // it went since the store was asked
    return {};
  }
  const auto submitted = submit(fleet_, file, options_, again);
  if (!submitted) {
    // What cannot be read will not be better; a server may come back.
    if (submitted.error().kind == ErrorKind::kEnvironment && is_there(file)) {
      return error_of(submitted);
    }
    ++counters_.lost;
    return {};
  }
  ++counters_.submitted;
  std::vector<std::string> work;
  for (const auto& [id, before] : submitted->work) {
    work.push_back(id);
    ids_.push_back(id);
  }
  pending_[number] = {file, std::move(work)};
  return {};
}

Result<bool> StoreForwarder::is_pending(int64_t number, const std::string& file) {
  bool waits = false;
  bool parked = false;
  bool lost = false;
  for (const std::string& id : pending_[number].second) {
    const auto standing = fleet_.standing(options_.tenant, id);
    if (!standing) {
      return error_of(standing);
    }
    const bool again = standing->state == State::kUnknown || standing->needs_content;
    waits = waits || standing->state == State::kWaiting || standing->state == State::kRunning;
    parked = parked || (standing->state == State::kParked && !again);
    lost = lost || again;
  }
  if (lost) {
    if (!is_there(file)) {
      ++counters_.lost;
      return false;
    }
    if (const auto done = send(number, file, false); !done) {
      return error_of(done);
    }
    return true;
  }
  if (!waits) {
    ++(parked ? counters_.parked : counters_.judged);
  }
  return waits;
}

Result<void> StoreForwarder::keep_mark() {
  const int64_t settled = pending_.empty() ? sent_ : pending_.begin()->first - 1;
  if (settled == settled_) {
    return {};
  }
  settled_ = settled;
  return service::replace_file(mark_file(), std::to_string(settled) + "\n");
}

}  // namespace tsomon::fleet
