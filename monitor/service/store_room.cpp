// The store: what it takes, and what goes when that is too much.
#include <algorithm>
#include <system_error>

#include "monitor/service/store.h"
#include "monitor/service/store_parts.h"

namespace tsomon::service {

namespace fs = std::filesystem;

// The rows first: a file without one goes when the store is opened.
Result<void> Store::remove_slices(const std::vector<int64_t>& numbers) {
  for (const int64_t number : numbers) {
    if (auto done = database_->run("DELETE FROM slices WHERE number = ?", {number}); !done) {
      return done;
    }
    std::error_code error;
    fs::remove(slice_file(number), error);
  }
  return {};
}

void Store::set_bound(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  bound_ = bytes;
}

uint64_t Store::bytes_of_slices() const {
  uint64_t sum = 0;
  for (const fs::path& file : files_in(slices_folder())) {
    sum += bytes_of(file);
  }
  return sum;
}

uint64_t Store::other_bytes() const {
  uint64_t sum = bytes_of(suppressions_file());
  for (const char* const suffix : {"", "-wal", "-shm"}) {
    sum += bytes_of(database_file().string() + suffix);
  }
  for (const fs::path& file : set_aside_files(folder_)) {
    sum += bytes_of(file);
  }
  return sum;
}

// There may be many slices: they are counted once.
Result<void> Store::evict() {
  uint64_t in_slices = bytes_of_slices();
  const auto is_over = [&] { return in_slices + other_bytes() > bound_; };
  if (is_over()) {
    // Perhaps it is the log alone, or pages that nobody uses.
    (void)database_->run_all("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE);");
  }
  while (is_over()) {
    const auto went = evict_one(&in_slices);
    if (!went || !*went) {
      return went.map([](bool) {});
    }
  }
  return {};
}

// False: nothing is left to go.
Result<bool> Store::evict_one(uint64_t* in_slices) {
  const auto slice = database_->number(
      "SELECT number FROM slices ORDER BY EXISTS (SELECT 1 FROM shown WHERE slice = number), "
      "taken, "
      "number LIMIT 1");
  if (!slice) {
    return tl::unexpected<Error>(slice.error());
  }
  if (*slice != 0) {
    const uint64_t size = bytes_of(slice_file(*slice));
    *in_slices -= std::min(*in_slices, size);
    return remove_slices({*slice}).map([] { return true; });
  }
  std::error_code error;
  if (const auto files = set_aside_files(folder_); !files.empty()) {
    return fs::remove(files.front(), error);
  }
  const auto incident =
      database_->number("SELECT number FROM incidents ORDER BY happened, number LIMIT 1");
  const auto finding =
      database_->number("SELECT number FROM findings ORDER BY last_seen, number LIMIT 1");
  if (!incident || !finding) {
    return tl::unexpected<Error>(!incident ? incident.error() : finding.error());
  }
  if (*incident == 0 && *finding == 0) {
    return false;
  }
  return database_
      ->run(*incident != 0 ? "DELETE FROM incidents WHERE number = ?"
                           : "DELETE FROM findings WHERE number = ?",
            {*incident != 0 ? *incident : *finding})
      .and_then([&] {
        return database_->run_all("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE);");
      })
      .map([] { return true; });
}

}  // namespace tsomon::service
