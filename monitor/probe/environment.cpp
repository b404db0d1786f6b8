#include "monitor/probe/environment.h"

#include <cstdlib>
#include <cstring>

#include <sys/auxv.h>
#include <unistd.h>

namespace tsomon::probe {
namespace {

bool is_secure() { return getauxval(AT_SECURE) != 0; }

}  // namespace

void close_environment() {
  if (!is_secure() || environ == nullptr) {
    return;
  }
  constexpr char kOurs[] = "TSOMON_";
  char** kept = environ;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, kOurs, sizeof kOurs - 1) != 0) {
      *kept++ = *entry;
    }
  }
  *kept = nullptr;
}

const char* variable(const char* name) { return is_secure() ? nullptr : std::getenv(name); }

}  // namespace tsomon::probe
