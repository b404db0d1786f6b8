// The options that say what is ordered, the same in every subcommand that judges.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "tools/word_option.h"
#include "tso/model/relation.h"

namespace tsomon {

struct RelationChoice {
  std::string semantics = "exact";
  std::string lock_release = "plain";
  uint32_t store_buffer = 0;

  RelationOptions relation() const {
    RelationOptions options;
    options.semantics = semantics == "paper" ? Semantics::kPaper : Semantics::kExact;
    options.fenced_release = lock_release == "fenced";
    options.store_buffer = store_buffer;
    return options;
  }
};

// `choice` keeps its values as the defaults and must outlive the parsing.
inline void add_relation_options(CLI::App& command, RelationChoice& choice) {
  command
      .add_option("--semantics", choice.semantics,
                  "exact: only orders that some execution has; paper: the plain relation")
      ->check(one_of({"exact", "paper"}))
      ->capture_default_str();
  command
      .add_option(
          "--store-buffer", choice.store_buffer,
          fmt::format("Entries of a store buffer (default: {})",
                      choice.store_buffer == 0 ? "unbounded" : std::to_string(choice.store_buffer)))
      ->check(CLI::Range(uint32_t{1}, uint32_t{1} << 30))
      ->option_text("N");
  command
      .add_option("--lock-release", choice.lock_release,
                  "plain: rel(l) is a store; fenced: rel(l) is a locked operation")
      ->check(one_of({"plain", "fenced"}))
      ->capture_default_str();
}

// `sets` keeps its value as the default and must outlive the parsing; monitor/judge/check.h reads
// it.
inline void add_sets_option(CLI::App& command, std::string& sets) {
  command
      .add_option("--sets", sets,
                  "Atomic sets: annotated (one set of everything without annotations); objects: "
                  "what was\nallocated together, recorded with TSOMON_OPTIONS=objects=SIZE; auto: "
                  "annotated sets if there\nare any, else objects if there are any")
      ->check(one_of({"auto", "annotated", "objects"}))
      ->capture_default_str();
}

}  // namespace tsomon
