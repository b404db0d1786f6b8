#include "monitor/service/status_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "monitor/report/json_fields.h"
#include "tso/support/printable.h"

namespace tsomon::service {
namespace {

using Json = nlohmann::ordered_json;
using report::number_of;
using report::real_of;

const Json& part(const Json& object, const char* key) {
  static const Json kNone = Json::object();
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? *found : kNone;
}
std::string words_of(const Json& object, const char* key) {
  const Json& value = part(object, key);
  return value.is_string() ? printable(value.get_ref<const std::string&>()) : std::string();
}
std::string percent(double share) { return fmt::format("{:.3g}%", 100 * share); }
std::string rate(double number) {
  return number >= 100 ? fmt::format("{:.0f}", number) : fmt::format("{:.3g}", number);
}
std::string megabytes(uint64_t bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 20));
}

std::string duration_words(double seconds) {
  const auto whole = static_cast<uint64_t>(std::clamp(seconds, 0.0, 1e12));
  const uint64_t days = whole / 86400;
  const uint64_t hours = whole / 3600 % 24;
  const uint64_t minutes = whole / 60 % 60;
  if (days != 0) {
    return fmt::format("{} d {} h", days, hours);
  }
  return hours != 0     ? fmt::format("{} h {} min", hours, minutes)
         : minutes != 0 ? fmt::format("{} min {} s", minutes, whole % 60)
                        : fmt::format("{} s", whole);
}

std::string list_of(const Json& entries, const char* name, const char* count) {
  std::string list;
  for (const Json& each : entries) {
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", words_of(each, name),
                        number_of(each, count));
  }
  return list;
}

std::string state_text(const Json& target) {
  const uint64_t pid = number_of(target, "pid");
  const std::string why = words_of(target, "why");
  return words_of(target, "state") + (pid != 0 ? fmt::format(" process {}", pid) : "") +
         fmt::format(" since {}", words_of(target, "since")) + (why.empty() ? "" : ": " + why);
}

std::string head_line(const Json& status) {
  return fmt::format("tsomon {}, process {}, since {} ({})", words_of(status, "version"),
                     number_of(status, "pid"), words_of(status, "since"),
                     duration_words(real_of(status, "up_seconds")));
}

std::string store_line(const Json& status) {
  const Json& store = part(status, "store");
  return fmt::format("store {}: {} of {} MB", words_of(store, "folder"),
                     megabytes(number_of(store, "bytes")),
                     megabytes(number_of(store, "bound_bytes")));
}

std::string target_paragraph(const Json& target) {
  const Json& cost = part(target, "cost");
  const Json& slices = part(target, "slices");
  const Json& events = part(target, "events");
  const Json& units = part(target, "units");
  const Json& violations = part(target, "violations");
  const Json& rates = part(target, "rates");
  std::string out = fmt::format("\n{}: {}\n", words_of(target, "name"), state_text(target));
  const auto line = [&out](const char* what, const std::string& text) {
    out += fmt::format("  {:<13}{}\n", what, text);
  };
  const double most = real_of(target, "max_overhead");
  line("watched",
       fmt::format("{} of {}; asked for {}{}", percent(real_of(target, "share")),
                   duration_words(real_of(target, "elapsed_seconds")),
                   percent(real_of(target, "sample")),
                   most == 0 ? "" : fmt::format(", at a cost of {} at most", percent(most))));
  line("cost", fmt::format("{} of its processor time, and {} of it here for judging",
                           percent(real_of(cost, "target")), percent(real_of(cost, "monitor"))));
  const uint64_t empty = number_of(slices, "without_accesses");
  line("slices", fmt::format("{}: {} judged, {} without threads{}", number_of(slices, "recorded"),
                             number_of(slices, "judged"), number_of(slices, "without_threads"),
                             empty == 0 ? "" : fmt::format(", {} without accesses", empty)));
  if (const Json& dropped = part(slices, "dropped"); !dropped.empty()) {
    line("dropped", list_of(dropped, "reason", "slices"));
  }
  line("events", fmt::format("{} sent: {} seen, {} lost, {} not judged", number_of(events, "sent"),
                             number_of(events, "seen"), number_of(events, "lost"),
                             number_of(events, "unjudged")));
  line("units", fmt::format("{}, {} cut; {} candidates searched", number_of(units, "seen"),
                            number_of(units, "cut"), number_of(target, "candidates")));
  if (real_of(rates, "seconds") > 0) {
    line("a second", fmt::format("{} slices, {} events, {} units, {} candidates, {} violations",
                                 rate(real_of(rates, "slices")), rate(real_of(rates, "events")),
                                 rate(real_of(rates, "units")), rate(real_of(rates, "candidates")),
                                 rate(real_of(rates, "violations"))));
  }
  for (const Json& each : part(target, "verdicts")) {
    line("verdict", fmt::format("{}: {} ({})", words_of(each, "property"),
                                words_of(each, "verdict"), number_of(each, "slices")));
  }
  if (const Json& reasons = part(target, "inconclusive"); !reasons.empty()) {
    line("inconclusive", list_of(reasons, "reason", "slices"));
  }
  line("found", fmt::format("{} violations, {} suppressed; {} findings that are new",
                            number_of(violations, "seen"), number_of(violations, "suppressed"),
                            number_of(target, "new_findings")));
  if (const uint64_t lost = number_of(target, "not_stored"); lost != 0) {
    line("not stored", fmt::format("{} slices with findings", lost));
  }
  if (const Json& message = part(target, "last_message"); message.is_object() && !message.empty()) {
    line("said", fmt::format("{}: {}", words_of(message, "time"), words_of(message, "text")));
  }
  return out;
}

// In columns, not in bytes.
std::string cut(const std::string& text, size_t width) {
  if (width == 0 || text_width(text) <= width) {
    return text;
  }
  std::string out;
  std::string_view rest = text;
  for (size_t i = 0; i < width; ++i) {
    const Character next = first_character(rest);
    out += rest.substr(0, next.bytes);
    rest.remove_prefix(next.bytes);
  }
  return out;
}

std::string padded(const std::string& text, size_t width) {
  const std::string shown = cut(text, width);
  return shown + std::string(width - text_width(shown), ' ');
}

constexpr size_t kNameColumns = 20;

std::string top_line(const Json& target) {
  const Json& cost = part(target, "cost");
  const Json& rates = part(target, "rates");
  const uint64_t pid = number_of(target, "pid");
  return fmt::format(
      "{} {:<8} {:>8} {:>7} {:>7} {:>7} {:>9} {:>9} {:>8} {:>8} {:>7} {:>9} {:>4}",
      padded(words_of(target, "name"), kNameColumns), words_of(target, "state").substr(0, 8),
      pid == 0 ? "-" : fmt::format("{}", pid), percent(real_of(target, "share")),
      percent(real_of(cost, "target")), percent(real_of(cost, "monitor")),
      rate(real_of(rates, "slices")), rate(real_of(rates, "events")), rate(real_of(rates, "units")),
      rate(real_of(rates, "candidates")), rate(real_of(rates, "lost_events")),
      number_of(part(target, "violations"), "seen"), number_of(target, "new_findings"));
}

}  // namespace

std::string status_text(const Json& status) {
  std::string out = head_line(status) + "\n" + store_line(status) + "\n";
  const std::string file = words_of(status, "metrics");
  const std::string listen = words_of(status, "metrics_listen");
  if (!file.empty()) {
    out += fmt::format("metrics in {}\n", file);
  }
  if (!listen.empty()) {
    out += fmt::format("metrics at {}{}\n", listen.starts_with("unix:") ? "" : "http://",
                       listen.starts_with("unix:") ? listen : listen + "/metrics");
  }
  if (const uint64_t withheld = number_of(status, "withheld_messages"); withheld != 0) {
    out += fmt::format("messages that came again, and were not told: {}\n", withheld);
  }
  for (const Json& target : part(status, "targets")) {
    out += target_paragraph(target);
  }
  return out;
}

std::vector<std::string> top_lines(const Json& status, size_t width) {
  std::vector<std::string> lines{
      cut(head_line(status), width),
      cut(fmt::format("{}; {}", words_of(status, "time"), store_line(status)), width),
      {},
      cut(fmt::format("{} {:<8} {:>8} {:>7} {:>7} {:>7} {:>9} {:>9} {:>8} {:>8} {:>7} {:>9} {:>4}",
                      padded("TARGET", kNameColumns), "STATE", "PID", "SHARE", "COST", "HERE",
                      "SLICES/s", "EVENTS/s", "UNITS/s", "SEARCH/s", "LOST/s", "FOUND", "NEW"),
          width)};
  for (const Json& target : part(status, "targets")) {
    lines.push_back(cut(top_line(target), width));
  }
  return lines;
}

}  // namespace tsomon::service
