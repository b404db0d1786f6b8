// Where the files of recordings are that were made elsewhere; the same in every subcommand that names places in the source.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "monitor/process/file_search.h"

namespace tsomon {

// `choice` must outlive the parsing.
inline void add_files_options(CLI::App& command, FileSearch& choice) {
  command
      .add_option("--sysroot", choice.sysroot,
                  "Of captures and perf.data: the folder with the recorded machine's files")
      ->check(CLI::ExistingDirectory)
      ->option_text("DIR");
  command
      .add_option("--debug-paths", choice.debug_paths,
                  "Of captures and perf.data: folders with .build-id/12/34....debug, as debuggers "
                  "have them, or of\nunpacked packs; separated by colons, may be repeated")
      ->delimiter(':')
      ->allow_extra_args(false)
      ->check(CLI::ExistingDirectory)
      ->option_text("DIR[:DIR]");
}

}  // namespace tsomon
