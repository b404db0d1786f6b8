// The store: what is known of findings; forgetting and suppressing them.
#include <iterator>
#include <set>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "monitor/service/store.h"
#include "monitor/service/store_parts.h"
#include "tso/support/printable.h"

namespace tsomon::service {
namespace {

bool is_id(const std::string& id) {
  constexpr size_t kShortest = 4;
  return id.size() >= kShortest && id.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

tl::unexpected<Error> Store::became_damaged() const {
  return store_error(ErrorKind::kDamaged, database_file(), "became damaged");
}

// All findings that begin with `fingerprint`, which may be empty.
Result<std::vector<KeptFinding>> Store::select(std::string_view fingerprint) {
  std::vector<KeptFinding> kept;
  std::vector<int64_t> numbers;
  if (!database_) {
    return became_damaged();
  }
  auto done = database_->run(
      "SELECT number, fingerprint, property, definite, count, slices, first_seen, last_seen, "
      "summary, json, EXISTS (SELECT 1 FROM predicted WHERE finding = number), ifnull((SELECT json "
      "FROM explanations WHERE finding = number), '') FROM findings WHERE ?1 = '' OR "
      "substr(fingerprint, 1, length(?1)) = ?1 "
      "ORDER BY last_seen DESC, number DESC",
      {fingerprint}, [&](const DatabaseRow& row) {
        numbers.push_back(row.number(0));
        KeptFinding& one = kept.emplace_back();
        one.fingerprint = row.text(1);
        one.property = row.text(2);
        one.definite = row.number(3) != 0;
        one.count = static_cast<uint64_t>(row.number(4));
        one.slices = static_cast<uint64_t>(row.number(5));
        one.first_seen = row.number(6);
        one.last_seen = row.number(7);
        one.summary = row.text(8);
        one.json = row.text(9);
        one.predicted = row.number(10) != 0;
        one.explanation = row.text(11);
      });
  for (size_t i = 0; done && i < kept.size(); ++i) {
    KeptFinding& one = kept[i];
    done = database_->run(
        "SELECT target, host, build, count, first_seen, last_seen FROM sightings WHERE finding = ? "
        "ORDER BY last_seen DESC",
        {numbers[i]}, [&](const DatabaseRow& row) {
          one.sightings.push_back({{row.text(0), row.text(1), row.text(2)},
                                   static_cast<uint64_t>(row.number(3)),
                                   row.number(4),
                                   row.number(5)});
        });
    if (!done) {
      break;
    }
    std::vector<int64_t> slices;
    done = database_->run(
        "SELECT slice FROM shown JOIN slices ON number = slice WHERE finding = ? ORDER BY taken, "
        "slice",
        {numbers[i]}, [&](const DatabaseRow& row) {
          slices.push_back(row.number(0));
          one.files.push_back(slice_file(slices.back()).string());
        });
    for (size_t at = 0; done && at < slices.size(); ++at) {
      done = analyses_of(slices[at]).map([&](std::vector<SliceAnalysis>&& more) {
        one.analyses.insert(one.analyses.end(), std::make_move_iterator(more.begin()),
                            std::make_move_iterator(more.end()));
      });
    }
  }
  return done.map([&] { return std::move(kept); });
}

Result<std::vector<KeptFinding>> Store::findings() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return select({});
}

Result<std::vector<KeptFinding>> Store::find(const std::string& id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!is_id(id)) {
    return fail(ErrorKind::kUsage,
                fmt::format("expected a fingerprint, or its first digits, at least 4; found '{}'",
                            printable(id)));
  }
  auto kept = select(id);
  if (!kept) {
    return kept;
  }
  if (kept->empty()) {
    return fail(ErrorKind::kUsage, fmt::format("there is no finding {}", id));
  }
  std::set<std::string> different;
  for (const KeptFinding& each : *kept) {
    different.insert(printable(each.fingerprint));
  }
  if (different.size() > 1) {
    return fail(ErrorKind::kUsage, fmt::format("{} findings begin with {}: {}", different.size(),
                                               id, fmt::join(different, ", ")));
  }
  return kept;
}

Result<uint64_t> Store::forget(const std::string& id) {
  const auto kept = find(id);
  if (!kept) {
    return tl::unexpected<Error>(kept.error());
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!database_) {
    return became_damaged();
  }
  std::vector<int64_t> slices;
  auto transaction = Transaction::begin(*database_);
  if (!transaction) {
    return tl::unexpected<Error>(transaction.error());
  }
  const std::string& fingerprint = kept->front().fingerprint;
  const auto done =
      database_
          ->run(
              "SELECT slice FROM shown JOIN findings ON finding = number GROUP BY slice "
              "HAVING min(fingerprint = ?) = 1",
              {fingerprint}, [&](const DatabaseRow& row) { slices.push_back(row.number(0)); })
          .and_then([&] {
            return database_->run("DELETE FROM findings WHERE fingerprint = ?", {fingerprint});
          })
          .and_then([&] { return transaction->commit(); })
          .and_then([&] { return remove_slices(slices); });
  return done.map([&] { return kept->size(); });
}

Result<void> Store::suppress(const KeptFinding& finding, const std::string& file) {
  const std::string path = file.empty() ? suppressions_file() : file;
  // Where somebody names the file it may be a link.
  const Descriptor descriptor(::open(
      path.c_str(),
      O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | (file.empty() ? O_NOFOLLOW : 0), 0644));
  char last = '\n';
  const off_t size = ::lseek(descriptor.get(), 0, SEEK_END);
  const bool open_line =
      size > 0 && ::pread(descriptor.get(), &last, 1, size - 1) == 1 && last != '\n';
  const std::string lines = fmt::format("{}# {}: {}\nfingerprint:{}\n", open_line ? "\n" : "",
                                        printable(finding.property), printable(finding.summary),
                                        printable(finding.fingerprint));
  // In one piece: somebody may add another one meanwhile.
  if (!descriptor.is_open() ||
      ::write(descriptor.get(), lines.data(), lines.size()) != static_cast<ssize_t>(lines.size()) ||
      ::fsync(descriptor.get()) != 0) {
    return store_system_error(path, "written");
  }
  return {};
}

}  // namespace tsomon::service
