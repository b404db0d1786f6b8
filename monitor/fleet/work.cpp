#include "monitor/fleet/work.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "decoders/pack/archive.h"
#include "monitor/fleet/digest.h"
#include "monitor/process/packed_files.h"
#include "monitor/report/json_fields.h"
#include "tso/support/printable.h"

namespace tsomon::fleet {
namespace {

using Json = nlohmann::ordered_json;
using report::array_of;
using report::flag_of;
using report::number_of;
using report::text_of;

constexpr size_t kMostNameBytes = 256;
constexpr size_t kMostOptionBytes = 200;
constexpr size_t kMostParts = 8192;
constexpr const char* kParts = "parts";
constexpr const char* kPart = "part";
constexpr const char* kWindowEvents = "window-events";
constexpr const char* kWindowOfParts = "1000000";

struct Asked {
  const char* command;
  std::vector<const char*> options;
};
// Neither paths nor what makes a command write more than its result; jobs are the worker's.
const std::array<Asked, 3>& asked_commands() {
  static const std::array<Asked, 3> kCommands = {{
      {"check",
       {"clock-margin", "format", "history", "max-decisions", "max-steps", "max-undirected",
        "max-work", "model", "order", "part", "parts", "property", "without"}},
      {"predict",
       {"branches", "format", "kinds", "max-events", "max-work", "model", "part", "parts",
        "window-events", "witness-events"}},
      {"explain", {"format", "max-work", "property", "violations"}},
  }};
  return kCommands;
}

tl::unexpected<Error> malformed(const std::string& what) {
  return fail(ErrorKind::kMalformed, what);
}

std::string dumped(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json question_json(const Question& question) {
  Json options = Json::object();
  for (const auto& [name, value] : question.options) {
    options[name] = value;
  }
  return {{"command", question.command},
          {"options", std::move(options)},
          {"suppressions", question.suppressions}};
}

Json part_json(const Part& part) {
  return {{"name", part.name},
          {"bytes", part.bytes},
          {"modified", part.modified},
          {"chunks", part.chunks}};
}

// A time, or a count.
int64_t signed_of(const Json& object, const char* key) {
  const uint64_t number = number_of(object, key);
  return number > std::numeric_limits<int64_t>::max() ? 0 : static_cast<int64_t>(number);
}

std::string name_of(const Json& object, const char* key) {
  return text_of(object, key).substr(0, kMostNameBytes);
}

// Also whether the message is one of these.
Result<Json> read_message(std::string_view text, const char* what) {
  if (text.size() > kMostMessageBytes) {
    return malformed(
        fmt::format("{}: {} bytes, at most {} are taken", what, text.size(), kMostMessageBytes));
  }
  Json object = Json::parse(text, nullptr, false);
  if (!object.is_object() || text_of(object, "message") != what) {
    return malformed(fmt::format("expected a message `{}`", what));
  }
  const uint64_t version = number_of(object, "version");
  if (version == 0 || version > kMessageVersion + 1) {
    return malformed(
        fmt::format("{}: version {}, expected {} or the next one", what, version, kMessageVersion));
  }
  return object;
}

Result<Part> read_part(const Json& object) {
  Part part;
  part.name = text_of(object, "name");
  part.bytes = number_of(object, "bytes");
  part.modified = signed_of(object, "modified");
  part.chunks = report::texts_of(array_of(object, "chunks"));
  if (!part.name.empty() && !pack::is_member_name(part.name)) {
    return malformed(fmt::format("{} is no name of a part", printable(part.name)));
  }
  if (part.bytes > pack::kMostMemberBytes ||
      part.chunks.size() != (part.bytes + kChunkBytes - 1) / kChunkBytes) {
    return malformed(
        fmt::format("{} chunks for a part of {} bytes", part.chunks.size(), part.bytes));
  }
  if (!std::all_of(part.chunks.begin(), part.chunks.end(), is_digest)) {
    return malformed("a chunk is not called by its SHA-256");
  }
  return part;
}

Result<Content> read_content(const Json& object) {
  Content content;
  content.name = name_of(object, "name");
  content.packed = flag_of(object, "packed", false);
  content.build = name_of(object, "build");
  const Json& parts = array_of(object, "parts");
  if (parts.empty() || parts.size() > kMostParts || (!content.packed && parts.size() != 1)) {
    return malformed(fmt::format("{} parts", parts.size()));
  }
  std::set<std::string> names;
  for (const Json& each : parts) {
    auto part = read_part(each);
    if (!part) {
      return error_of(part);
    }
    if (part->name.empty() == content.packed || !names.insert(part->name).second) {
      return malformed("a part has another's name, or none");
    }
    content.parts.push_back(std::move(*part));
  }
  if (content.packed && names.count(kPackRecording) == 0) {
    return malformed(fmt::format("there is no part `{}`", kPackRecording));
  }
  return content;
}

Result<Question> read_question(const Json& object) {
  Question question;
  question.command = text_of(object, "command");
  question.suppressions = text_of(object, "suppressions");
  if (const auto options = object.find("options"); options != object.end()) {
    for (const auto& [name, value] : options->items()) {
      if (!value.is_string()) {
        return malformed(fmt::format("option {}: expected a text", printable(name)));
      }
      question.options[name] = value.get<std::string>();
    }
  }
  if (auto checked = check_question(question); !checked) {
    return error_of(checked);
  }
  return question;
}

const Json& object_of(const Json& object, const char* key) {
  static const Json kNone = Json::object();
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? *found : kNone;
}

}  // namespace

std::vector<std::string> options_of(const std::string& command) {
  for (const Asked& each : asked_commands()) {
    if (command == each.command) {
      return {each.options.begin(), each.options.end()};
    }
  }
  return {};
}

bool is_option(const std::string& command, const std::string& name) {
  const std::vector<std::string> options = options_of(command);
  return std::find(options.begin(), options.end(), name) != options.end();
}

bool is_tenant(std::string_view name) {
  return !name.empty() && name.size() <= 32 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
}

uint64_t parts_of(const Question& question) {
  const auto found = question.options.find(kParts);
  uint64_t parts = 0;
  if (found != question.options.end()) {
    const std::string& text = found->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parts);
    parts = error == std::errc() && end == text.data() + text.size() ? parts : 0;
  }
  return parts;
}

bool is_part(const Question& question) { return question.options.count(kPart) != 0; }

Work part_of(const Work& whole, uint64_t number) {
  Work part = whole;
  part.question.options.erase(kParts);
  part.question.options[kPart] = fmt::format("{}-{}", number, parts_of(whole.question));
  if (part.question.command == "predict") {
    part.question.options.try_emplace(kWindowEvents, kWindowOfParts);
  }
  part.id = id_of(part.content, part.question);
  return part;
}

std::vector<std::string> arguments_of(const Question& question) {
  std::vector<std::string> arguments;
  for (const auto& [name, value] : question.options) {
    if (name == kParts) {
      continue;  // for workers
    }
    std::string text = value;
    if (name == kPart) {
      std::replace(text.begin(), text.end(), '-', '/');
    }
    arguments.push_back(fmt::format("--{}={}", name, text));
  }
  return arguments;
}

Result<void> check_question(const Question& question) {
  if (options_of(question.command).empty()) {
    return malformed(
        fmt::format("expected check, predict or explain, found {}", printable(question.command)));
  }
  for (const auto& [name, value] : question.options) {
    if (!is_option(question.command, name)) {
      return malformed(fmt::format("{} has no option {} that may be asked for; {}",
                                   question.command, printable(name),
                                   fmt::join(options_of(question.command), ", ")));
    }
    const bool plain = std::all_of(value.begin(), value.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             std::string_view("-_.,:%").find(c) != std::string_view::npos;
    });
    if (value.empty() || value.size() > kMostOptionBytes || !plain) {
      return malformed(
          fmt::format("{}: expected letters, digits, and - _ . , : %, at most {}, found {}", name,
                      kMostOptionBytes, printable(value.substr(0, kMostOptionBytes))));
    }
  }
  if (question.options.count(kParts) != 0 &&
      (parts_of(question) < 2 || parts_of(question) > kMostSharesOfWork || is_part(question))) {
    return malformed(fmt::format("{}: expected a number from 2 to {}, and no {}", kParts,
                                 kMostSharesOfWork, kPart));
  }
  if (question.suppressions.size() > kMostSuppressionBytes) {
    return malformed(fmt::format("suppressions of {} bytes, at most {} are taken",
                                 question.suppressions.size(), kMostSuppressionBytes));
  }
  return {};
}

const Part& Content::recording() const {
  const auto found = std::find_if(parts.begin(), parts.end(),
                                  [](const Part& part) { return part.name == kPackRecording; });
  return packed && found != parts.end() ? *found : parts.front();
}

uint64_t Content::bytes() const {
  uint64_t sum = 0;
  for (const Part& part : parts) {
    sum += part.bytes;
  }
  return sum;
}

// Whatever else reports may need, it is the same recording.
std::string id_of(const Content& content, const Question& question) {
  const Part& recording = content.recording();
  return digest_of(dumped({{"bytes", recording.bytes},
                           {"chunks", recording.chunks},
                           {"question", question_json(question)}}));
}

std::string work_text(const Work& work) {
  Json parts = Json::array();
  for (const Part& part : work.content.parts) {
    parts.push_back(part_json(part));
  }
  return dumped({{"message", "work"},
                 {"version", kMessageVersion},
                 {"id", work.id},
                 {"tenant", work.tenant},
                 {"host", work.host},
                 {"submitted", work.submitted},
                 {"question", question_json(work.question)},
                 {"content",
                  {{"name", work.content.name},
                   {"packed", work.content.packed},
                   {"build", work.content.build},
                   {"parts", std::move(parts)}}}});
}

Result<std::string> work_message(const Work& work) {
  std::string text = work_text(work);
  if (text.size() > kMostMessageBytes) {
    return fail(ErrorKind::kUsage, fmt::format("{} has more parts than a message holds",
                                               printable(work.content.name)));
  }
  return text;
}

Result<Work> read_work(std::string_view text) {
  const auto object = read_message(text, "work");
  if (!object) {
    return error_of(object);
  }
  auto content = read_content(object_of(*object, "content"));
  if (!content) {
    return error_of(content);
  }
  auto question = read_question(object_of(*object, "question"));
  if (!question) {
    return error_of(question);
  }
  Work work;
  work.id = text_of(*object, "id");
  work.tenant = text_of(*object, "tenant");
  work.host = name_of(*object, "host");
  work.submitted = signed_of(*object, "submitted");
  work.content = std::move(*content);
  work.question = std::move(*question);
  if (!is_tenant(work.tenant)) {
    return malformed(fmt::format("{} is no tenant", printable(work.tenant.substr(0, 64))));
  }
  if (work.id != id_of(work.content, work.question)) {
    return malformed("its id is not the hash of what it has");
  }
  return work;
}

std::string verdict_text(const Verdict& verdict) {
  return dumped({{"message", "verdict"},
                 {"version", kMessageVersion},
                 {"id", verdict.id},
                 {"exit_status", verdict.exit_status},
                 {"worker", verdict.worker},
                 {"judged", verdict.judged},
                 {"tries", verdict.tries},
                 {"result", verdict.result},
                 {"chunks", part_json(verdict.chunks)}});
}

Result<Verdict> read_verdict(std::string_view text) {
  const auto object = read_message(text, "verdict");
  if (!object) {
    return error_of(object);
  }
  auto chunks = read_part(object_of(*object, "chunks"));
  if (!chunks) {
    return error_of(chunks);
  }
  Verdict verdict;
  verdict.id = text_of(*object, "id");
  verdict.exit_status =
      static_cast<int>(std::min<uint64_t>(number_of(*object, "exit_status"), 255));
  verdict.worker = name_of(*object, "worker");
  verdict.judged = signed_of(*object, "judged");
  verdict.tries = number_of(*object, "tries");
  verdict.result = text_of(*object, "result");
  verdict.chunks = std::move(*chunks);
  if (!is_digest(verdict.id)) {
    return malformed("a verdict without the id of its work");
  }
  return verdict;
}

std::string sighting_text(const Sighting& sighting) {
  return dumped({{"message", "sighting"},
                 {"version", kMessageVersion},
                 {"work", sighting.work},
                 {"tenant", sighting.tenant},
                 {"host", sighting.host},
                 {"build", sighting.build},
                 {"name", sighting.name},
                 {"time", sighting.time},
                 {"fingerprint", sighting.found.fingerprint},
                 {"property", sighting.found.property},
                 {"definite", sighting.found.definite},
                 {"predicted", sighting.found.predicted},
                 {"count", sighting.found.count},
                 {"summary", sighting.found.summary},
                 {"finding", sighting.found.json}});
}

Result<Sighting> read_sighting(std::string_view text) {
  const auto object = read_message(text, "sighting");
  if (!object) {
    return error_of(object);
  }
  Sighting sighting;
  sighting.work = text_of(*object, "work");
  sighting.tenant = name_of(*object, "tenant");
  sighting.host = name_of(*object, "host");
  sighting.build = name_of(*object, "build");
  sighting.name = name_of(*object, "name");
  sighting.time = signed_of(*object, "time");
  sighting.found.fingerprint = name_of(*object, "fingerprint");
  sighting.found.property = name_of(*object, "property");
  sighting.found.definite = flag_of(*object, "definite", false);
  sighting.found.predicted = flag_of(*object, "predicted", false);
  sighting.found.count = number_of(*object, "count");
  sighting.found.summary = text_of(*object, "summary");
  sighting.found.json = text_of(*object, "finding");
  if (!is_digest(sighting.work) || sighting.found.fingerprint.empty()) {
    return malformed("a finding without a fingerprint, or without the id of its work");
  }
  return sighting;
}

std::string name_of(const Canary& canary) {
  return canary.tenant + "." + digest_of(canary.host + '\0' + canary.store);
}

Result<std::string> canary_message(const Canary& canary) {
  std::string text = dumped({{"message", "canary"},
                             {"version", kMessageVersion},
                             {"tenant", canary.tenant},
                             {"host", canary.host},
                             {"store", canary.store},
                             {"time", canary.time},
                             {"status", canary.status}});
  if (text.size() > kMostMessageBytes) {
    return fail(ErrorKind::kUsage, fmt::format("the status of a service has {} bytes, at most {} "
                                               "are taken",
                                               text.size(), kMostMessageBytes));
  }
  return text;
}

Result<Canary> read_canary(std::string_view text) {
  const auto object = read_message(text, "canary");
  if (!object) {
    return error_of(object);
  }
  Canary canary;
  canary.tenant = name_of(*object, "tenant");
  canary.host = name_of(*object, "host");
  canary.store = text_of(*object, "store");
  canary.time = signed_of(*object, "time");
  const auto status = object->find("status");
  if (!is_tenant(canary.tenant) || status == object->end() || !status->is_object()) {
    return malformed("a canary without a tenant, or without a status");
  }
  canary.status = *status;
  return canary;
}

}  // namespace tsomon::fleet
