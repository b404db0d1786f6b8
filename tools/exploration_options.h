// The options of `explore` that other commands have, too: what is explored, and for how long.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "monitor/explore/explore.h"
#include "tools/number_option.h"
#include "tools/object_option.h"
#include "tools/property_option.h"
#include "tools/word_option.h"

namespace tsomon {

struct ExplorationArguments {
  std::string model = "tso";
  std::vector<std::string> properties;
  std::string object = "auto";
  explore::ExploreOptions explore;

  // What the texts say, in explore's terms.
  const explore::ExploreOptions& asked() {
    const auto asks = [this](const char* property) {
      return std::find(properties.begin(), properties.end(), property) != properties.end();
    };
    explore.model = model == "sc" ? explore::Model::kSc : explore::Model::kTso;
    explore.serializability = asks("serializability");
    explore.robustness = asks("robustness");
    explore.linearizability = asks("linearizability");
    explore.object = linearizability::object_kind(object);
    return explore;
  }
};

// All but the properties and the program.
inline void add_exploration_options(CLI::App& command, ExplorationArguments& arguments) {
  command.add_option("--model", arguments.model, "The memory model of the executions")
      ->check(one_of({"sc", "tso"}))
      ->capture_default_str();
  command.add_option("--executions", arguments.explore.executions, "End after so many")
      ->check(positive_number())
      ->option_text("N");
  command.add_option("--time", arguments.explore.seconds, "End after so many seconds")
      ->check(CLI::Range(0.001, 1e9))
      ->option_text("S");
  command.add_option("--steps", arguments.explore.max_steps, "Steps of one execution at most")
      ->check(CLI::Range(1, 16000))
      ->capture_default_str();
}

inline void add_explored_program(CLI::App& command, ExplorationArguments& arguments) {
  command
      .add_option("command", arguments.explore.command, "The program and its arguments, after --")
      ->option_text("CMD...");
  command.positionals_at_end();
}

}  // namespace tsomon
