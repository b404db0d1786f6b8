// What the service has found, on disk: findings, and the slices that show them.
//
// Purpose     One finding for each fingerprint and property, however often it is seen: when first and last, how often, in which
//             programs and where, and its best witness. Slices are captures, which `check`, `predict` and `explain` read.
// Form        A folder: store.db (SQLite, write-ahead log) has the findings and which slices there are; slices/N.tsomon are
//             the captures; suppressions has the lines that suppress() wrote; lock belongs to whoever keeps the store.
// Crashes     What add() has answered is on the disk, and stays whatever ends the process or the machine. A capture is written
//             under another name, synchronised and renamed before its row is. Files without a row are removed when the
//             store is opened to be kept.
// Bound       Of all files together: when they take more, the oldest slices go, then databases that were set aside, findings last.
// Damage      A database that is not whole is set aside as store.db.damaged-N, and a new one begun, with the slices that are
//             there; notes() says so. What is no database of this form is refused, as is one of a later version.
// Who         keep(): one process at a time, which adds. visit(): any number beside it, which read, suppress and forget.
// Errors      kUsage: no such finding; a store of a later version. kUnreadable: there is none. kDamaged: visit() of a
//             damaged one, or it became so. kEnvironment: somebody else keeps it, a full disk, permissions.
// Complexity  add(): O(log findings), two waits for the disk. findings(): O(findings).
// Thread-safety: calls are one at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/process/descriptor.h"
#include "monitor/service/database.h"
#include "tso/support/result.h"

namespace tsomon::service {

// Where findings were seen.
struct SightingPlace {
  std::string target;  // its name in the configuration
  std::string host;
  std::string build;  // build-id of the executable, in hexadecimal; empty: it has none
};

struct SeenFinding {
  std::string fingerprint;
  std::string property;
  bool definite = false;
  uint64_t count = 1;
  std::string summary;  // a sentence
  std::string json;     // the finding, an object
};

struct KeptFinding {
  struct Sighting {
    SightingPlace place;
    uint64_t count = 0;
    int64_t first_seen = 0;
    int64_t last_seen = 0;
  };

  std::string fingerprint;
  std::string property;
  bool definite = false;
  uint64_t count = 0;
  uint64_t slices = 0;     // in which it was seen
  int64_t first_seen = 0;  // microseconds since 1970
  int64_t last_seen = 0;
  std::string summary;
  std::string json;  // of its best witness: definite ones before others, then the shorter one
  std::vector<Sighting> sightings;  // the last one first
  std::vector<std::string> files;   // slices that show it and are there, the oldest first
};

class Store {
 public:
  static constexpr uint64_t kSlicesOfFinding = 8;  // that are kept at a time

  struct Added {
    std::vector<bool> is_new;  // of each finding, whether it was not there
    std::string
        problem;  // why the slice was not kept, though it should be; empty: nothing was wrong
  };

  // Makes the folder where there is none. `bytes`: its bound.
  static Result<std::unique_ptr<Store>> keep(const std::string& folder, uint64_t bytes);
  static Result<std::unique_ptr<Store>> visit(const std::string& folder);

  // What was seen in one slice, at `time`. `capture`: a descriptor of its file; -1: it is not to be kept.
  Result<Added> add(const SightingPlace& place, int64_t time,
                    const std::vector<SeenFinding>& findings, int capture);
  void set_bound(uint64_t bytes);

  // The last one first.
  Result<std::vector<KeptFinding>> findings();
  // Of one fingerprint, of which `id` is the beginning, for each property.
  Result<std::vector<KeptFinding>> find(const std::string& id);
  // Likewise; and the slices that show nothing else. How many findings.
  Result<uint64_t> forget(const std::string& id);
  // Adds a line to `file` that hides it, as --suppressions reads it; empty: suppressions_file().
  Result<void> suppress(const KeptFinding& finding, const std::string& file = {});

  std::string suppressions_file() const { return (folder_ / "suppressions").string(); }
  uint64_t bytes() const { return bytes_of_slices() + other_bytes(); }  // that it takes
  // What was not as it should be when it was opened.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Store(std::filesystem::path folder, uint64_t bytes) : folder_(std::move(folder)), bound_(bytes) {}

  std::filesystem::path database_file() const { return folder_ / "store.db"; }
  std::filesystem::path slices_folder() const { return folder_ / "slices"; }
  std::filesystem::path slice_file(int64_t number) const;
  Result<void> open_database(Database::Access access);
  Result<void> open_or_replace();
  Result<void> set_aside();
  Result<void> tidy(bool adopt);
  Result<int64_t> add_finding(const SightingPlace& place, int64_t time, const SeenFinding& finding,
                              bool* is_new);
  Result<bool> wants_slice(const std::vector<SeenFinding>& findings);
  Result<void> remove_slices(const std::vector<int64_t>& numbers);
  uint64_t bytes_of_slices() const;
  uint64_t other_bytes() const;
  Result<void> evict();
  Result<bool> evict_one(uint64_t* in_slices);
  tl::unexpected<Error> became_damaged() const;
  Result<std::vector<KeptFinding>> select(std::string_view fingerprint);

  const std::filesystem::path folder_;
  std::mutex mutex_;
  uint64_t bound_;
  Descriptor lock_{-1};
  std::optional<Database> database_;
  int64_t next_slice_ = 1;
  std::vector<std::string> notes_;
};

}  // namespace tsomon::service
