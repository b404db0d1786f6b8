#include "monitor/event_source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoders/capture/chunks.h"
#include "decoders/std/reader.h"
#include "monitor/read_input.h"

namespace tsomon {
namespace {

constexpr size_t kBlockEvents = 4096;
constexpr int kPause = 20;  // milliseconds without input

class Descriptor {
 public:
  Descriptor(int fd, bool owned) : fd_(fd), owned_(owned) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_), owned_(other.owned_) {
    other.owned_ = false;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (owned_) {
      ::close(fd_);
    }
  }
  int get() const { return fd_; }

 private:
  int fd_;
  bool owned_;
};

// The first bytes of the input, which stay to be read. Nothing when that cannot be done.
std::string first_bytes(int fd) {
  std::array<char, 128> bytes{};
  ssize_t got = ::pread(fd, bytes.data(), bytes.size(), 0);
  std::array<int, 2> copy{};
  if (got < 0 && errno == ESPIPE && ::pipe2(copy.data(), O_CLOEXEC) == 0) {
    ssize_t copied = 0;
    do {
      copied = ::tee(fd, copy[1], bytes.size(), 0);  // waits for the first bytes
    } while (copied < 0 && errno == EINTR);
    got = copied > 0 ? ::read(copy[0], bytes.data(), bytes.size()) : copied;
    ::close(copy[0]);
    ::close(copy[1]);
  }
  return {bytes.data(), static_cast<size_t>(std::max<ssize_t>(got, 0))};
}

// Sorts what lies at most kReorder events out of place.
class Reorder {
 public:
  // True when there is something to give out.
  bool add(const EventBlock& block, EventBlock& out) {
    for (const Event& event : block.events) {
      if (event.thread >= latest_.size()) {
        latest_.resize(event.thread + 1, kTimeMin);
      }
      const int64_t hi = block.hi(event);
      int64_t& latest = latest_[event.thread];
      plain_ &= event.lo == hi && event.lo == static_cast<int64_t>(count_++);
      latest = std::max(latest, event.lo);
      if (!event.has_extras() && event.lo == latest) {
        sorted_ &= held_.events.empty() || held_.events.back().lo <= latest;
        held_.events.push_back(event);
        continue;
      }
      sorted_ &= held_.events.empty() || held_.events.back().lo <= latest;
      held_.add(event, latest, std::max(hi, latest), block.read_value(event),
                block.write_value(event));
    }
    return held_.events.size() >= 2 * EventSource::kReorder && give(EventSource::kReorder, out);
  }
  // Everything there is; the input has paused or ended.
  bool flush(EventBlock& out) { return give(0, out); }
  // Nothing speaks against giving out what is there.
  bool is_plain() const { return plain_ && !held_.events.empty(); }

 private:
  bool give(size_t keep, EventBlock& out) {
    if (!sorted_) {
      std::stable_sort(held_.events.begin(), held_.events.end(),
                       [](const Event& a, const Event& b) { return a.lo < b.lo; });
      sorted_ = true;
    }
    const size_t size = held_.events.size();
    const size_t end = size - std::min(keep, size);
    out.append(held_, 0, end);
    rest_.append(held_, end, size);
    std::swap(held_, rest_);
    rest_.clear();
    return end != 0;
  }

  EventBlock held_;
  EventBlock rest_;              // empty; for its memory
  std::vector<int64_t> latest_;  // start of the last event, by thread
  uint64_t count_ = 0;
  bool sorted_ = true;
  bool plain_ = true;
};

class TextSource : public EventSource {
 public:
  TextSource(Descriptor descriptor, std::string input, bool waits)
      : descriptor_(std::move(descriptor)),
        reader_(StdReader::from_descriptor(descriptor_.get(), input, options())),
        waits_(waits) {
    input_ = std::move(input);
  }

  Result<bool> next(EventBlock& block) override {
    block.clear();
    while (!ended_) {
      if (waits_ && reorder_.is_plain() && pauses() && reorder_.flush(block)) {
        return true;
      }
      const auto more = reader_.next(lines_);
      const bool ready = reorder_.add(lines_, block);
      if (!more) {
        ended_ = true;
        failure_ = more.error();
      } else if (!*more) {
        ended_ = true;
      }
      lines_.clear();
      if (ready) {
        return true;
      }
    }
    if (reorder_.flush(block)) {
      return true;
    }
    if (failure_) {
      return tl::unexpected<Error>(*failure_);
    }
    return false;
  }

  const Symbols& symbols() const override { return reader_.symbols(); }
  const std::vector<capture::Module>& modules() const override { return no_modules_; }
  bool complete() const override { return reader_.complete(); }
  uint64_t lost_events() const override { return reader_.lost_events(); }
  std::vector<std::string> warnings() const override {
    if (reader_.complete()) {
      return {};
    }
    return {missing_events(reader_.lost_events())};
  }

 private:
  static StdOptions options() {
    StdOptions options;
    options.block_events = kBlockEvents;
    return options;
  }

  bool pauses() const {
    pollfd state{descriptor_.get(), POLLIN, 0};
    return ::poll(&state, 1, kPause) == 0;
  }

  Descriptor descriptor_;
  StdReader reader_;
  bool waits_;  // reading may have to wait for a writer
  bool ended_ = false;
  std::optional<Error> failure_;
  EventBlock lines_;
  Reorder reorder_;
  std::vector<capture::Module> no_modules_;
};

// A file in memory: mapped, or read.
class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(std::string text) : text_(std::move(text)) {}
  Bytes(void* address, size_t size) : address_(address), size_(size) {}
  Bytes(Bytes&& other) noexcept
      : text_(std::move(other.text_)),
        address_(std::exchange(other.address_, nullptr)),
        size_(other.size_) {}
  Bytes& operator=(Bytes&&) = delete;
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() {
    if (address_ != nullptr) {
      ::munmap(address_, size_);
    }
  }
  std::string_view view() const {
    return address_ != nullptr ? std::string_view(static_cast<const char*>(address_), size_)
                               : std::string_view(text_);
  }

 private:
  std::string text_;
  void* address_ = nullptr;
  size_t size_ = 0;
};

class CaptureSource : public EventSource {
 public:
  explicit CaptureSource(Bytes bytes, std::string input) : bytes_(std::move(bytes)) {
    input_ = std::move(input);
  }

  Result<bool> start() {
    auto reader = capture::CaptureReader::open(bytes_.view());
    if (!reader) {
      return tl::unexpected<Error>(reader.error());
    }
    reader_ = std::make_unique<capture::CaptureReader>(std::move(*reader));
    return true;
  }

  Result<bool> next(EventBlock& block) override {
    block.clear();
    return reader_->next(block, kBlockEvents);
  }

  const Symbols& symbols() const override { return reader_->capture().trace.symbols; }
  const std::vector<capture::Module>& modules() const override {
    return reader_->capture().modules;
  }
  bool complete() const override { return reader_->capture().problems.empty(); }
  uint64_t lost_events() const override { return reader_->capture().trace.lost_events; }
  std::vector<std::string> warnings() const override { return reader_->capture().problems; }

 private:
  Bytes bytes_;
  std::unique_ptr<capture::CaptureReader> reader_;
};

Result<std::unique_ptr<EventSource>> open_capture(const Descriptor& descriptor, off_t size,
                                                  const std::string& path, std::string input) {
  std::unique_ptr<CaptureSource> source;
  void* const address = size > 0 ? ::mmap(nullptr, static_cast<size_t>(size), PROT_READ,
                                          MAP_PRIVATE, descriptor.get(), 0)
                                 : MAP_FAILED;
  if (address != MAP_FAILED) {
    source = std::make_unique<CaptureSource>(Bytes(address, static_cast<size_t>(size)),
                                             std::move(input));
  } else {
    auto bytes = read_descriptor(descriptor.get(), input_name(path));
    if (!bytes) {
      return tl::unexpected<Error>(bytes.error());
    }
    source = std::make_unique<CaptureSource>(Bytes(std::move(*bytes)), std::move(input));
  }
  if (auto started = source->start(); !started) {
    Error error = started.error();
    error.input = source->input();
    return tl::unexpected<Error>(std::move(error));
  }
  return source;
}

}  // namespace

Result<std::unique_ptr<EventSource>> EventSource::open(const std::string& path,
                                                       InputFormat format) {
  std::string input = input_name(path);
  const bool standard = path == "-";
  const int fd = standard ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return tl::unexpected<Error>(Error{ErrorKind::kUnreadable,
                                       input,
                                       {},
                                       fmt::format("cannot be opened: {}", std::strerror(errno))});
  }
  Descriptor descriptor(fd, !standard);
  struct stat status {};
  const bool regular =
      ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && ::lseek(fd, 0, SEEK_CUR) == 0;
  if (format == InputFormat::kAuto) {
    format =
        capture::looks_like_capture(first_bytes(fd)) ? InputFormat::kCapture : InputFormat::kStd;
  }
  if (format == InputFormat::kCapture) {
    return open_capture(descriptor, regular ? status.st_size : 0, path, std::move(input));
  }
  return std::make_unique<TextSource>(std::move(descriptor), std::move(input), !regular);
}

}  // namespace tsomon
