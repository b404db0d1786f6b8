// What the service has found, on disk: findings, and the slices that show them.
//
// Purpose     One finding for each fingerprint and property, however often it is seen: when first and last, how often, in which
//             programs and where, and its best witness. Slices are captures, which `check`, `predict` and `explain` read.
// Analyses    Which slice was analysed by what, how often that was tried, and what came of it (kept_analysis.h): each result goes
//             in together with the word that it is there, so none is lost, and none counts twice.
// Incidents   Slices that were recorded about one moment (flight_ring.h), whether they show a finding or not.
// Form        A folder: store.db (SQLite, write-ahead log) has the findings and which slices there are; slices/N.tsomon are
//             the captures; suppressions has the lines that suppress() wrote; lock belongs to whoever keeps the store.
// Crashes     What add() has answered is on the disk, and stays whatever ends the process or the machine. A capture is written
//             under another name, synchronised and renamed before its row is. Files without a row are removed when the
//             store is opened to be kept.
// Bound       Of all files together: when they take more, the oldest slices go, first those that show no finding; then databases
//             that were set aside, incidents, findings last.
// Versions    store_schema.h: a store of an earlier one is taken forward when it is opened.
// Damage      A database that is not whole is set aside as store.db.damaged-N, and a new one begun, with the slices that are
//             there; notes() says so. What is no database of this form is refused, as is one of a later version.
// Who         keep(): one process at a time, which adds. visit(): any number beside it, which read, suppress and forget.
// Errors      kUsage: no such finding; a store of a later version. kUnreadable: there is none. kDamaged: visit() of a
//             damaged one, or it became so. kEnvironment: somebody else keeps it, a full disk, permissions.
// Complexity  add(): O(log findings), two waits for the disk. findings(): O(findings). begin_analysis(): O(slices).
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
  std::string summary;     // a sentence
  std::string json;        // the finding, an object
  bool predicted = false;  // by an analysis: it was not seen, but could have been
};

// A slice is to be analysed, which has begun.
struct SliceAnalysis {
  enum class What : uint8_t {
    kCheck,    // are findings definite that are only possible?
    kExplain,  // what would have ruled them out
    kPredict   // what could have happened in another schedule
  };
  enum class State : uint8_t { kBegun, kDone, kLeft };  // kLeft: it is not tried any more

  int64_t slice = 0;
  std::string file;
  SightingPlace place;  // of the slice; without host
  int64_t taken = 0;
  What what = What::kCheck;
  std::string property;  // of kCheck and kExplain
  State state = State::kBegun;
  uint64_t tries = 0;
  uint64_t crashes = 0;
  std::string result;  // a sentence; empty: there is none
};
const char* name_of(SliceAnalysis::What what);

struct AnalysisEnd {
  enum class How : uint8_t { kDone, kCrashed, kStopped };  // kStopped: it does not count as a try
  How how = How::kDone;
  std::string result;
  std::vector<SeenFinding> found;  // definite now, or predicted
  std::string explanation;         // what `explain` wrote, an object; empty: none
};

struct IncidentSlice {
  int capture = -1;
  int64_t taken = 0;
  int64_t stored = 0;  // its number, where the store has it already
};

struct Incident {
  int64_t number = 0;
  int64_t happened = 0;
  SightingPlace place;
  std::string reason;
  uint64_t slices = 0;             // that there were
  std::vector<std::string> files;  // that are there, the oldest first
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
  bool predicted = false;
  std::string explanation;              // as AnalysisEnd has it
  std::vector<SliceAnalysis> analyses;  // of these slices, in their order
};

class Store {
 public:
  static constexpr uint64_t kSlicesOfFinding = 8;  // that are kept at a time
  static constexpr uint64_t kMostCrashes = 2;      // of an analysis, before its slice is left
  static constexpr uint64_t kMostTries = 5;        // likewise, if its end was never seen

  struct Added {
    std::vector<bool> is_new;  // of each finding, whether it was not there
    std::string
        problem;        // why the slice was not kept, though it should be; empty: nothing was wrong
    int64_t slice = 0;  // its number; 0: it was not kept
  };

  // Makes the folder where there is none. `bytes`: its bound.
  static Result<std::unique_ptr<Store>> keep(const std::string& folder, uint64_t bytes);
  static Result<std::unique_ptr<Store>> visit(const std::string& folder);

  // What was seen in one slice, at `time`. `capture`: a descriptor of its file; -1: it is not to be kept.
  Result<Added> add(const SightingPlace& place, int64_t time,
                    const std::vector<SeenFinding>& findings, int capture);
  void set_bound(uint64_t bytes);

  // What is to be analysed next, of the last slice first; nothing: all that there is was. It is written down as begun.
  Result<std::optional<SliceAnalysis>> begin_analysis(int64_t time);
  // What came of it, at `time`; the slice may be gone. Of end.found, whether each was not there.
  Result<std::vector<bool>> end_analysis(const SliceAnalysis& analysis, const AnalysisEnd& end,
                                         int64_t time);
  Result<std::vector<SliceAnalysis>> analyses();  // in the order of slices

  // The number of a new incident, with these slices, which get their numbers. `problem`: why some are not kept, if so.
  Result<int64_t> begin_incident(const SightingPlace& place, int64_t happened,
                                 const std::string& reason, std::vector<IncidentSlice>* slices,
                                 std::string* problem);
  // kEnvironment: also when it is gone.
  Result<void> add_to_incident(int64_t number, const SightingPlace& place,
                               std::vector<IncidentSlice>* slices, std::string* problem);
  Result<std::vector<Incident>> incidents();  // the last one first

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
  Result<void> bring_forward(int64_t version);
  Result<void> open_or_replace();
  Result<void> set_aside();
  Result<void> tidy(bool adopt);
  tl::unexpected<Error> lost(const Error& error);
  Result<void> add_slice(int64_t number, uint64_t bytes, int64_t taken, const SightingPlace& place);
  Result<int64_t> add_finding(const SightingPlace& place, int64_t time, const SeenFinding& finding,
                              bool* is_new);
  Result<bool> wants_slice(const std::vector<SeenFinding>& findings);
  Result<void> remove_slices(const std::vector<int64_t>& numbers);
  uint64_t bytes_of_slices() const;
  uint64_t other_bytes() const;
  Result<void> evict();
  Result<bool> evict_one(uint64_t* in_slices);
  tl::unexpected<Error> became_damaged() const;
  Result<std::optional<SliceAnalysis>> next_analysis();
  Result<void> write_analysis(const SliceAnalysis& analysis, int64_t time);
  Result<void> add_found(const SliceAnalysis& analysis, const AnalysisEnd& end,
                         std::vector<bool>* is_new);
  Result<bool> raise_finding(const SeenFinding& finding);
  Result<void> explain_findings(const SliceAnalysis& analysis, const std::string& json);
  Result<std::vector<SliceAnalysis>> analyses_of(int64_t slice);
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
