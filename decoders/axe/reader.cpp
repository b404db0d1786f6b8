#include "decoders/axe/reader.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "decoders/std/lines.h"
#include "decoders/std/text.h"
#include "tso/support/open_file.h"

namespace tsomon {
namespace {

using std_trace::quoted;

constexpr size_t kBufferBytes = size_t{256} << 10;
constexpr size_t kMaxEvents = 0xFFFFFFF0U;

// One line, taken apart from the left. White space between tokens is skipped.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text.substr(0, text.find('#'))) { skip_space(); }

  bool at_end() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  bool accept(std::string_view token) {
    if (rest_.substr(0, token.size()) != token) {
      return false;
    }
    rest_.remove_prefix(token.size());
    skip_space();
    return true;
  }

  // A decimal number of at most 64 bits.
  bool number(uint64_t* value) {
    size_t digits = 0;
    uint64_t result = 0;
    for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; ++digits) {
      const auto digit = static_cast<uint64_t>(rest_[digits] - '0');
      if (result > (UINT64_MAX - digit) / 10) {
        return false;
      }
      result = result * 10 + digit;
    }
    if (digits == 0) {
      return false;
    }
    *value = result;
    rest_.remove_prefix(digits);
    skip_space();
    return true;
  }

 private:
  void skip_space() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t' ||
                              rest_.front() == '\r' || rest_.front() == '\f')) {
      rest_.remove_prefix(1);
    }
  }

  std::string_view rest_;
};

}  // namespace

std::optional<bool> looks_like_axe(std::string_view beginning) {
  for (;;) {
    const size_t end = beginning.find('\n');
    const std::string_view text = beginning.substr(0, end);
    if (Line line(text); !line.at_end()) {
      if (text.find('|') != std::string_view::npos) {
        return false;
      }
      if (end == std::string_view::npos) {
        return std::nullopt;
      }
      uint64_t thread = 0;
      return line.accept("check")
                 ? line.at_end()
                 : line.accept("final") || (line.number(&thread) && line.accept(":"));
    }
    if (end == std::string_view::npos) {
      return std::nullopt;
    }
    beginning.remove_prefix(end + 1);
  }
}

class AxeReader::Impl {
 public:
  template <typename... Source>
  Impl(std::string name, Source... source)
      : name_(std::move(name)), lines_(source..., kBufferBytes), at_(lines_.begin()) {}

  Result<bool> next(AxeTest& test) {
    test = AxeTest();
    test_ = &test;
    finals_.clear();
    if (failed_) {
      return tl::unexpected<Error>(*failed_);
    }
    while (true) {
      if (at_ == lines_.end()) {
        auto more = lines_.fill();
        if (!more) {
          failed_ = std::move(more.error());
          failed_->input = name_;
          return tl::unexpected<Error>(*failed_);
        }
        at_ = lines_.begin();
        if (!*more) {
          return at_end();
        }
      }
      const auto* end =
          static_cast<const char*>(std::memchr(at_, '\n', static_cast<size_t>(lines_.end() - at_)));
      Line line({at_, static_cast<size_t>(end - at_)});
      at_ = end + 1;
      ++line_;
      if (line.at_end()) {
        continue;
      }
      if (test.first_line == 0) {
        test.first_line = line_;
      }
      bool ended = false;
      if (!parse(line, &ended)) {
        return wrong();
      }
      if (ended) {
        any_test_ = true;
        return true;
      }
    }
  }

 private:
  Result<bool> at_end() {
    if (test_->first_line != 0) {
      any_test_ = true;
      return true;
    }
    if (!any_test_) {
      expected_ = "at least one operation";
      found_ = "nothing";
      return wrong();
    }
    return false;
  }

  Result<bool> wrong() {
    failed_ = Error{ErrorKind::kMalformed, name_, fmt::format("line {}", line_),
                    fmt::format("expected {}, found {}", expected_, found_)};
    return tl::unexpected<Error>(*failed_);
  }

  bool expect(const char* what, const Line& line) {
    expected_ = what;
    found_ = line.at_end() ? "the end of the line" : quoted(line.rest());
    return false;
  }

  bool need(Line& line, const char* token) {
    return line.accept(token) || expect(fmt::format("'{}'", token).c_str(), line);
  }

  bool value(Line& line, uint64_t* value) {
    return line.number(value) || expect("a number of at most 64 bits", line);
  }

  // `M[number]` or `v` and a number.
  bool location(Line& line, uint64_t* id) {
    uint64_t number = 0;
    if (line.accept("M")) {
      if (!need(line, "[") || !value(line, &number) || !need(line, "]")) {
        return false;
      }
    } else if (line.accept("v")) {
      if (!value(line, &number)) {
        return false;
      }
    } else {
      return expect("a location, M[number]", line);
    }
    *id = test_->trace.symbols.names.intern(fmt::format("M[{}]", number));
    return true;
  }

  bool parse(Line& line, bool* ended) {
    if (line.accept("check")) {
      *ended = true;
      return line.at_end() || expect("nothing after 'check'", line);
    }
    if (line.accept("final")) {
      return parse_final(line);
    }
    return parse_operation(line);
  }

  bool parse_final(Line& line) {
    InitialValue final_value;
    if (!location(line, &final_value.location.address) || !need(line, "==") ||
        !value(line, &final_value.value)) {
      return false;
    }
    if (!line.at_end()) {
      return expect("nothing after the value", line);
    }
    const auto [at, is_new] = finals_.try_emplace(final_value.location.address, final_value.value);
    if (!is_new && at->second != final_value.value) {
      expected_ = fmt::format("one final value of a location ({})", at->second);
      found_ = fmt::format("{}", final_value.value);
      return false;
    }
    if (is_new) {
      test_->final_values.push_back(final_value);
    }
    return true;
  }

  bool parse_operation(Line& line) {
    uint64_t thread = 0;
    if (!line.number(&thread)) {
      return expect("a thread's number, 'final' or 'check'", line);
    }
    if (!need(line, ":")) {
      return false;
    }
    Event event;
    event.thread = test_->trace.symbols.threads.intern(fmt::format("{}", thread));
    std::optional<uint64_t> read;
    std::optional<uint64_t> written;
    if (line.accept("sync")) {
      event.set_kind(EventKind::kFence);
    } else if (const bool brace = line.accept("{"); brace || line.accept("<")) {
      event.set_kind(EventKind::kReadModifyWrite);
      if (!parse_locked(line, &event, &read, &written) || !need(line, brace ? "}" : ">")) {
        return false;
      }
    } else if (!parse_access(line, &event, &read, &written)) {
      return false;
    }
    if (!parse_stamps(line)) {
      return false;
    }
    EventBlock& block = test_->trace;
    if (block.events.size() >= kMaxEvents) {
      expected_ = fmt::format("at most {} operations in one test", kMaxEvents);
      found_ = "more";
      return false;
    }
    const auto place = static_cast<int64_t>(block.events.size());
    block.add(event, place, place, read, written);
    return true;
  }

  bool parse_locked(Line& line, Event* event, std::optional<uint64_t>* read,
                    std::optional<uint64_t>* written) {
    uint64_t first = 0;
    uint64_t second = 0;
    uint64_t written_to = 0;
    if (!location(line, &event->address) || !need(line, "==") || !value(line, &first) ||
        !need(line, ";")) {
      return false;
    }
    const Line before = line;
    if (!location(line, &written_to)) {
      return false;
    }
    if (written_to != event->address) {
      return expect("the location that was read", before);
    }
    if (!need(line, ":=") || !value(line, &second)) {
      return false;
    }
    *read = first;
    *written = second;
    return true;
  }

  bool parse_access(Line& line, Event* event, std::optional<uint64_t>* read,
                    std::optional<uint64_t>* written) {
    if (!location(line, &event->address)) {
      return false;
    }
    const bool loads = line.accept("==");
    if (!loads && !line.accept(":=")) {
      return expect("'==' or ':='", line);
    }
    uint64_t number = 0;
    if (!value(line, &number)) {
      return false;
    }
    event->set_kind(loads ? EventKind::kRead : EventKind::kWrite);
    (loads ? *read : *written) = number;
    return true;
  }

  // `@ begin : end`, either may be missing.
  bool parse_stamps(Line& line) {
    if (line.accept("@")) {
      uint64_t stamp = 0;
      line.number(&stamp);
      if (!need(line, ":")) {
        return false;
      }
      line.number(&stamp);
    }
    return line.at_end() || expect("'@' and time stamps, or the end of the line", line);
  }

  std::string name_;
  std_trace::LineBuffer lines_;
  const char* at_;
  uint64_t line_ = 0;
  bool any_test_ = false;
  std::optional<Error> failed_;
  std::string expected_;
  std::string found_;
  AxeTest* test_ = nullptr;
  std::unordered_map<uint64_t, uint64_t> finals_;
};

AxeReader::AxeReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AxeReader::AxeReader(AxeReader&&) noexcept = default;
AxeReader& AxeReader::operator=(AxeReader&&) noexcept = default;
AxeReader::~AxeReader() = default;

Result<AxeReader> AxeReader::open(const std::string& path) {
  if (path == "-") {
    return AxeReader(std::make_unique<Impl>("<stdin>", STDIN_FILENO, false));
  }
  const int fd = open_input_file(path);
  if (fd < 0) {
    return tl::unexpected<Error>(Error{ErrorKind::kUnreadable,
                                       path,
                                       {},
                                       fmt::format("cannot be opened: {}", std::strerror(errno))});
  }
  return AxeReader(std::make_unique<Impl>(path, fd, true));
}

AxeReader AxeReader::from_descriptor(int fd, std::string name) {
  return AxeReader(std::make_unique<Impl>(std::move(name), fd, false));
}

AxeReader AxeReader::from_text(std::string_view text, std::string name) {
  return AxeReader(std::make_unique<Impl>(std::move(name), text));
}

Result<bool> AxeReader::next(AxeTest& test) { return impl_->next(test); }

}  // namespace tsomon
