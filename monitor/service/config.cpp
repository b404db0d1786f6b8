#include "monitor/service/config.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "monitor/events/read_input.h"
#include "monitor/probe/nearest.h"
#include "monitor/service/listen_address.h"
#include "monitor/service/toml_parser.h"
#include "monitor/slices/trigger.h"
#include "tso/support/printable.h"
#include "tso/support/quantity.h"

namespace tsomon::service {
namespace {

// In the order of the file.
class ConfigErrors {
 public:
  explicit ConfigErrors(std::string file) : file_(std::move(file)) {}

  void add(const toml::source_position& at, std::string message) {
    errors_.emplace(std::pair(at.line, at.column), std::move(message));
  }
  std::vector<Error> take() const {
    std::vector<Error> list;
    for (const auto& [at, message] : errors_) {
      list.push_back({ErrorKind::kMalformed,
                      fmt::format("{}:{}:{}", printable(file_), at.first, at.second),
                      {},
                      message});
    }
    return list;
  }

 private:
  std::string file_;
  std::multimap<std::pair<uint32_t, uint32_t>, std::string> errors_;
};

const char* type_text(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::boolean:
      return "true or false";
    case toml::node_type::date:
    case toml::node_type::time:
    case toml::node_type::date_time:
      return "a date or time";
    case toml::node_type::none:
      break;
  }
  return "nothing";
}

// As it may stand in a message.
std::string found_text(const toml::node& node) {
  constexpr size_t kShown = 60;
  if (const auto* text = node.as_string()) {
    const std::string& value = text->get();
    return fmt::format("'{}'{}", printable(value.substr(0, kShown)),
                       value.size() > kShown ? "..." : "");
  }
  if (const auto* number = node.as_integer()) {
    return fmt::format("{}", number->get());
  }
  if (const auto* number = node.as_floating_point()) {
    return fmt::format("{}", number->get());
  }
  if (const auto* flag = node.as_boolean()) {
    return flag->get() ? "true" : "false";
  }
  return type_text(node);
}

// One table of the file: who asks for a key says so, and what nobody has asked for is unknown.
class ConfigTable {
 public:
  ConfigTable(const toml::table& table, std::string name, ConfigErrors* errors)
      : table_(table), name_(std::move(name)), errors_(errors) {}

  bool has(const char* key) const { return table_.contains(key); }
  toml::source_position place() const { return table_.source().begin; }

  const toml::node* node(const char* key) {
    known_.insert(key);
    return table_.get(key);
  }
  void wrong(const toml::node& node, const char* key, const std::string& expected) {
    wrong_at(node, fmt::format("{}.{}", name_, key), expected);
  }
  void missing(const std::string& keys) {
    errors_->add(place(), fmt::format("{}: expected the key {}, found none", name_, keys));
  }

  // These keys exclude one another: each behind the first is a mistake.
  void only_one(std::initializer_list<const char*> keys) {
    const char* first = nullptr;
    for (const char* const key : keys) {
      const toml::node* const found = node(key);
      if (found != nullptr && first != nullptr) {
        errors_->add(found->source().begin,
                     fmt::format("{}: expected one of {}, found {} beside {}", name_,
                                 fmt::join(keys, ", "), key, first));
      }
      first = found != nullptr && first == nullptr ? key : first;
    }
  }

  // Not empty, and without bytes that end a path or a name too early.
  void text(const char* key, std::string* value) {
    if (const toml::node* const found = node(key); found != nullptr) {
      read_text(*found, fmt::format("{}.{}", name_, key), value);
    }
  }
  void texts(const char* key, std::vector<std::string>* values) {
    const toml::node* const found = node(key);
    if (found == nullptr) {
      return;
    }
    const toml::array* const array = found->as_array();
    if (array == nullptr) {
      wrong(*found, key, "an array of strings");
      return;
    }
    values->clear();
    for (const toml::node& each : *array) {
      read_text(each, fmt::format("{}.{}", name_, key), &values->emplace_back());
    }
  }
  void flag(const char* key, bool* value) {
    const toml::node* const found = node(key);
    if (found != nullptr && !found->is_boolean()) {
      wrong(*found, key, "true or false");
    } else if (found != nullptr) {
      *value = found->as_boolean()->get();
    }
  }
  template <typename Number>
  void number(const char* key, int64_t least, int64_t most, Number* value) {
    const toml::node* const found = node(key);
    if (found == nullptr) {
      return;
    }
    const auto* const number = found->as_integer();
    if (number == nullptr || number->get() < least || number->get() > most) {
      wrong(*found, key, fmt::format("an integer from {} to {}", least, most));
    } else {
      *value = static_cast<Number>(number->get());
    }
  }
  // "1%", "0.01" or 0.01. `none`: so is 0.
  void share(const char* key, double* value, bool none = false) {
    const toml::node* const found = node(key);
    if (found == nullptr) {
      return;
    }
    std::optional<double> share;
    if (const auto* text = found->as_string()) {
      share = parse_share(text->get());
    } else if (const auto number = found->value<double>(); number && found->is_number()) {
      share = *number > 0 && *number <= 1 ? number : std::nullopt;
    }
    if (const auto number = found->value<double>(); none && number && *number == 0) {
      share = 0;
    }
    if (share) {
      *value = *share;
    } else {
      wrong(*found, key,
            none ? "a share as \"1%\" or 0.01, at most 1; 0 is none"
                 : "a share as \"1%\" or 0.01, more than 0 and at most 1");
    }
  }
  void duration(const char* key, std::chrono::microseconds least, std::chrono::microseconds most,
                const std::string& expected, std::chrono::microseconds* value) {
    const toml::node* const found = node(key);
    if (found == nullptr) {
      return;
    }
    const auto* const text = found->as_string();
    const auto time = text != nullptr ? parse_duration(text->get()) : std::nullopt;
    if (time && *time >= least && *time <= most) {
      *value = *time;
    } else {
      wrong(*found, key, expected);
    }
  }

  void finish() {
    for (const auto& [key, value] : table_) {
      const std::string name(key.str());
      if (known_.contains(name)) {
        continue;
      }
      Nearest nearest(name.c_str());
      for (const std::string& each : known_) {
        nearest.offer(each.c_str());
      }
      std::string meant = *nearest.best() == '\0' ? std::string() : nearest.best();
      errors_->add(key.source().begin,
                   fmt::format("{}: expected one of {}; found the unknown key '{}'{}", name_,
                               fmt::join(known_, ", "), printable(name),
                               meant.empty() ? "" : fmt::format(": did you mean {}?", meant)));
    }
  }

 private:
  void wrong_at(const toml::node& node, const std::string& what, const std::string& expected) {
    errors_->add(node.source().begin,
                 fmt::format("{}: expected {}, found {}", what, expected, found_text(node)));
  }
  void read_text(const toml::node& node, const std::string& what, std::string* value) {
    const auto* const text = node.as_string();
    if (text == nullptr || text->get().empty() || text->get().find('\0') != std::string::npos) {
      wrong_at(node, what, "a string that is not empty and has no NUL");
    } else {
      *value = text->get();
    }
  }

  const toml::table& table_;
  std::string name_;
  ConfigErrors* errors_;
  std::set<std::string> known_;
};

void read_service(ConfigTable table, ServiceConfig* config) {
  table.text("store", &config->store);
  if (!table.has("store")) {
    table.missing("store, the folder of what is found");
  }
  table.number("store_megabytes", static_cast<int64_t>(ServiceConfig::kLeastMegabytes),
               static_cast<int64_t>(ServiceConfig::kMostMegabytes), &config->store_megabytes);
  table.text("metrics", &config->metrics);
  table.text("metrics_listen", &config->metrics_listen);
  if (const toml::node* const listen = table.node("metrics_listen");
      listen != nullptr && !config->metrics_listen.empty() &&
      !parse_listen_address(config->metrics_listen)) {
    table.wrong(*listen, "metrics_listen", kListenForm + std::string(", of this machine alone"));
  }
  table.flag("journal", &config->journal);
  table.share("idle_share", &config->idle_share, true);
  table.number("memory_megabytes", static_cast<int64_t>(ServiceConfig::kLeastMemory),
               static_cast<int64_t>(ServiceConfig::kMostMegabytes), &config->memory_megabytes);
  table.share("cpu_share", &config->cpu_share);
  table.text("user", &config->user);
  table.finish();
}

void read_properties(ConfigTable* table, std::vector<Property>* properties) {
  constexpr const char* kKey = "properties";
  constexpr const char* kExpected =
      "serializability, robustness, sc-serializability or atomic-sets, each at most once";
  const toml::node* const found = table->node(kKey);
  if (found == nullptr) {
    return;
  }
  const toml::array* const array = found->as_array();
  if (array == nullptr || array->empty()) {
    table->wrong(*found, kKey, "an array of properties, at least one");
    return;
  }
  properties->clear();
  for (const toml::node& each : *array) {
    const auto* const text = each.as_string();
    const auto property = text != nullptr ? property_named(text->get()) : std::nullopt;
    if (!property ||
        std::find(properties->begin(), properties->end(), *property) != properties->end()) {
      table->wrong(each, kKey, kExpected);
    } else {
      properties->push_back(*property);
    }
  }
}

// A text that `wrong` has nothing to say about.
void read_checked(ConfigTable* table, const char* key, std::string (*wrong)(std::string_view),
                  std::string* value) {
  table->text(key, value);
  const std::string expected = value->empty() ? std::string() : wrong(*value);
  if (!expected.empty()) {
    table->wrong(*table->node(key), key, expected);
  }
}

constexpr std::array<const char*, 3> kGroupKeys{"cgroup", "unit", "container"};

// True: there is one.
bool read_group(ConfigTable* table, attach::GroupChoice* group) {
  read_checked(table, kGroupKeys[0], attach::wrong_group_path, &group->path);
  read_checked(table, kGroupKeys[1], attach::wrong_unit, &group->unit);
  read_checked(table, kGroupKeys[2], attach::wrong_container, &group->container);
  table->only_one({kGroupKeys[0], kGroupKeys[1], kGroupKeys[2]});
  const char* found = nullptr;
  for (const char* const key : kGroupKeys) {
    found = found == nullptr && table->has(key) ? key : found;
  }
  for (const char* const key : {"pid", "command"}) {
    if (found != nullptr && table->has(key)) {
      table->wrong(*table->node(key), key, fmt::format("none beside {}", found));
    }
  }
  return found != nullptr;
}

// Those of `tsomon run --trigger` that need no privilege.
void read_trigger(ConfigTable* table, std::string* value) {
  constexpr const char* kKey = "trigger";
  table->text(kKey, value);
  if (value->empty()) {
    return;
  }
  if (const auto trigger = parse_trigger(*value);
      !trigger || trigger->kind != TriggerName::Kind::kFunction) {
    table->wrong(*table->node(kKey), kKey,
                 "\"function=PATTERN\" (the others of tsomon run --trigger are not for a service)");
  }
}

TargetConfig read_target(ConfigTable table) {
  using std::chrono::microseconds;
  using std::chrono::seconds;
  TargetConfig target;
  table.text("name", &target.name);
  if (!table.has("name")) {
    table.missing("name");
  }
  table.number("pid", 1, std::numeric_limits<pid_t>::max(), &target.pid);
  table.text("program", &target.program);
  table.texts("command", &target.command);
  const int ways =
      (table.has("pid") ? 1 : 0) + (table.has("program") ? 1 : 0) + (table.has("command") ? 1 : 0);
  if (!read_group(&table, &target.group) && ways == 0) {
    table.missing("pid, program, command, cgroup, unit or container");
  }
  if (const toml::node* const command = table.node("command");
      command != nullptr && command->is_array() && target.command.empty()) {
    table.wrong(*command, "command", "the program and its arguments");
  }
  table.text("control", &target.control);
  if (const toml::node* const control = table.node("control");
      control != nullptr && !target.control.empty() &&
      (target.control.front() != '/' || target.control.find(':') != std::string::npos)) {
    table.wrong(*control, "control", "an absolute path of a folder, without ':'");
  }
  read_properties(&table, &target.properties);
  table.share("sample", &target.sample);
  table.share("max_overhead", &target.max_overhead);
  table.duration("slice", microseconds(100), seconds(10), "a time as \"20ms\", from 100us to 10s",
                 &target.slice);
  table.flag("focus", &target.focus);
  table.flag("cold", &target.cold);
  table.texts("labels", &target.labels);
  if (const toml::node* const labels = table.node("labels");
      labels != nullptr && !target.labels.empty() && !target.focus) {
    table.wrong(*labels, "labels", "focus = true beside it");
  }
  table.texts("suppressions", &target.suppressions);
  table.duration("flight_recorder", std::chrono::milliseconds(100), seconds(60),
                 "a time as \"5s\", from 100ms to 60s", &target.flight_recorder);
  table.text("flight_function", &target.flight_function);
  if (const toml::node* const function = table.node("flight_function");
      function != nullptr && target.flight_recorder.count() == 0) {
    table.wrong(*function, "flight_function", "flight_recorder beside it");
  }
  read_trigger(&table, &target.trigger);
  if (ways > 1) {
    table.only_one({"pid", "program", "command"});
  }
  table.finish();
  return target;
}

}  // namespace

ConfigReading parse_config(std::string_view text, const std::string& file) {
  ConfigReading reading;
  reading.text = text;
  ConfigErrors errors(file);
  if (text.size() > kMostConfigBytes) {
    errors.add({1, 1}, fmt::format("expected at most {} bytes, found more", kMostConfigBytes));
    reading.errors = errors.take();
    return reading;
  }
  std::optional<toml::table> parsed;
  try {
    parsed = toml::parse(text);
  } catch (const toml::parse_error& error) {
    errors.add(error.source().begin, printable(error.description()));
    reading.errors = errors.take();
    return reading;
  }
  ConfigTable root(*parsed, "the file", &errors);
  ServiceConfig& config = reading.config;
  if (const toml::node* const service = root.node("service"); service == nullptr) {
    errors.add({1, 1}, "expected a table [service], found none");
  } else if (service->is_table()) {
    read_service({*service->as_table(), "service", &errors}, &config);
  } else {
    root.wrong(*service, "service", "a table [service]");
  }
  if (const toml::node* const targets = root.node("target"); targets == nullptr) {
    errors.add({1, 1}, "expected a table [[target]] for each program to watch, found none");
  } else if (const toml::array* const list = targets->as_array();
             list == nullptr || list->empty() || !list->is_array_of_tables()) {
    root.wrong(*targets, "target", "tables [[target]]");
  } else if (list->size() > kMostTargets) {
    root.wrong(*targets, "target", fmt::format("at most {} tables [[target]]", kMostTargets));
  } else {
    std::set<std::string> names;
    for (const toml::node& each : *list) {
      config.targets.push_back(read_target({*each.as_table(), "target", &errors}));
      const std::string& name = config.targets.back().name;
      if (!name.empty() && !names.insert(name).second) {
        errors.add(each.source().begin,
                   fmt::format("target.name: expected a name of its own, found '{}' again",
                               printable(name)));
      }
    }
  }
  root.finish();
  reading.errors = errors.take();
  return reading;
}

ConfigReading read_config(const std::string& file) {
  auto text = read_input(file, kMostConfigBytes);
  if (!text) {
    return {{}, {std::move(text.error())}};
  }
  return parse_config(*text, input_name(file));
}

}  // namespace tsomon::service
