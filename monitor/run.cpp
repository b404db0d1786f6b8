#include "monitor/run.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoders/capture/live.h"
#include "monitor/child.h"
#include "monitor/merged_watch.h"
#include "monitor/probe_options.h"
#include "monitor/record.h"
#include "monitor/symbols.h"

namespace tsomon {
namespace {

namespace fs = std::filesystem;

constexpr int kPoll = 20;  // milliseconds
constexpr size_t kPipeBytes = size_t{1} << 20;

// A pipe with a name, in a folder of its own. Both are removed with the object.
class NamedPipe {
 public:
  NamedPipe() {
    std::error_code error;
    std::string folder = (fs::temp_directory_path(error) / "tsomon_run_XXXXXX").string();
    if (error || mkdtemp(folder.data()) == nullptr) {
      problem_ = fmt::format("{}: cannot be created: {}", folder, std::strerror(errno));
      return;
    }
    folder_ = folder;
    path_ = folder_ / "live";
    if (mkfifo(path_.c_str(), 0600) != 0 ||
        (fd_ = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0) {
      problem_ = fmt::format("{}: cannot be created: {}", path_.string(), std::strerror(errno));
      return;
    }
    // What fits is less often waited for; as much as the system allows.
    ::fcntl(fd_, F_SETPIPE_SZ, static_cast<int>(kPipeBytes));
  }
  NamedPipe(const NamedPipe&) = delete;
  NamedPipe& operator=(const NamedPipe&) = delete;
  ~NamedPipe() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
    std::error_code ignored;
    if (!folder_.empty()) {
      fs::remove(path_, ignored);
      fs::remove(folder_, ignored);
    }
  }
  int fd() const { return fd_; }
  std::string path() const { return path_.string(); }
  const std::string& problem() const { return problem_; }

 private:
  fs::path folder_;
  fs::path path_;
  int fd_ = -1;
  std::string problem_;
};

void add_live_options(const std::string& path, const RunOptions& options, ProbeOptions* probe) {
  std::string added;
  // Packing pays for files, not for a pipe.
  if (!probe->has("level=")) {
    added += "level=0:";
  }
  if (options.object_bytes != 0 && !probe->has("objects=")) {
    added += fmt::format("objects={}:", options.object_bytes);
  }
  probe->add(added + fmt::format("live={}:{}", options.round_milliseconds, output_option(path)));
}

// What came through the pipe, kept in a file.
class SavedCapture {
 public:
  explicit SavedCapture(const std::string& path) : path_(path) {
    if (!path.empty()) {
      fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
      note_failure(fd_ < 0);
    }
  }
  SavedCapture(const SavedCapture&) = delete;
  SavedCapture& operator=(const SavedCapture&) = delete;
  ~SavedCapture() { close(); }

  // After a failure nothing more is written: what is there can be read.
  void add(std::string_view bytes) {
    while (fd_ >= 0 && !bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) {
        continue;
      }
      if (written <= 0) {
        note_failure(true);
        close();
        return;
      }
      bytes.remove_prefix(static_cast<size_t>(written));
    }
  }
  const std::string& problem() const { return problem_; }

 private:
  void note_failure(bool failed) {
    if (failed) {
      problem_ = fmt::format("{}: cannot be written: {}", path_, std::strerror(errno));
    }
  }
  void close() {
    if (fd_ >= 0) {
      ::close(fd_);
      fd_ = -1;
    }
  }

  std::string path_;
  int fd_ = -1;
  std::string problem_;
};

// From the bytes of the pipe to the watch.
class Session {
 public:
  Session(const RunOptions& options, const Watch::Callback& report)
      : options_(with_locations(options.watch)),
        watch_(reader_.symbols(), options_, report),
        unknown_(merge().open(UINT64_MAX - 1)) {}

  bool feed(std::string_view bytes) {
    if (auto fed = reader_.feed(bytes); !fed) {
      failure_ = fed.error().to_string();
      return false;
    }
    pass_on();
    return true;
  }

  void finish() {
    reader_.finish();
    pass_on();
    merge().close(unknown_);
    watch_.judge();
    if (!reader_.problems().empty() || !failure_.empty()) {
      watch_.watch().incomplete();
    }
    watch_.finish();
  }

  bool any() const { return reader_.any_header(); }

  std::vector<std::string> warnings() const {
    std::vector<std::string> all;
    if (!failure_.empty()) {
      all.push_back(failure_);
    }
    all.insert(all.end(), reader_.problems().begin(), reader_.problems().end());
    all.insert(all.end(), reader_.notes().begin(), reader_.notes().end());
    if (symboliser_) {
      all.insert(all.end(), symboliser_->warnings().begin(), symboliser_->warnings().end());
    }
    return all;
  }

  WatchSummary summary() const {
    WatchSummary summary = watch_.watch().summary();
    summary.lost_events += reader_.lost_events();
    return summary;
  }

 private:
  WatchOptions with_locations(WatchOptions options) {
    options.locate = [this](const std::string& text) { return locate(text); };
    return options;
  }

  // Instruction pointers to source lines, when they are needed.
  std::string locate(const std::string& text) {
    if (text.rfind("0x", 0) != 0) {
      return text;
    }
    if (!symboliser_ || modules_ != reader_.modules().size()) {
      modules_ = reader_.modules().size();
      symboliser_ = std::make_unique<Symboliser>(reader_.modules());
    }
    return symboliser_->text(std::strtoull(text.c_str(), nullptr, 16));
  }

  void pass_on() {
    reader_.take([this](const capture::LiveReader::News& news) {
      auto found = streams_.find(news.thread);
      if (found == streams_.end()) {
        found = streams_.emplace(news.thread, merge().open(news.thread)).first;
      }
      EventBlock block = merge().take_block();
      std::swap(block, *news.events);
      merge().push(found->second, std::move(block));
      merge().promise(found->second, news.promise);
      if (news.ended) {
        merge().close(found->second);
        streams_.erase(found);
      }
    });
    merge().promise(unknown_, reader_.round());
    watch_.judge();
  }

  EventMerge& merge() { return watch_.merge(); }

  capture::LiveReader reader_;
  std::unique_ptr<Symboliser> symboliser_;
  size_t modules_ = 0;
  WatchOptions options_;
  MergedWatch watch_;
  EventMerge::Stream unknown_;  // threads that had no event yet
  std::unordered_map<uint32_t, EventMerge::Stream> streams_;
  std::string failure_;
};

}  // namespace

RunResult run(const std::vector<std::string>& command, const RunOptions& options,
              const Watch::Callback& report) {
  RunResult result;
  result.status = kRecordFailed;
  ProbeOptions probe_options;
  if (probe_options.has("output=")) {
    result.problem = "TSOMON_OPTIONS names an output; remove it there, or use tsomon record";
    return result;
  }
  const NamedPipe pipe;
  if (!pipe.problem().empty()) {
    result.problem = pipe.problem();
    return result;
  }
  SavedCapture saved(options.save);
  if (!saved.problem().empty()) {
    result.problem = saved.problem();
    return result;
  }
  Session session(options, report);
  add_live_options(pipe.path(), options, &probe_options);
  Child child(command);
  if (child.exec_error() != 0) {
    result.status = child.exec_error() == ENOENT ? kNotFound : kNotExecutable;
    result.problem = fmt::format("{}: {}", command[0], std::strerror(child.exec_error()));
    return result;
  }
  std::vector<char> buffer(kPipeBytes);
  bool good = true;
  for (;;) {
    // Asked first: what the program wrote before its end is then in the pipe.
    const bool ended = child.ended();
    const ssize_t got = ::read(pipe.fd(), buffer.data(), buffer.size());
    if (got > 0) {
      saved.add({buffer.data(), static_cast<size_t>(got)});
      // After damage the rest is read all the same: the program must not wait for its pipe.
      good = good && session.feed({buffer.data(), static_cast<size_t>(got)});
    } else if (ended) {
      break;  // also when a child of the program holds the pipe open
    } else {
      pollfd state{pipe.fd(), POLLIN, 0};
      if (got == 0) {
        ::poll(nullptr, 0, kPoll);  // no writer yet, or no more: poll would not wait
      } else {
        ::poll(&state, 1, kPoll);
      }
    }
  }
  session.finish();
  result.status = exit_status(child.wait());
  if (!session.any()) {
    result.problem = not_recorded(command, result.status, "tsomon run");
    result.status = kRecordFailed;
    return result;
  }
  result.warnings = session.warnings();
  if (!saved.problem().empty()) {
    result.warnings.push_back(saved.problem());
  }
  result.summary = session.summary();
  return result;
}

}  // namespace tsomon
