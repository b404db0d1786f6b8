// What this machine offers for recording and checking, and the remedy for what is missing.
//
// Every finding is measured or tried here and now, never guessed from a version number. A
// finding names what needs it; only findings with `required` decide whether recording works.
// Thread-safety: examine_machine() may be called from one thread at a time.
#pragma once

#include <string>
#include <vector>

namespace tsomon {

struct Finding {
  std::string name;  // stable, for programs: "cores", "kernel", ...
  bool available = false;
  bool required = false;  // `tsomon record` does not work without it
  std::string detail;     // what was found
  std::string needed_by;  // what uses it
  std::string remedy;     // what to do when it is missing; empty when available
};

std::vector<Finding> examine_machine();

}  // namespace tsomon
