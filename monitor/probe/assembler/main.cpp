// `as` of the wrappers: the system's, behind rewrite() and with_twins() for what a compiler has written.
//
// Exit status: the assembler's. Where it refuses the rewritten text, the text with places alone is
// tried, then the original; so messages are about what the user wrote.
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/probe/assembler/rewrite.h"
#include "monitor/probe/assembler/twins.h"

namespace {

using tsomon::assembler::Rewrite;
using tsomon::assembler::with_twins;

std::string real_assembler() {
  if (const char* const told = std::getenv("TSOMON_AS")) {
    return told;
  }
  struct stat own = {};
  stat("/proc/self/exe", &own);
  std::string path = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
  path += ":/usr/bin:/bin";
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find(':', at), path.size());
    const std::string candidate = path.substr(at, end - at) + "/as";
    struct stat found = {};
    if (stat(candidate.c_str(), &found) == 0 && access(candidate.c_str(), X_OK) == 0 &&
        (found.st_ino != own.st_ino || found.st_dev != own.st_dev)) {
      return candidate;
    }
    at = end + 1;
  }
  return "/usr/bin/as";
}

bool read_all(int descriptor, std::string* text) {
  struct stat status = {};
  if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
    text->reserve(static_cast<size_t>(status.st_size) + 1);
  }
  static char part[1 << 16];
  for (;;) {
    const ssize_t count = read(descriptor, part, sizeof part);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return count == 0;
    }
    text->append(part, static_cast<size_t>(count));
  }
}

[[noreturn]] void become(const std::string& program, std::vector<char*> arguments) {
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  std::fprintf(stderr, "tsomon: cannot run the assembler %s: %s\n", program.c_str(),
               std::strerror(errno));
  _exit(2);
}

// With the text for the input; `quietly`: without its messages. Returns its wait status.
int assemble(const std::string& program, const std::vector<char*>& arguments, size_t input,
             const std::string& text, bool quietly) {
  const int memory = memfd_create("tsomon", 0);
  if (memory < 0) {
    return -1;
  }
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t count = write(memory, text.data() + at, text.size() - at);
    if (count <= 0) {
      close(memory);
      return -1;
    }
    at += static_cast<size_t>(count);
  }
  const pid_t child = fork();
  if (child == 0) {
    if (quietly) {
      const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
      dup2(nowhere, STDERR_FILENO);
    }
    char name[64];
    std::snprintf(name, sizeof name, "/proc/self/fd/%d", memory);
    std::vector<char*> with = arguments;
    if (input < with.size()) {
      with[input] = name;
    } else {
      with.push_back(name);
    }
    become(program, with);
  }
  int status = -1;
  if (child > 0) {
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  close(memory);
  return status;
}

// The place of the input among the arguments; their number: standard input.
size_t input_of(const std::vector<char*>& arguments) {
  size_t found = arguments.size();
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string argument = arguments[i];
    if (argument == "-o" || argument == "-I" || argument == "--MD" || argument == "--defsym" ||
        argument == "--debug-prefix-map" || argument == "-t") {
      ++i;
    } else if (argument[0] != '-' || argument == "-") {
      found = i;
    }
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string program = real_assembler();
  std::vector<char*> arguments(argv, argv + argc);
  for (const char* const argument : arguments) {
    if (std::strcmp(argument, "--version") == 0 || std::strcmp(argument, "--help") == 0 ||
        argument[0] == '@') {
      become(program, arguments);
    }
  }
  const size_t input = input_of(arguments);
  const bool from_file = input < arguments.size() && std::strcmp(arguments[input], "-") != 0;
  const int descriptor = from_file ? open(arguments[input], O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
  std::string text;
  if (descriptor < 0 || !read_all(descriptor, &text)) {
    become(program, arguments);
  }
  const auto twins = with_twins(text);
  const auto rewritten = tsomon::assembler::rewrite(text, Rewrite::kInstructions);
  if (!rewritten && !twins && from_file) {
    become(program, arguments);
  }
  const auto assembles = [&](const std::string& changed, bool quietly) {
    return assemble(program, arguments, input, with_twins(changed).value_or(changed), quietly) == 0;
  };
  const bool quietly = std::getenv("TSOMON_AS_MESSAGES") == nullptr;
  if (rewritten && (assembles(*rewritten, quietly) ||
                    assembles(*tsomon::assembler::rewrite(text, Rewrite::kPlacesOnly), true))) {
    return 0;
  }
  if (twins && assembles(text, quietly)) {
    return 0;
  }
  if ((rewritten || twins) && from_file) {
    become(program, arguments);
  }
  const int status = assemble(program, arguments, input, text, false);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}
