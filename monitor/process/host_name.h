// What this machine calls itself.
#pragma once

#include <array>
#include <string>

#include <unistd.h>

namespace tsomon {

// Empty: it has no name, or a very long one.
inline std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace tsomon
