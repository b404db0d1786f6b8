// The store: what was seen in a slice goes in.
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "monitor/service/durable_file.h"
#include "monitor/service/store.h"

namespace tsomon::service {

namespace fs = std::filesystem;

// Of a database that became damaged nothing is asked any more.
tl::unexpected<Error> Store::lost(const Error& error) {
  if (error.kind == ErrorKind::kDamaged) {
    database_.reset();
  }
  return tl::unexpected<Error>(error);
}

Result<void> Store::add_slice(int64_t number, uint64_t bytes, int64_t taken,
                              const SightingPlace& place) {
  return database_->run("INSERT INTO slices VALUES (?, ?, ?, ?, ?)",
                        {number, static_cast<int64_t>(bytes), taken, place.target, place.build});
}

Result<Store::Added> Store::add(const SightingPlace& place, int64_t time,
                                const std::vector<SeenFinding>& findings, int capture) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Added added;
  if (!database_) {
    // It was damaged while it was used.
    if (const auto opened = open_or_replace(); !opened) {
      return tl::unexpected<Error>(opened.error());
    }
    added.problem = fmt::format("{}", fmt::join(std::exchange(notes_, {}), "; "));
  }
  const auto wanted = capture >= 0 ? wants_slice(findings) : Result<bool>(false);
  if (!wanted) {
    return lost(wanted.error());
  }
  int64_t slice = 0;
  uint64_t bytes = 0;
  if (*wanted) {
    const auto copied = copy_to_disk(capture, slice_file(next_slice_));
    if (copied) {
      slice = next_slice_++;
      bytes = *copied;
    } else {
      added.problem = "a slice is not kept: " + copied.error().to_string();
    }
  }
  const auto store_all = [&]() -> Result<void> {
    auto transaction = Transaction::begin(*database_);
    if (!transaction) {
      return tl::unexpected<Error>(transaction.error());
    }
    if (slice != 0) {
      if (auto done = add_slice(slice, bytes, time, place); !done) {
        return done;
      }
    }
    for (const SeenFinding& finding : findings) {
      bool is_new = false;
      const auto number = add_finding(place, time, finding, &is_new);
      if (!number) {
        return tl::unexpected<Error>(number.error());
      }
      added.is_new.push_back(is_new);
      if (slice != 0) {
        if (auto done =
                database_->run("INSERT OR IGNORE INTO shown VALUES (?, ?)", {*number, slice});
            !done) {
          return done;
        }
      }
    }
    return transaction->commit();
  };
  if (const auto done = store_all(); !done) {
    if (slice != 0) {
      std::error_code error;
      fs::remove(slice_file(slice), error);
    }
    return lost(done.error());
  }
  added.slice = slice;
  // What was found is kept, whether there is room again or not.
  if (const auto room = evict(); !room && added.problem.empty()) {
    added.problem = room.error().to_string();
  }
  return added;
}

Result<bool> Store::wants_slice(const std::vector<SeenFinding>& findings) {
  for (const SeenFinding& finding : findings) {
    const auto kept = database_->number(
        "SELECT count(*) FROM shown WHERE finding = (SELECT number FROM findings WHERE fingerprint "
        "= ? AND property = ?)",
        {finding.fingerprint, finding.property});
    if (!kept) {
      return tl::unexpected<Error>(kept.error());
    }
    if (*kept < static_cast<int64_t>(kSlicesOfFinding)) {
      return true;
    }
  }
  return false;
}

// Its number.
Result<int64_t> Store::add_finding(const SightingPlace& place, int64_t time,
                                   const SeenFinding& finding, bool* is_new) {
  const auto count = static_cast<int64_t>(finding.count);
  const int64_t definite = finding.definite ? 1 : 0;
  const auto known =
      database_->number("SELECT number FROM findings WHERE fingerprint = ? AND property = ?",
                        {finding.fingerprint, finding.property});
  if (!known) {
    return tl::unexpected<Error>(known.error());
  }
  *is_new = *known == 0;
  int64_t number = *known;
  Result<void> done;
  if (*is_new) {
    done = database_->run("INSERT INTO findings VALUES (NULL, ?, ?, ?, ?, 1, ?, ?, ?, ?)",
                          {finding.fingerprint, finding.property, definite, count, time, time,
                           finding.summary, finding.json});
    number = database_->last_row();
  } else {
    // What is on the right are the values before.
    done = database_->run(
        "UPDATE findings SET count = count + ?1, slices = slices + 1, "
        "first_seen = min(first_seen, ?2), last_seen = max(last_seen, ?2), "
        "summary = iif((?3, -length(?4)) > (definite, -length(json)), ?5, summary), "
        "json = iif((?3, -length(?4)) > (definite, -length(json)), ?4, json), "
        "definite = max(definite, ?3) WHERE number = ?6",
        {count, time, definite, finding.json, finding.summary, number});
  }
  if (done && *is_new && finding.predicted) {
    done = database_->run("INSERT INTO predicted VALUES (?)", {number});
  }
  if (!done) {
    return tl::unexpected<Error>(done.error());
  }
  return database_
      ->run(
          "INSERT INTO sightings VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6) ON CONFLICT DO UPDATE SET "
          "count = count + ?5, first_seen = min(first_seen, ?6), last_seen = max(last_seen, ?6)",
          {number, place.target, place.host, place.build, count, time})
      .map([&] { return number; });
}

}  // namespace tsomon::service
