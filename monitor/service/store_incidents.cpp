// The store: slices that were recorded about one moment.
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "monitor/service/durable_file.h"
#include "monitor/service/store.h"

namespace tsomon::service {

namespace fs = std::filesystem;

Result<int64_t> Store::begin_incident(const SightingPlace& place, int64_t happened,
                                      const std::string& reason, std::vector<IncidentSlice>* slices,
                                      std::string* problem) {
  int64_t number = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!database_) {
      return became_damaged();
    }
    if (auto done = database_->run("INSERT INTO incidents VALUES (NULL, ?, ?, ?, ?, ?, 0)",
                                   {happened, place.target, place.host, place.build, reason});
        !done) {
      return lost(done.error());
    }
    number = database_->last_row();
  }
  return add_to_incident(number, place, slices, problem).map([&] { return number; });
}

// The files first: rows without one go when the store is opened, and so do files without a row.
Result<void> Store::add_to_incident(int64_t number, const SightingPlace& place,
                                    std::vector<IncidentSlice>* slices, std::string* problem) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!database_) {
    return became_damaged();
  }
  struct Copied {
    IncidentSlice* slice = nullptr;
    int64_t number = 0;
    uint64_t bytes = 0;
  };
  std::vector<Copied> copied;
  for (IncidentSlice& slice : *slices) {
    if (slice.stored != 0) {
      continue;
    }
    const auto bytes = copy_to_disk(slice.capture, slice_file(next_slice_));
    if (bytes) {
      copied.push_back({&slice, next_slice_++, *bytes});
    } else {
      *problem = "a slice of an incident is not kept: " + bytes.error().to_string();
    }
  }
  const auto store_all = [&]() -> Result<void> {
    auto transaction = Transaction::begin(*database_);
    if (!transaction) {
      return tl::unexpected<Error>(transaction.error());
    }
    const auto there =
        database_->number("SELECT count(*) FROM incidents WHERE number = ?", {number});
    if (!there || *there == 0) {
      return there ? Result<void>(fail(ErrorKind::kEnvironment, "the incident is gone"))
                   : Result<void>(tl::unexpected<Error>(there.error()));
    }
    Result<void> done;
    for (size_t i = 0; done && i < copied.size(); ++i) {
      done =
          add_slice(copied[i].number, copied[i].bytes, copied[i].slice->taken, place).and_then([&] {
            return database_->run("INSERT INTO incident_slices VALUES (?, ?)",
                                  {number, copied[i].number});
          });
    }
    for (const IncidentSlice& slice : *slices) {
      if (done && slice.stored != 0) {  // and may be gone
        done = database_->run(
            "INSERT OR IGNORE INTO incident_slices SELECT ?1, number FROM slices WHERE number = ?2",
            {number, slice.stored});
      }
    }
    return done
        .and_then([&] {
          return database_->run("UPDATE incidents SET slices = slices + ? WHERE number = ?",
                                {static_cast<int64_t>(slices->size()), number});
        })
        .and_then([&] { return transaction->commit(); });
  };
  if (const auto done = store_all(); !done) {
    std::error_code error;
    for (const Copied& each : copied) {
      fs::remove(slice_file(each.number), error);
    }
    return lost(done.error());
  }
  for (const Copied& each : copied) {
    each.slice->stored = each.number;
  }
  if (const auto room = evict(); !room) {
    *problem = room.error().to_string();
  }
  return {};
}

Result<std::vector<Incident>> Store::incidents() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!database_) {
    return became_damaged();
  }
  std::vector<Incident> list;
  auto done = database_->run(
      "SELECT number, happened, target, host, build, reason, slices FROM incidents ORDER BY "
      "happened DESC, number DESC",
      {}, [&](const DatabaseRow& row) {
        Incident& one = list.emplace_back();
        one.number = row.number(0);
        one.happened = row.number(1);
        one.place = {row.text(2), row.text(3), row.text(4)};
        one.reason = row.text(5);
        one.slices = static_cast<uint64_t>(row.number(6));
      });
  for (size_t i = 0; done && i < list.size(); ++i) {
    done = database_->run(
        "SELECT slice FROM incident_slices JOIN slices ON number = slice WHERE incident = ? ORDER "
        "BY taken, slice",
        {list[i].number}, [&](const DatabaseRow& row) {
          list[i].files.push_back(slice_file(row.number(0)).string());
        });
  }
  return done.map([&] { return std::move(list); });
}

}  // namespace tsomon::service
