// The option `--store DIR`, the same in every command about what `tsomon monitor` keeps.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tsomon {

// Where it is not given, TSOMON_STORE in the environment says it.
inline CLI::Option* add_store_option(CLI::App& command, std::string& store) {
  return command
      .add_option(
          "--store", store,
          "The folder that the configuration names; or TSOMON_STORE in the environment does")
      ->option_text("DIR")
      ->envname("TSOMON_STORE")
      ->required();
}

}  // namespace tsomon
