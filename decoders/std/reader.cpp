#include "decoders/std/reader.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "decoders/std/lines.h"
#include "decoders/std/ops.h"
#include "decoders/std/scan.h"
#include "decoders/std/text.h"
#include "decoders/std/token_cache.h"
#include "tso/model/cancelled_units.h"
#include "tso/support/open_file.h"

namespace tsomon {

using namespace std_trace;

class StdReader::Impl {
 public:
  template <typename... Source>
  Impl(std::string name, const StdOptions& options, Source... source)
      : name_(std::move(name)),
        options_(options),
        lines_(source..., options.buffer_bytes),
        at_(lines_.begin()) {
    options_.block_events = std::max<size_t>(options_.block_events, 1);
  }

  Result<bool> next(EventBlock& block);

  Symbols symbols_;
  bool complete_ = true;
  uint64_t lost_events_ = 0;
  bool sampled_ = false;
  bool recorded_ = false;
  Damage damage_ = Damage::kNone;
  bool nothing_counts_ = false;
  bool expects_end_ = false;  // whole() is the last line of what was written to the end
  bool whole_ = false;
  bool atomics_ = false;
  bool may_cancel_ = false;
  Selection selection_;
  uint64_t skipped_lines_ = 0;
  uint64_t line_ = 0;
  size_t capacity() const { return lines_.capacity(); }

 private:
  struct ThreadState {
    int64_t latest_lo = kTimeMin;  // no later event of the thread may end before this
    uint64_t open_units = 0;
  };

  // Not yet an Event: one whose fields are set one by one and which is then copied makes the processor
  // wait until those stores are in the cache.
  struct ParsedEvent {
    EventKind kind = EventKind::kRead;
    ThreadId thread = 0;
    uint64_t address = 0;
    uint32_t size = 0;
    uint32_t location = Event::kNoLocation;
    std::optional<uint64_t> read;
    std::optional<uint64_t> written;
    Interval interval;

    void put_into(Event& event) const {
      event.address = address;
      event.location = location;
      event.thread = thread;
      event.size = size & Event::kMaxSize;
      event.set_kind(kind);
    }
  };

  // What is split ahead of being parsed.
  struct Line {
    Fields fields;
    LineKind kind = LineKind::kNothing;
    OpField op;
  };
  static constexpr size_t kAhead = 8;

  size_t split_ahead(size_t most, const char* end);
  bool parse(const Line& line, EventBlock& block);
  bool parse_operand(const OpField& field, ParsedEvent& parsed);
  bool parse_access(const OpField& field, ParsedEvent& parsed);
  bool parse_values(const OpField& field, size_t begin, ParsedEvent& parsed);
  bool parse_object(const OpField& field, ParsedEvent& parsed);
  bool parse_block(const OpField& field, ParsedEvent& parsed);
  bool read_interval(const Fields& fields, ParsedEvent& parsed);
  bool parse_location(std::string_view text, LocationKey& key);
  bool parse_header(std::string_view op);
  bool parse_set(std::string_view text);
  bool parse_init(std::string_view text);
  bool parse_lost(std::string_view text);
  uint32_t thread_id(const char* token, const char* end);
  uint32_t new_thread(std::string_view text);
  uint32_t location_id(const char* token, const char* end);
  uint32_t label_id(const char* token, const char* end);

  // All return false, for `return wrong(...)`.
  [[gnu::cold, gnu::noinline]] bool wrong(std::string message);
  [[gnu::cold, gnu::noinline]] bool wrong(const char* expected, std::string_view found);
  [[gnu::cold, gnu::noinline]] bool wrong_op(std::string_view op);
  [[gnu::cold, gnu::noinline]] bool no_open_unit(ThreadId thread, EventKind end);
  [[gnu::cold, gnu::noinline]] bool out_of_order(int64_t hi, int64_t latest_lo);
  tl::unexpected<Error> failed(Error error);

  std::string name_;
  StdOptions options_;
  LineBuffer lines_;
  const char* at_;
  std::array<Line, kAhead> ahead_;
  int64_t events_ = 0;
  std::vector<ThreadState> states_;
  std::unordered_map<std::string, size_t> set_numbers_;  // by name
  TokenCache threads_{8};
  TokenCache names_{13, 16};
  TokenCache labels_{8};
  TokenCache locations_{10};
  std::string message_;
  std::optional<Error> failure_;
};

bool StdReader::Impl::wrong(std::string message) {
  message_ = std::move(message);
  return false;
}

bool StdReader::Impl::wrong(const char* expected, std::string_view found) {
  return wrong(fmt::format("expected {}, found {}", expected, quoted(found)));
}

bool StdReader::Impl::wrong_op(std::string_view op) {
  std::string known;
  for (const Op& each : kOps) {
    if (each.form != OpForm::kAnyOperand) {
      const std::string_view word(reinterpret_cast<const char*>(&each.word), sizeof each.word);
      known.append(known.empty() ? "" : " ").append(word.substr(0, word.find('\0')));
    }
  }
  return wrong(fmt::format("expected an operation ({}), found {}", known, quoted(op)));
}

bool StdReader::Impl::no_open_unit(ThreadId thread, EventKind end) {
  return wrong(fmt::format("expected a unit of thread {} to be open, found '{}' without 'begin'",
                           quoted(symbols_.threads.text(thread)),
                           end == EventKind::kUnitEnd ? "end" : "cancel"));
}

bool StdReader::Impl::out_of_order(int64_t hi, int64_t latest_lo) {
  return wrong(
      fmt::format("expected an interval in program order, found one that ends at {}, before an "
                  "earlier event of the thread begins at {}",
                  hi, latest_lo));
}

tl::unexpected<Error> StdReader::Impl::failed(Error error) {
  error.input = name_;
  failure_ = error;
  return tl::unexpected<Error>(std::move(error));
}

uint32_t StdReader::Impl::new_thread(std::string_view text) {
  if (text.empty() || text == "-") {
    return TokenCache::kUncached;
  }
  const uint32_t id = symbols_.threads.intern(text);
  if (id >= states_.size()) {
    states_.resize(id + 1);
  }
  return id;
}

inline uint32_t StdReader::Impl::thread_id(const char* token, const char* end) {
  const auto length = static_cast<size_t>(end - token);
  return threads_.get(token, length, [&] { return new_thread({token, length}); });
}

inline uint32_t StdReader::Impl::location_id(const char* token, const char* end) {
  const auto length = static_cast<size_t>(end - token);
  if (length == 0) {
    return Event::kNoLocation;
  }
  uint32_t number = 0;
  if (short_number(token, length, number)) {
    return number | Event::kNumericLocation;
  }
  return locations_.get(token, length, [&] {
    const auto [text, within] = split_place({token, length});
    return symbols_.intern_place(text, within);
  });
}

uint32_t StdReader::Impl::label_id(const char* token, const char* end) {
  const auto length = static_cast<size_t>(end - token);
  return labels_.get(token, length, [&] { return symbols_.labels.intern({token, length}); });
}

bool StdReader::Impl::parse_location(std::string_view text, LocationKey& key) {
  if (text.empty()) {
    return wrong("a location", text);
  }
  if (text[0] == '0') {
    if (const auto range = parse_byte_range(text)) {
      if (!*range) {
        return wrong(range->error().message);
      }
      key = **range;
      return true;
    }
  }
  key.size = 0;
  key.address = names_.get(text.data(), text.size(), [&] { return symbols_.names.intern(text); });
  return true;
}

bool StdReader::Impl::parse_set(std::string_view text) {
  const size_t semicolon = text.find(';');
  if (semicolon == std::string_view::npos || semicolon == 0) {
    return wrong("set(name;location,...)", text);
  }
  AtomicSet set{std::string(text.substr(0, semicolon)), {}};
  for (size_t begin = semicolon + 1; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    LocationKey key;
    if (!parse_location(text.substr(begin, end - begin), key)) {
      return false;
    }
    set.members.push_back(key);
    begin = end + 1;
  }
  const auto [known, is_new] = set_numbers_.try_emplace(set.name, symbols_.sets.size());
  if (is_new) {
    symbols_.sets.push_back(std::move(set));
    return true;
  }
  std::vector<LocationKey>& members = symbols_.sets[known->second].members;
  members.insert(members.end(), set.members.begin(), set.members.end());
  return true;
}

bool StdReader::Impl::parse_init(std::string_view text) {
  if (text == "unknown") {
    symbols_.initial_zero = false;
    return true;
  }
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos) {
    return wrong("init(location=value) or init(unknown)", text);
  }
  InitialValue initial;
  if (!parse_location(text.substr(0, equals), initial.location)) {
    return false;
  }
  const auto value = parse_value(text.substr(equals + 1), initial.location.size);
  if (!value) {
    return wrong(value.error().message);
  }
  initial.value = *value;
  symbols_.initial_values.push_back(initial);
  return true;
}

bool StdReader::Impl::parse_lost(std::string_view text) {
  const auto count = parse_value(text, 0);
  if (!count || text[0] == '-') {
    return wrong("lost(number of lost events, 0 if unknown)", text);
  }
  complete_ = false;
  lost_events_ += *count;
  return true;
}

constexpr const char* kHeaders =
    "a header set(...), init(...), lost(...), sampled(), recorded(), recorded(ends), ends(), "
    "damaged(), whole(), "
    "atomics(), cancels() or selected(...)";

bool StdReader::Impl::parse_header(std::string_view op) {
  const size_t open = op.find('(');
  if (open == std::string_view::npos || op.back() != ')') {
    return wrong(kHeaders, op);
  }
  const std::string_view name = op.substr(0, open);
  const std::string_view text = op.substr(open + 1, op.size() - open - 2);
  if (name == "set") {
    return parse_set(text);
  }
  if (name == "init") {
    return parse_init(text);
  }
  if (name == "lost") {
    return parse_lost(text);
  }
  if (name == "sampled" && text.empty()) {
    sampled_ = true;
    return true;
  }
  if (name == "atomics" && text.empty()) {
    atomics_ = true;
    return true;
  }
  if (name == "recorded" && (text.empty() || text == "ends")) {
    recorded_ = true;
    expects_end_ = expects_end_ || !text.empty();
    return true;
  }
  if (name == "damaged" && (text.empty() || text == "ends" || text == "orders")) {
    damage_ = std::max(damage_, text == "ends" ? Damage::kEnds : Damage::kGaps);
    nothing_counts_ = nothing_counts_ || text == "orders";
    complete_ = false;
    return true;
  }
  if (name == "ends" && text.empty()) {
    expects_end_ = true;
    return true;
  }
  if (name == "whole" && text.empty()) {
    whole_ = true;
    return true;
  }
  if (name == "cancels" && text.empty()) {
    may_cancel_ = true;
    return true;
  }
  if (name == "selected" && (text == "accesses=sets" || text == "outside=stores")) {
    (text == "accesses=sets" ? selection_.only_sets : selection_.stores_outside) = true;
    return true;
  }
  return wrong(kHeaders, op);
}

// The text of an access is LOCATION, LOCATION=VALUE or, of a locked operation, LOCATION=READ,WRITTEN.
[[gnu::always_inline]] inline bool StdReader::Impl::parse_access(const OpField& field,
                                                                 ParsedEvent& parsed) {
  const bool has_values = field.op->reads || field.op->writes;
  const size_t equals = has_values ? field.operand.rfind('=') : std::string_view::npos;
  LocationKey location;
  if (!field.has_operand) {
    return wrong("OP(location)", field.all);
  }
  if (!parse_location(field.operand.substr(0, equals), location)) {
    return false;
  }
  parsed.address = location.address;
  parsed.size = location.size;
  return equals == std::string_view::npos || parse_values(field, equals + 1, parsed);
}

bool StdReader::Impl::parse_values(const OpField& field, size_t begin, ParsedEvent& parsed) {
  const Op& op = *field.op;
  std::string_view read = field.operand.substr(begin);
  std::string_view written = read;
  const bool both = op.reads && op.writes;
  if (both) {
    const size_t comma = read.find(',');
    if (comma == std::string_view::npos) {
      return wrong("two values, read and written, as in rmw(x=1,2)", field.operand);
    }
    written.remove_prefix(comma + 1);
    read = read.substr(0, comma);
    // Of a locked operation either value alone may be known.
    if (read.empty() && written.empty()) {
      return wrong("a value", field.operand);
    }
  }
  const auto parse = [&](std::string_view text, std::optional<uint64_t>& into) {
    const auto value = parse_value(text, parsed.size);
    if (!value) {
      return wrong(value.error().message);
    }
    into = *value;
    return true;
  };
  if (op.reads && !(both && read.empty()) && !parse(read, parsed.read)) {
    return false;
  }
  return !op.writes || (both && written.empty()) || parse(written, parsed.written);
}

// Memory that is no set: its size is the value.
bool StdReader::Impl::parse_block(const OpField& field, ParsedEvent& parsed) {
  const size_t equals = field.operand.find('=');
  const std::string_view text = field.operand.substr(0, equals);
  const auto address = parse_value(text, 0);
  if (!address || text.size() < 3 || text.front() != '0') {
    return wrong(field.op->form == OpForm::kObject ? "OP(0xADDRESS+SIZE) or OP(0xADDRESS=SIZE)"
                                                   : "OP(0xADDRESS)",
                 field.all);
  }
  parsed.address = *address;
  if (equals == std::string_view::npos) {
    return true;
  }
  const auto size = parse_value(field.operand.substr(equals + 1), 0);
  if (!size || *size == 0 || *address > ~*size) {
    return wrong("a size in bytes", field.operand);
  }
  parsed.written = *size;
  return true;
}

bool StdReader::Impl::parse_object(const OpField& field, ParsedEvent& parsed) {
  if (field.operand.find('=') != std::string_view::npos) {
    return parse_block(field, parsed);
  }
  const auto object = parse_byte_range(field.operand);
  if (!object) {
    return wrong("OP(0xADDRESS+SIZE)", field.all);
  }
  if (!*object) {
    return wrong(object->error().message);
  }
  parsed.address = (*object)->address;
  parsed.size = (*object)->size;
  return true;
}

[[gnu::always_inline]] inline bool StdReader::Impl::parse_operand(const OpField& field,
                                                                  ParsedEvent& parsed) {
  const char* const arg = field.operand.data();
  const size_t length = field.operand.size();
  switch (field.op->form) {
    case OpForm::kLocation: {
      if (length - 1 < kShortToken && *arg != '0') {
        // The common case in one go: the bytes that are searched for '=' are the cache's key.
        const __m128i key = token_key(arg, length);
        if (!(field.op->reads || field.op->writes) || !contains(key, '=')) {
          parsed.address = names_.get(key, [&] { return symbols_.names.intern({arg, length}); });
          return true;
        }
      }
      return parse_access(field, parsed);
    }
    case OpForm::kThread: {
      const uint32_t other = thread_id(arg, arg + length);
      if (other == TokenCache::kUncached) {
        return wrong("OP(thread)", field.all);
      }
      if (other == parsed.thread) {
        return wrong("another thread than the event's own", field.all);
      }
      parsed.address = other;
      return true;
    }
    case OpForm::kText:
      if (!field.has_operand) {
        return wrong("OP(text)", field.all);
      }
      parsed.address = label_id(arg, arg + length);
      return true;
    case OpForm::kBegin:
      parsed.address = label_id(arg, arg + length);
      return true;
    case OpForm::kEnd:
      return states_[parsed.thread].open_units != 0 || no_open_unit(parsed.thread, parsed.kind);
    case OpForm::kBare:
      return length == 0 || wrong("no operand", field.all);
    case OpForm::kObject:
      return parse_object(field, parsed);
    case OpForm::kAddress:
      return parse_block(field, parsed);
    case OpForm::kAnyOperand:
      return true;
  }
  return true;
}

// "LO..HI", and of a lock "LO..HI!" (tso/model/lock_order.h).
[[gnu::always_inline]] inline bool StdReader::Impl::read_interval(const Fields& fields,
                                                                  ParsedEvent& parsed) {
  const char* const begin = fields.location_end + 1;
  const bool by_start = (kind_mask(parsed.kind) & kinds::kLocks) != 0 && fields.end[-1] == '!';
  const auto interval =
      parse_interval({begin, static_cast<size_t>(fields.end - begin) - (by_start ? 1 : 0)});
  if (!interval) {
    return wrong(interval.error().message);
  }
  parsed.interval = *interval;
  if (by_start) {
    parsed.written = static_cast<uint64_t>(interval->lo);
  }
  return true;
}

// One event or header; false leaves the reason in message_ and the block as it was.
inline bool StdReader::Impl::parse(const Line& line, EventBlock& block) {
  const Fields& fields = line.fields;
  const char* const op_begin = fields.thread_end + 1;
  const uint32_t thread = thread_id(fields.begin, fields.thread_end);
  if (thread == TokenCache::kUncached) {
    if (fields.begin == fields.thread_end) {
      return wrong("a thread before the first '|'", {fields.begin, fields.end});
    }
    return parse_header({op_begin, static_cast<size_t>(fields.op_end - op_begin)});
  }

  const OpField& field = line.op;
  if (field.op == nullptr) {
    return wrong_op(field.all);
  }
  if (!field.bracketed) {
    return wrong("OP(operand)", field.all);
  }
  ParsedEvent parsed;
  parsed.kind = field.op->kind;
  parsed.thread = thread;
  parsed.interval = {events_, events_};
  if (!parse_operand(field, parsed) ||
      (fields.location_end != fields.end && !read_interval(fields, parsed))) {
    return false;
  }

  const Interval& interval = parsed.interval;
  ThreadState& state = states_[thread];
  if (interval.hi < state.latest_lo) {
    return out_of_order(interval.hi, state.latest_lo);
  }
  state.latest_lo = std::max(state.latest_lo, interval.lo);
  state.open_units += field.op->form == OpForm::kBegin;
  state.open_units -= field.op->form == OpForm::kEnd;
  if (fields.op_end != fields.end) {
    parsed.location = location_id(fields.op_end + 1, fields.location_end);
  }
  ++events_;
  Event& event = block.events.emplace_back();
  parsed.put_into(event);
  if (atomics_ && (parsed.read || parsed.written)) {
    event.set_atomic();
  }
  event.lo = interval.lo;
  if (interval.lo != interval.hi || parsed.read || parsed.written) {
    block.complete(event, interval.hi, parsed.read, parsed.written);
  }
  return true;
}

// The names in a few lines are on their way to the processor while the lines before are parsed.
inline size_t StdReader::Impl::split_ahead(size_t most, const char* end) {
  size_t count = 0;
  for (; count != std::min(most, kAhead) && at_ != end; ++count) {
    Line& line = ahead_[count];
    line.kind = split(at_, line.fields);
    at_ = line.fields.next;
    if (line.kind != LineKind::kFields) {
      continue;
    }
    line.op = op_field(line.fields.thread_end + 1, line.fields.op_end);
    const size_t length = line.op.operand.size();
    if (line.op.op != nullptr && line.op.op->form == OpForm::kLocation &&
        length - 1 < kShortToken) {
      names_.prefetch(token_key(line.op.operand.data(), length));
    }
  }
  return count;
}

Result<bool> StdReader::Impl::next(EventBlock& block) {
  block.clear();
  if (failure_) {
    return tl::unexpected<Error>(*failure_);
  }
  block.events.reserve(options_.block_events);
  for (;;) {
    const char* const end = lines_.end();
    while (at_ != end && block.events.size() < options_.block_events) {
      if (line_ == 0 && std::memcmp(at_, "\xEF\xBB\xBF", 3) == 0) {
        at_ += 3;  // byte order mark
      }
      const size_t count = split_ahead(options_.block_events - block.events.size(), end);
      for (size_t i = 0; i != count; ++i) {
        ++line_;
        const Line& line = ahead_[i];
        if (line.kind == LineKind::kFields ? parse(line, block) : line.kind == LineKind::kNothing) {
          continue;
        }
        if (line.kind != LineKind::kFields) {
          wrong(wrong_line(line.kind), {line.fields.begin, line.fields.end});
        }
        if (!options_.skip_malformed) {
          return failed({ErrorKind::kMalformed, {}, fmt::format("line {}", line_), message_});
        }
        ++skipped_lines_;
        complete_ = false;
      }
    }
    if (block.events.size() >= options_.block_events) {
      return true;
    }
    // What is there is delivered before a read that may wait for a slow writer.
    if (!block.events.empty()) {
      return true;
    }
    const auto more = lines_.fill();
    at_ = lines_.begin();
    if (!more) {
      return failed(more.error());
    }
    if (!*more) {
      break;
    }
  }
  if (events_ == 0) {
    return failed({ErrorKind::kMalformed,
                   {},
                   {},
                   fmt::format("no events: expected lines THREAD|OP|LOCATION, found none in {} "
                               "lines",
                               line_)});
  }
  return false;
}

StdReader::StdReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StdReader::StdReader(StdReader&&) noexcept = default;
StdReader& StdReader::operator=(StdReader&&) noexcept = default;
StdReader::~StdReader() = default;

Result<StdReader> StdReader::open(const std::string& path, const StdOptions& options) {
  if (path == "-") {
    return from_descriptor(STDIN_FILENO, "<stdin>", options);
  }
  const int fd = open_input_file(path);
  if (fd < 0) {
    return tl::unexpected<Error>(Error{ErrorKind::kUnreadable,
                                       path,
                                       {},
                                       fmt::format("cannot be opened: {}", std::strerror(errno))});
  }
  return StdReader(std::make_unique<Impl>(path, options, fd, true));
}

StdReader StdReader::from_descriptor(int fd, std::string name, const StdOptions& options) {
  return StdReader(std::make_unique<Impl>(std::move(name), options, fd, false));
}

StdReader StdReader::from_text(std::string_view text, std::string name, const StdOptions& options) {
  return StdReader(std::make_unique<Impl>(std::move(name), options, text));
}

Result<bool> StdReader::next(EventBlock& block) {
  auto more = impl_->next(block);
  if (more && !*more && impl_->expects_end_ && !impl_->whole_) {
    impl_->complete_ = false;
  }
  return more;
}
const Symbols& StdReader::symbols() const { return impl_->symbols_; }
Symbols StdReader::take_symbols() { return std::move(impl_->symbols_); }
bool StdReader::complete() const { return impl_->complete_; }
uint64_t StdReader::lost_events() const { return impl_->lost_events_; }
bool StdReader::recorded() const { return impl_->recorded_; }
Damage StdReader::damage() const { return impl_->damage_; }
bool StdReader::nothing_counts() const { return impl_->nothing_counts_; }
bool StdReader::atomics() const { return impl_->atomics_; }
bool StdReader::sampled() const { return impl_->sampled_; }
bool StdReader::may_cancel() const { return impl_->may_cancel_; }
Selection StdReader::selection() const { return impl_->selection_; }
uint64_t StdReader::skipped_lines() const { return impl_->skipped_lines_; }
uint64_t StdReader::lines() const { return impl_->line_; }
size_t StdReader::buffer_bytes() const { return impl_->capacity(); }

}  // namespace tsomon
