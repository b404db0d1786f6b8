// tsomon becomes tsomon-fleet (fleet_commands.h).
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <unistd.h>

#include "tools/command.h"
#include "tools/fleet_commands.h"
#include "tools/output.h"

namespace tsomon {
namespace {

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) {
    words.push_back(word);
  }
  return words;
}

// Beside this program where it was built, in lib/tsomon where it was installed. Returns when there is none.
int launch() {
  char self[PATH_MAX] = {};
  const ssize_t size = ::readlink("/proc/self/exe", self, sizeof self - 1);
  std::vector<std::string> words = own_arguments();
  if (size <= 0 || words.empty()) {
    put_message("tsomon", "/proc is not there");
    return kExitEnvironment;
  }
  ::setenv("TSOMON_PROGRAM", self, 1);
  const std::string folder = std::string(self, std::string_view(self).rfind('/'));
  int error = ENOENT;
  for (const char* const place : {"/tsomon-fleet", "/../lib/tsomon/tsomon-fleet"}) {
    const std::string program = folder + place;
    words.front() = program;
    std::vector<char*> pointers;
    for (std::string& word : words) {
      pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    ::execv(program.c_str(), pointers.data());
    error = errno == ENOENT ? error : errno;
  }
  put_message("tsomon", fmt::format("tsomon-fleet cannot be started: {}; it comes with the package "
                                    "tsomon-fleet",
                                    std::strerror(error)));
  return kExitEnvironment;
}

}  // namespace

int run_submit(const SubmitArguments& /*options*/) { return launch(); }
int run_worker(const WorkerArguments& /*options*/) { return launch(); }
int run_fleet(const FleetArguments& /*options*/) { return launch(); }
int run_fleet_findings(const FleetFindingsArguments& /*options*/) { return launch(); }

}  // namespace tsomon
