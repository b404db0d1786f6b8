#include "monitor/service/store.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <set>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/service/durable_file.h"
#include "tso/support/printable.h"

namespace tsomon::service {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kStoreVersion = 1;
constexpr std::string_view kSliceSuffix = ".tsomon";
constexpr std::string_view kDamagedMark = ".damaged-";

// Times are in microseconds since 1970.
constexpr const char* kTables = R"(
CREATE TABLE findings (
  number INTEGER PRIMARY KEY,
  fingerprint TEXT NOT NULL,
  property TEXT NOT NULL,
  definite INTEGER NOT NULL,
  count INTEGER NOT NULL,
  slices INTEGER NOT NULL,
  first_seen INTEGER NOT NULL,
  last_seen INTEGER NOT NULL,
  summary TEXT NOT NULL,
  json TEXT NOT NULL,
  UNIQUE (fingerprint, property));
CREATE INDEX findings_by_time ON findings (last_seen);
CREATE TABLE sightings (
  finding INTEGER NOT NULL REFERENCES findings ON DELETE CASCADE,
  target TEXT NOT NULL,
  host TEXT NOT NULL,
  build TEXT NOT NULL,
  count INTEGER NOT NULL,
  first_seen INTEGER NOT NULL,
  last_seen INTEGER NOT NULL,
  PRIMARY KEY (finding, target, host, build)) WITHOUT ROWID;
CREATE TABLE slices (
  number INTEGER PRIMARY KEY,
  bytes INTEGER NOT NULL,
  taken INTEGER NOT NULL,
  target TEXT NOT NULL,
  build TEXT NOT NULL);
CREATE TABLE shown (
  finding INTEGER NOT NULL REFERENCES findings ON DELETE CASCADE,
  slice INTEGER NOT NULL REFERENCES slices ON DELETE CASCADE,
  PRIMARY KEY (finding, slice)) WITHOUT ROWID;
CREATE INDEX shown_by_slice ON shown (slice);
)";

// Of a new connection. A commit is on the disk when it returns.
constexpr const char* kSettings = R"(
PRAGMA foreign_keys = ON;
PRAGMA synchronous = FULL;
PRAGMA journal_size_limit = 1048576;
)";

constexpr const char* kSchema =
    "SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema WHERE sql NOT NULL ORDER BY "
    "name)";

tl::unexpected<Error> store_error(ErrorKind kind, const fs::path& path, std::string message) {
  return tl::unexpected<Error>(Error{kind, printable(path.string()), {}, std::move(message)});
}

tl::unexpected<Error> system_error(const fs::path& path, const char* what) {
  return store_error(ErrorKind::kEnvironment, path,
                     fmt::format("cannot be {}: {}", what, std::strerror(errno)));
}

// "12.tsomon" is 12; 0: it is no slice's.
int64_t slice_number(const std::string& name) {
  int64_t number = 0;
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && number > 0 &&
                 rest == name.data() + name.size() - kSliceSuffix.size() &&
                 name.ends_with(kSliceSuffix)
             ? number
             : 0;
}

uint64_t bytes_of(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : size;
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<fs::path> set_aside_files(const fs::path& folder) {
  std::vector<fs::path> files = files_in(folder);
  std::erase_if(files, [](const fs::path& file) {
    return file.filename().string().find(kDamagedMark) == std::string::npos;
  });
  return files;
}

// How the tables of this version are written down.
Result<std::string> expected_schema() {
  auto model = Database::open(":memory:", Database::Access::kMake);
  if (!model) {
    return tl::unexpected<Error>(model.error());
  }
  return model->run_all(kTables).and_then([&] { return model->text(kSchema); });
}

// Whether it is a store of this version and whole; kDamaged: it is not whole. `writable`: the file is.
Result<void> examine(Database* database, const fs::path& file, bool writable) {
  const auto version = database->number("PRAGMA user_version");
  if (!version) {
    return tl::unexpected<Error>(version.error());
  }
  if (*version > kStoreVersion) {
    return store_error(
        ErrorKind::kUsage, file,
        fmt::format("expected a store of version {}, found {}: it is of a later tsomon",
                    kStoreVersion, *version));
  }
  const auto whole = database->text("PRAGMA integrity_check(1)");
  if (!whole) {
    return tl::unexpected<Error>(whole.error());
  }
  const auto schema = database->text(kSchema);
  const auto expected = expected_schema();
  if (!schema || !expected) {
    return tl::unexpected<Error>(!schema ? schema.error() : expected.error());
  }
  const bool bad_header = writable && database->is_read_only();
  if (*whole == "ok" && *schema == *expected && !bad_header) {
    return {};
  }
  return store_error(
      ErrorKind::kDamaged, file,
      fmt::format("is damaged: {}", *whole != "ok" ? printable(*whole)
                                    : bad_header   ? "its header says that it cannot be written"
                                                   : "its tables are not those of a store"));
}

Result<void> make_tables(Database* database) {
  return database->run_all("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;")
      .and_then([&] { return Transaction::begin(*database); })
      .and_then([&](Transaction&& transaction) {
        return database->run_all(kTables)
            .and_then([&] {
              return database->run_all(
                  fmt::format("PRAGMA user_version = {}", kStoreVersion).c_str());
            })
            .and_then([&] { return transaction.commit(); });
      });
}

bool is_id(const std::string& id) {
  constexpr size_t kShortest = 4;
  return id.size() >= kShortest && id.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

fs::path Store::slice_file(int64_t number) const {
  return slices_folder() / fmt::format("{}{}", number, kSliceSuffix);
}

Result<std::unique_ptr<Store>> Store::keep(const std::string& folder, uint64_t bytes) {
  std::unique_ptr<Store> store(new Store(folder, bytes));
  const mode_t before = ::umask(0077);
  std::error_code error;
  fs::create_directories(store->slices_folder(), error);
  if (fs::is_symlink(store->slices_folder(), error)) {
    ::umask(before);
    return store_error(ErrorKind::kEnvironment, store->slices_folder(),
                       "is a link: expected a folder of the store's own");
  }
  store->lock_ = Descriptor(
      ::open((store->folder_ / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  const int problem = errno;
  ::umask(before);
  if (!store->lock_.is_open()) {
    errno = problem;
    return system_error(folder, "used");
  }
  if (::flock(store->lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    return store_error(ErrorKind::kEnvironment, folder, "another tsomon monitor keeps this store");
  }
  // What comes from here is this user's alone; SQLite gives its other files the same mode.
  const Descriptor file(
      ::open(store->database_file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open()) {
    return system_error(store->database_file(), "opened");
  }
  return store->open_or_replace().and_then([&] { return store->evict(); }).map([&] {
    return std::move(store);
  });
}

Result<std::unique_ptr<Store>> Store::visit(const std::string& folder) {
  std::unique_ptr<Store> store(new Store(folder, UINT64_MAX));
  if (std::error_code error; !fs::exists(store->database_file(), error)) {
    return store_error(ErrorKind::kUnreadable, folder,
                       "there is no store here; `tsomon monitor` makes it");
  }
  auto opened = store->open_database(Database::Access::kUse);
  if (!opened && opened.error().kind == ErrorKind::kDamaged) {
    opened.error().message +=
        "; when `tsomon monitor` starts it sets it aside and begins a new one";
  }
  return opened.map([&] { return std::move(store); });
}

Result<void> Store::open_database(Database::Access access) {
  const fs::path file = database_file();
  auto opened = Database::open(file.string(), access);
  if (!opened) {
    return tl::unexpected<Error>(opened.error());
  }
  database_.emplace(std::move(*opened));
  auto ready = database_->run_all(kSettings);
  if (ready && lock_.is_open() && bytes_of(file) == 0) {
    ready = make_tables(&*database_);
  }
  ready = ready.and_then([&] { return examine(&*database_, file, lock_.is_open()); });
  if (!ready) {
    database_.reset();
  }
  return ready;
}

Result<void> Store::open_or_replace() {
  bool fresh = bytes_of(database_file()) == 0;
  auto opened = open_database(Database::Access::kMake);
  if (!opened && opened.error().kind == ErrorKind::kDamaged) {
    const std::string problem = opened.error().to_string();
    opened = set_aside().and_then([&] { return open_database(Database::Access::kMake); });
    if (opened) {
      notes_.front().insert(0, problem + "; ");
      fresh = true;
    }
  }
  return opened.and_then([&] { return tidy(fresh); });
}

// Its log belongs to it.
Result<void> Store::set_aside() {
  const std::string file = database_file().string();
  int number = 1;
  std::error_code error;
  const auto aside = [&](const char* suffix) {
    return fmt::format("{}{}{}{}", file, kDamagedMark, number, suffix);
  };
  while (fs::exists(aside(""), error)) {
    ++number;
  }
  for (const char* const suffix : {"-shm", "-wal", ""}) {
    if (::rename((file + suffix).c_str(), aside(suffix).c_str()) != 0 && errno != ENOENT) {
      return system_error(file, "set aside");
    }
  }
  sync_folder(folder_);
  notes_.insert(notes_.begin(),
                fmt::format("it is set aside as {}, and a new one begun", printable(aside(""))));
  const Descriptor made(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  return made.is_open() ? Result<void>() : system_error(file, "made");
}

// Files without rows go, but for slices if the database is new; so do rows without files.
Result<void> Store::tidy(bool adopt) {
  std::set<int64_t> rows;
  auto done = database_->run("SELECT number FROM slices", {},
                             [&](const DatabaseRow& row) { rows.insert(row.number(0)); });
  if (!done) {
    return done;
  }
  next_slice_ = rows.empty() ? 1 : *rows.rbegin() + 1;
  uint64_t adopted = 0;
  std::error_code error;
  for (const fs::path& file : files_in(slices_folder())) {
    const int64_t number = slice_number(file.filename().string());
    struct stat status {};
    if (rows.erase(number) != 0) {
      continue;
    }
    if (adopt && number != 0 && ::lstat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      const int64_t taken = int64_t{status.st_mtim.tv_sec} * 1'000'000;
      done = database_->run("INSERT INTO slices VALUES (?, ?, ?, '', '')",
                            {number, int64_t{status.st_size}, taken});
      next_slice_ = std::max(next_slice_, number + 1);
      ++adopted;
    } else {
      fs::remove(file, error);
    }
    if (!done) {
      return done;
    }
  }
  if (adopted != 0) {
    notes_.push_back(fmt::format("{}: {} slices are kept, whose findings are not known any more",
                                 printable(folder_.string()), adopted));
  }
  return remove_slices({rows.begin(), rows.end()});
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
  const auto lost = [&](const Error& error) {
    if (error.kind == ErrorKind::kDamaged) {
      database_.reset();
    }
    return tl::unexpected<Error>(error);
  };
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
      if (auto done =
              database_->run("INSERT INTO slices VALUES (?, ?, ?, ?, ?)",
                             {slice, static_cast<int64_t>(bytes), time, place.target, place.build});
          !done) {
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
  std::vector<int64_t> oldest;
  const auto note = [&](const DatabaseRow& row) { oldest.push_back(row.number(0)); };
  auto done = database_->run("SELECT number FROM slices ORDER BY taken, number LIMIT 1", {}, note);
  if (!done) {
    return tl::unexpected<Error>(done.error());
  }
  if (!oldest.empty()) {
    const uint64_t size = bytes_of(slice_file(oldest.front()));
    *in_slices -= std::min(*in_slices, size);
    return remove_slices(oldest).map([] { return true; });
  }
  std::error_code error;
  if (const auto files = set_aside_files(folder_); !files.empty()) {
    return fs::remove(files.front(), error);
  }
  done = database_->run("SELECT number FROM findings ORDER BY last_seen, number LIMIT 1", {}, note);
  if (!done) {
    return tl::unexpected<Error>(done.error());
  }
  if (oldest.empty()) {
    return false;
  }
  return database_->run("DELETE FROM findings WHERE number = ?", {oldest.front()})
      .and_then([&] {
        return database_->run_all("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE);");
      })
      .map([] { return true; });
}

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
      "summary, json FROM findings WHERE ?1 = '' OR substr(fingerprint, 1, length(?1)) = ?1 "
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
    done = database_->run(
        "SELECT slice FROM shown JOIN slices ON number = slice WHERE finding = ? ORDER BY taken, "
        "slice",
        {numbers[i]},
        [&](const DatabaseRow& row) { one.files.push_back(slice_file(row.number(0)).string()); });
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
    return system_error(path, "written");
  }
  return {};
}

}  // namespace tsomon::service
