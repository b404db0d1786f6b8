// The store: its folder is opened, repaired and tidied up.
#include <algorithm>
#include <cerrno>
#include <set>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/service/durable_file.h"
#include "monitor/service/store.h"
#include "monitor/service/store_parts.h"
#include "monitor/service/store_schema.h"
#include "tso/support/printable.h"

namespace tsomon::service {

namespace fs = std::filesystem;

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
    return store_system_error(folder, "used");
  }
  if (::flock(store->lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    return store_error(ErrorKind::kEnvironment, folder, "another tsomon monitor keeps this store");
  }
  // What comes from here is this user's alone; SQLite gives its other files the same mode. It is closed before SQLite opens it:
  // whoever closes a descriptor of a file gives up the locks of the process on it, and visitors would take its log away.
  if (const Descriptor file(
          ::open(store->database_file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
      !file.is_open()) {
    return store_system_error(store->database_file(), "opened");
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
  auto ready = set_up_connection(&*database_);
  if (ready && lock_.is_open() && bytes_of(file) == 0) {
    ready = make_store_tables(&*database_);
  }
  ready = ready.and_then([&] { return examine_store(&*database_, file, lock_.is_open()); })
              .and_then([&](int64_t version) { return bring_forward(version); });
  if (!ready) {
    database_.reset();
  }
  return ready;
}

// To the present version. Who keeps a store of an earlier one is an earlier tsomon: its tables are left to it.
Result<void> Store::bring_forward(int64_t version) {
  if (version == kStoreVersion) {
    return {};
  }
  Descriptor lock(-1);
  if (!lock_.is_open()) {
    lock = Descriptor(::open((folder_ / "lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!lock.is_open() || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      return store_error(ErrorKind::kEnvironment, folder_,
                         "an earlier tsomon monitor keeps this store: start it anew");
    }
  }
  const auto now = database_->number("PRAGMA user_version");  // another one may have been faster
  return !now                    ? Result<void>(tl::unexpected<Error>(now.error()))
         : *now == kStoreVersion ? Result<void>()
                                 : migrate_store(&*database_, version);
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
      return store_system_error(file, "set aside");
    }
  }
  sync_folder(folder_);
  notes_.insert(notes_.begin(),
                fmt::format("it is set aside as {}, and a new one begun", printable(aside(""))));
  const Descriptor made(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  return made.is_open() ? Result<void>() : store_system_error(file, "made");
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

}  // namespace tsomon::service
