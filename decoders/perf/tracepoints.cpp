#include "decoders/perf/tracepoints.h"

#include <charconv>
#include <utility>

#include "decoders/perf/cursor.h"

namespace tsomon::perf {

namespace {

std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// The number after `key` in the line.
std::optional<uint64_t> number_after(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view digits = line.substr(at + key.size());
  uint64_t number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

// The text of a tracefs file events/SYSTEM/NAME/format.
void read_event_format(std::string_view system, std::string_view text,
                       std::unordered_map<uint64_t, Tracepoint>& points) {
  Tracepoint point;
  point.system = system;
  std::optional<uint64_t> id;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    constexpr std::string_view kName = "name: ";
    if (line.substr(0, kName.size()) == kName) {
      point.name = line.substr(kName.size());
    } else if (line.substr(0, 4) == "ID: ") {
      id = number_after(line, "ID: ");
    } else if (line.find(" __probe_ip;") != std::string_view::npos) {
      point.probe_ip = number_after(line, "offset:");
    } else if (line.find(" __probe_func;") != std::string_view::npos) {
      point.return_function = number_after(line, "offset:");
    } else if (point.name == "sched_switch" && line.find(" next_pid;") != std::string_view::npos) {
      point.next_thread = number_after(line, "offset:");
    }
  }
  if (id) {
    points[*id] = std::move(point);
  }
}

// A text that ends with NUL.
std::string_view take_name(Cursor& in) {
  const std::string_view name = in.text();
  in.take_bytes(name.size() + 1);
  return name;
}

std::string_view take_file(Cursor& in) {
  const auto size = in.take<uint64_t>();
  return in.take_bytes(size);
}

}  // namespace

bool read_tracing_data(std::string_view bytes, std::unordered_map<uint64_t, Tracepoint>& points) {
  constexpr std::string_view kMagic = "\x17\x08\x44tracing";
  Cursor in(bytes);
  if (in.take_bytes(kMagic.size()) != kMagic) {
    return false;
  }
  take_name(in);             // the version
  in.take_bytes(1 + 1 + 4);  // byte order, size of a long, of a page
  for (const std::string_view part : {"header_page", "header_event"}) {
    if (take_name(in) != part) {
      return false;
    }
    take_file(in);
  }
  const auto own = in.take<uint32_t>();
  for (uint32_t i = 0; i < own && in.ok(); ++i) {
    read_event_format("ftrace", take_file(in), points);
  }
  const auto systems = in.take<uint32_t>();
  for (uint32_t i = 0; i < systems && in.ok(); ++i) {
    const std::string_view system = take_name(in);
    const auto count = in.take<uint32_t>();
    for (uint32_t j = 0; j < count && in.ok(); ++j) {
      read_event_format(system, take_file(in), points);
    }
  }
  return in.ok();
}

}  // namespace tsomon::perf
