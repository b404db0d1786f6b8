#include "monitor/probe/options.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "monitor/probe/nearest.h"
#include "monitor/probe/skewed_clock.h"

namespace tsomon::probe {

namespace {

bool parse_integer(const char* text, long low, long high, long* value) {
  char* end = nullptr;
  errno = 0;
  *value = std::strtol(text, &end, 10);
  return errno == 0 && end != text && *end == '\0' && *value >= low && *value <= high;
}

bool parse_size(const char* text, uint64_t low, uint64_t high, uint64_t* value) {
  if (*text < '0' || *text > '9') {
    return false;
  }
  char* end = nullptr;
  errno = 0;
  *value = std::strtoull(text, &end, 10);
  if (errno != 0 || *value > high) {
    return false;
  }
  int shift = 0;
  switch (*end) {
    case 'K':
      shift = 10;
      break;
    case 'M':
      shift = 20;
      break;
    case 'G':
      shift = 30;
      break;
    default:
      break;
  }
  if (shift != 0) {
    ++end;
  }
  if (*end != '\0' || *value > (high >> shift)) {
    return false;
  }
  *value <<= shift;
  return *value >= low && *value <= high;
}

const char* add_pattern(const char** patterns, int* count, const char* value,
                        const char* expected) {
  if (*count == Options::kMaxPatterns) {
    return "at most 32 patterns";
  }
  patterns[(*count)++] = value;
  return *value != '\0' ? nullptr : expected;
}

// What is wrong with the value, or nullptr.
const char* set(Options* options, const char* key, const char* value) {
  long number = 0;
  if (std::strcmp(key, "output") == 0) {
    options->output = value;
    return *value != '\0' ? nullptr : "a file name";
  }
  if (std::strcmp(key, "existing") == 0) {
    options->keep_existing = std::strcmp(value, "keep") == 0;
    return options->keep_existing || std::strcmp(value, "replace") == 0 ? nullptr
                                                                        : "'replace' or 'keep'";
  }
  if (std::strcmp(key, "stamp_every") == 0) {
    const bool good = parse_integer(value, 0, 1 << 20, &number);
    options->stamp_every = static_cast<uint64_t>(number);
    return good ? nullptr : "a number from 0 to 1048576";
  }
  if (std::strcmp(key, "stamp_max_age") == 0 || std::strcmp(key, "share") == 0) {
    const bool good = parse_integer(value, 0, 1000000000, &number);
    options->stamp_max_age = static_cast<uint64_t>(number);
    return good ? nullptr : "a number from 0 to 1000000000";
  }
  if (std::strcmp(key, "repeats") == 0) {
    options->all_repeats = std::strcmp(value, "all") == 0;
    return options->all_repeats || std::strcmp(value, "few") == 0 ? nullptr : "'few' or 'all'";
  }
  if (std::strcmp(key, "spin") == 0) {
    const bool good = parse_integer(value, 0, 1000000000, &number);
    options->spin = static_cast<uint64_t>(number);
    return good ? nullptr : "a number from 0 to 1000000000";
  }
  if (std::strcmp(key, "buffer") == 0) {
    return parse_size(value, 64U << 10, uint64_t{16} << 30, &options->buffer)
               ? nullptr
               : "a size from 64K to 16G";
  }
  if (std::strcmp(key, "on_full") == 0) {
    options->drop_when_full = std::strcmp(value, "drop") == 0;
    return options->drop_when_full || std::strcmp(value, "block") == 0 ? nullptr
                                                                       : "'block' or 'drop'";
  }
  if (std::strcmp(key, "unit") == 0) {
    return add_pattern(options->unit, &options->units, value, "a pattern of function names");
  }
  if (std::strcmp(key, "lock") == 0) {
    return add_pattern(options->lock, &options->locks, value, "a pattern of function names");
  }
  if (std::strcmp(key, "set") == 0) {
    return add_pattern(options->set, &options->sets, value,
                       "a pattern of names of global variables");
  }
  if (std::strcmp(key, "accesses") == 0) {
    options->only_sets = std::strcmp(value, "sets") == 0;
    return options->only_sets || std::strcmp(value, "all") == 0 ? nullptr : "'all' or 'sets'";
  }
  if (std::strcmp(key, "outside") == 0) {
    options->stores_outside = std::strcmp(value, "stores") == 0;
    return options->stores_outside || std::strcmp(value, "all") == 0 ? nullptr
                                                                     : "'all' or 'stores'";
  }
  if (std::strcmp(key, "objects") == 0) {
    return parse_size(value, 0, 16777215, &options->objects) ? nullptr
                                                             : "a size from 0 to 16777215";
  }
  if (std::strcmp(key, "control") == 0) {
    options->control_by_name = std::strcmp(value, "on") == 0;
    options->control = *value == '/' ? value : nullptr;
    return options->control_by_name || options->control != nullptr || std::strcmp(value, "off") == 0
               ? nullptr
               : "'off', 'on' or an absolute path of a folder";
  }
  if (std::strcmp(key, "follow_fork") == 0) {
    options->follow_fork = std::strcmp(value, "1") == 0;
    return options->follow_fork || std::strcmp(value, "0") == 0 ? nullptr : "0 or 1";
  }
  if (std::strcmp(key, "shared") == 0) {
    options->own_shared_memory = std::strcmp(value, "own") == 0;
    return options->own_shared_memory || std::strcmp(value, "others") == 0 ? nullptr
                                                                           : "'own' or 'others'";
  }
  if (std::strcmp(key, "clock") == 0) {
    options->clock_trusted = std::strcmp(value, "trust") == 0;
    options->clock_unused = std::strcmp(value, "none") == 0;
    return options->clock_trusted || options->clock_unused || std::strcmp(value, "auto") == 0
               ? nullptr
               : "'auto', 'trust' or 'none'";
  }
  if (std::strcmp(key, "clock_test") == 0) {
    options->clock_test = value;
    return is_skew(value) ? nullptr : "OFFSET[/DRIFT[/STEP/AFTER]],... of each processor";
  }
  if (std::strcmp(key, "cancels") == 0) {
    options->cancels = std::strcmp(value, "1") == 0;
    return options->cancels || std::strcmp(value, "0") == 0 ? nullptr : "0 or 1";
  }
  if (std::strcmp(key, "live") == 0) {
    const bool good = parse_integer(value, 0, 10000, &number);
    options->live = static_cast<uint32_t>(number);
    return good ? nullptr : "a number from 0 to 10000";
  }
  if (std::strcmp(key, "level") == 0) {
    const bool good = parse_integer(value, -50, 19, &number);
    options->level = static_cast<int>(number);
    options->level_is_given = true;
    return good ? nullptr : "a number from -50 to 19";
  }
  if (std::strcmp(key, "noise") == 0) {
    const bool good = parse_integer(value, 0, 1000, &number);
    options->noise = static_cast<uint32_t>(number);
    return good ? nullptr : "a number from 0 to 1000";
  }
  if (std::strcmp(key, "noise_seed") == 0) {
    const bool good = parse_integer(value, 0, 2147483647, &number);
    options->noise_seed = static_cast<uint32_t>(number);
    return good ? nullptr : "a number from 0 to 2147483647";
  }
  return "";
}

}  // namespace

namespace {

constexpr const char* kKeys[] = {"output",  "existing", "stamp_every", "stamp_max_age", "spin",
                                 "buffer",  "on_full",  "unit",        "set",           "accesses",
                                 "outside", "objects",  "follow_fork", "cancels",       "live",
                                 "clock",   "level",    "noise",       "noise_seed",    "repeats",
                                 "lock",    "shared",   "control"};

void say_unknown(const char* key, char* error, size_t error_size) {
  Nearest nearest(key);
  for (const char* each : kKeys) {
    nearest.offer(each);
  }
  const bool near = *nearest.best() != '\0';
  std::snprintf(error, error_size, "unknown key '%s';%s%s%s the keys are", key,
                near ? " did you mean '" : "", nearest.best(), near ? "'?" : "");
  for (size_t i = 0; i != sizeof kKeys / sizeof *kKeys; ++i) {
    const size_t size = std::strlen(error);
    const char* const before = i == 0                                  ? " "
                               : i + 1 == sizeof kKeys / sizeof *kKeys ? " and "
                                                                       : ", ";
    std::snprintf(error + size, error_size - size, "%s%s", before, kKeys[i]);
  }
}

}  // namespace

bool parse_options(const char* text, Options* options, char* error, size_t error_size) {
  if (std::strlen(text) >= Options::kMaxText) {
    std::snprintf(error, error_size, "longer than %zu bytes", Options::kMaxText - 1);
    return false;
  }
  const char* seen[24];  // more keys than there are
  int seen_count = 0;
  char* out = options->text;
  while (*text != '\0') {
    char* const item = out;
    char* value = nullptr;
    while (*text != '\0') {
      if (text[0] == '\\' && text[1] == ':') {
        *out++ = ':';
        text += 2;
      } else if (text[0] == ':' && text[1] == ':' && value != nullptr) {
        *out++ = ':';
        *out++ = ':';
        text += 2;
      } else if (text[0] == ':') {
        break;
      } else if (text[0] == '=' && value == nullptr) {
        *out++ = '\0';
        value = out;
        ++text;
      } else {
        *out++ = *text++;
      }
    }
    *out++ = '\0';
    if (*text == ':') {
      ++text;
    }
    if (value == nullptr) {
      std::snprintf(error, error_size, "expected key=value, found '%s'", item);
      return false;
    }
    for (int i = 0; i < seen_count; ++i) {
      if (std::strcmp(seen[i], item) == 0) {
        std::snprintf(error, error_size, "key '%s' is given twice", item);
        return false;
      }
    }
    const char* const expected = set(options, item, value);
    if (expected != nullptr && *expected == '\0') {
      say_unknown(item, error, error_size);
      return false;
    }
    if (expected != nullptr) {
      std::snprintf(error, error_size, "%s: expected %s, found '%s'", item, expected, value);
      return false;
    }
    if (std::strcmp(item, "unit") != 0 && std::strcmp(item, "set") != 0 &&
        std::strcmp(item, "lock") != 0) {
      seen[seen_count++] = item;
    }
  }
  if (options->only_sets && options->objects != 0) {
    std::snprintf(error, error_size,
                  "accesses=sets and objects=%llu exclude each other: objects are not declared",
                  static_cast<unsigned long long>(options->objects));
    return false;
  }
  return true;
}

}  // namespace tsomon::probe
