// What submitters and workers of a fleet tell one another (docs/formats/fleet.md).
//
// Work        A recording and a question about it. Its id is the hash of both, so whoever submits it, and however often, it is
//             one piece of work with one verdict.
// Content     What is judged, in parts: of a recording the members of its pack (monitor/pack/make_pack.h), of a text trace the
//             file alone. Parts are cut into chunks that are called by their hash, so a program that a thousand recordings are
//             of is kept once.
// Question    A command and some of its options, by name; no path and no argument that is not one of kOptions.
// Verdict     What the command wrote, how it ended, and the findings in it.
// Messages    JSON with `version`. A reader takes its own version and the next one, whose additions it does not know.
// Trust       None: what is read is checked, sizes included; a work's id is computed again. Names are for people, and never opened.
// Errors      kMalformed: what was expected and what was found.
// Complexity  O(size). Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/service/store.h"
#include "tso/support/result.h"

namespace tsomon::fleet {

// To hand an error on.
template <typename T>
tl::unexpected<Error> error_of(const Result<T>& result) {
  return tl::unexpected<Error>(result.error());
}

constexpr int kMessageVersion = 1;
constexpr size_t kMostMessageBytes = size_t{960} << 10;  // NATS takes a mebibyte
constexpr size_t kChunkBytes = size_t{512} << 10;
constexpr size_t kMostSuppressionBytes = size_t{64} << 10;
constexpr size_t kMostResultInMessage = size_t{64} << 10;

struct Part {
  std::string name;  // of a member of a pack; else empty
  uint64_t bytes = 0;
  int64_t modified = 0;             // seconds since 1970
  std::vector<std::string> chunks;  // of kChunkBytes each, but the last one

  bool operator==(const Part&) const = default;
};

struct Content {
  std::string name;  // of the file, as it was submitted
  bool packed = false;
  std::string build;  // build-id of the program, in hexadecimal; empty: not known
  std::vector<Part> parts;

  const Part& recording() const;
  uint64_t bytes() const;  // of all parts
  bool operator==(const Content&) const = default;
};

struct Question {
  std::string command = "check";
  std::map<std::string, std::string> options;
  std::string suppressions;  // lines, as --suppressions reads them

  bool operator==(const Question&) const = default;
};

struct Work {
  std::string id;
  std::string tenant = "default";
  std::string host;
  int64_t submitted = 0;  // microseconds since 1970
  Content content;
  Question question;
};

struct Verdict {
  std::string id;  // of the work
  int exit_status = 0;
  std::string worker;
  int64_t judged = 0;  // microseconds since 1970
  uint64_t tries = 1;
  std::string result;  // what the command wrote; empty: it is
  Part chunks;         // ... here
};

// Whether a question may have it.
bool is_option(const std::string& command, const std::string& name);
// The names of options, of a command; empty: there is no such command.
std::vector<std::string> options_of(const std::string& command);
Result<void> check_question(const Question& question);

// A long recording is predicted from by several workers: the question has an option `parts`. Whoever takes it puts its
// parts, each a piece of work with a share of the windows, and in the end their answers together. 0: it is one piece.
constexpr uint64_t kMostSharesOfWork = 256;
uint64_t parts_of(const Question& question);
// It is such a part; what it finds is told by the whole.
bool is_part(const Question& question);
// From 1 on. Windows have a million events unless the question says otherwise.
Work part_of(const Work& whole, uint64_t number);
// What the command is given for the question's options.
std::vector<std::string> arguments_of(const Question& question);
// Lower-case letters, digits and hyphens, at most 32.
bool is_tenant(std::string_view name);

std::string id_of(const Content& content, const Question& question);

std::string work_text(const Work& work);
// kUsage: it has more parts than a message holds.
Result<std::string> work_message(const Work& work);
Result<Work> read_work(std::string_view text);
std::string verdict_text(const Verdict& verdict);
Result<Verdict> read_verdict(std::string_view text);

// A finding that a verdict has.
struct Sighting {
  std::string work;  // id
  std::string tenant;
  std::string host;
  std::string build;
  std::string name;  // of the content
  int64_t time = 0;  // when it was submitted
  service::SeenFinding found;
};
std::string sighting_text(const Sighting& sighting);
Result<Sighting> read_sighting(std::string_view text);

// What a service on a host said of itself last: its counters.
struct Canary {
  std::string tenant = "default";
  std::string host;
  std::string store;  // of the service; a host may have several
  int64_t time = 0;   // microseconds since 1970
  nlohmann::ordered_json
      status;  // an object, as `tsomon status --output json` (docs/guide/monitor.md)
};
// Of canaries whose names are the same one is kept.
std::string name_of(const Canary& canary);
// kUsage: it is larger than a message may be.
Result<std::string> canary_message(const Canary& canary);
Result<Canary> read_canary(std::string_view text);

}  // namespace tsomon::fleet
