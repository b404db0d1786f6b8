#include "monitor/explore/schedule.h"

#include <charconv>

#include <fmt/format.h>

namespace tsomon::explore {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  bool at_end() const { return text_.empty(); }
  bool is_at(char c) const { return !text_.empty() && text_[0] == c; }
  bool take(char c) {
    if (text_.empty() || text_[0] != c) {
      return false;
    }
    text_.remove_prefix(1);
    return true;
  }
  bool number(uint64_t* value, int base = 10) {
    const auto result = std::from_chars(text_.data(), text_.data() + text_.size(), *value, base);
    if (result.ec != std::errc()) {
      return false;
    }
    text_.remove_prefix(static_cast<size_t>(result.ptr - text_.data()));
    return true;
  }

 private:
  std::string_view text_;
};

bool parse_steps(Reader* reader, Schedule* schedule) {
  do {
    uint64_t thread = 0;
    uint64_t times = 1;
    if (!reader->number(&thread) || thread > kMaxThreads) {
      return false;
    }
    const uint8_t commit = reader->take('c') ? 1 : 0;
    uint64_t answer = 0;
    if (commit == 0 && reader->take('a') && (!reader->number(&answer) || answer > UINT8_MAX)) {
      return false;
    }
    if (reader->take('x') && (!reader->number(&times) || times == 0 || times > 1'000'000)) {
      return false;
    }
    schedule->steps.insert(
        schedule->steps.end(), times,
        Choice{static_cast<uint16_t>(thread), commit, static_cast<uint8_t>(answer)});
  } while (reader->take(','));
  return true;
}

bool parse_words(Reader* reader, Schedule* schedule) {
  do {
    uint64_t word = 0;
    uint64_t more = 0;
    if (!reader->number(&word, 16) ||
        (reader->take('+') && (!reader->number(&more) || more > 1'000'000))) {
      return false;
    }
    for (uint64_t i = 0; i <= more; ++i) {
      schedule->words.push_back(word + i);
    }
  } while (reader->take(','));
  return true;
}

bool parse_origins(Reader* reader, Schedule* schedule) {
  do {
    uint64_t number = 0;
    uint64_t parent = 0;
    uint64_t child = 0;
    if (!reader->number(&number) || !reader->take(':') || !reader->number(&parent) ||
        !reader->take('.') || !reader->number(&child) || number == 0 || number > kMaxThreads ||
        parent > kMaxThreads) {
      return false;
    }
    schedule->origins.push_back({static_cast<uint32_t>(number), static_cast<uint32_t>(parent),
                                 static_cast<uint32_t>(child)});
  } while (reader->take(','));
  return true;
}

bool parse_parts(Reader* reader, Schedule* schedule) {
  do {
    uint64_t word = 0;
    uint64_t starts = 0;
    if (!reader->number(&word, 16) || !reader->take('.') || !reader->number(&starts, 16) ||
        starts > UINT8_MAX) {
      return false;
    }
    schedule->parts[word] = static_cast<uint8_t>(starts);
  } while (reader->take(','));
  return true;
}

}  // namespace

std::string schedule_text(const Schedule& schedule) {
  std::string text;
  const auto comma = [&text](bool first) { text += first ? "" : ","; };
  for (size_t i = 0; i < schedule.steps.size();) {
    size_t end = i + 1;
    while (end < schedule.steps.size() && schedule.steps[end] == schedule.steps[i]) {
      ++end;
    }
    comma(i == 0);
    const Choice step = schedule.steps[i];
    text += fmt::format("{}{}", step.thread, step.commit != 0 ? "c" : "");
    text += step.answer != 0 ? fmt::format("a{}", step.answer) : "";
    text += end - i > 1 ? fmt::format("x{}", end - i) : "";
    i = end;
  }
  if (!schedule.words.empty() || !schedule.origins.empty() || !schedule.parts.empty()) {
    text += ';';
  }
  for (size_t i = 0; i < schedule.words.size();) {
    size_t end = i + 1;
    while (end < schedule.words.size() && schedule.words[end] == schedule.words[i] + (end - i)) {
      ++end;
    }
    comma(i == 0);
    text += fmt::format("{:x}", schedule.words[i]);
    text += end - i > 1 ? fmt::format("+{}", end - i - 1) : "";
    i = end;
  }
  text += schedule.origins.empty() && schedule.parts.empty() ? "" : ";";
  for (size_t i = 0; i < schedule.origins.size(); ++i) {
    const ThreadOrigin& origin = schedule.origins[i];
    comma(i == 0);
    text += fmt::format("{}:{}.{}", origin.number, origin.parent, origin.child);
  }
  for (const auto& [word, starts] : schedule.parts) {
    text +=
        fmt::format("{}{:x}.{:x}", word == schedule.parts.begin()->first ? ";" : ",", word, starts);
  }
  return text;
}

std::optional<Schedule> parse_schedule(std::string_view text) {
  Schedule schedule;
  Reader reader(text);
  if (!parse_steps(&reader, &schedule)) {
    return std::nullopt;
  }
  // A section may be empty.
  for (const auto parse : {parse_words, parse_origins, parse_parts}) {
    if (!reader.take(';')) {
      break;
    }
    if (!reader.at_end() && !reader.is_at(';') && !parse(&reader, &schedule)) {
      return std::nullopt;
    }
  }
  return reader.at_end() ? std::optional(schedule) : std::nullopt;
}

}  // namespace tsomon::explore
