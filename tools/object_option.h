// The options --object and --specification, for every subcommand that judges linearizability.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tools/word_option.h"

namespace tsomon {

// `object` holds the default, "auto".
inline void add_object_option(CLI::App& command, std::string& object, const std::string& what) {
  command.add_option("--object", object, what)
      ->check(one_of({"auto", "register", "cas-register", "counter", "set", "map", "kv-append",
                      "queue", "stack", "priority-queue", "deque", "mutex"}))
      ->capture_default_str();
}

inline void add_specification_option(CLI::App& command, std::string& program) {
  command
      .add_option("--specification", program,
                  "Of linearizability: a program that says what calls return one after the other\n"
                  "(PROGRAM --specification of tsomon_client.h), in the place of --object")
      ->option_text("COMMAND");
}

}  // namespace tsomon
