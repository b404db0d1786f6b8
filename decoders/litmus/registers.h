// Names of the general-purpose registers of x86-64, in any case, with their widths: AL, AX, EAX and
// RAX are parts of one register. AH, BH, CH and DH are not known.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tso/machine/program.h"

namespace tsomon::litmus {

struct RegisterName {
  machine::Register number = 0;
  uint8_t width = 0;  // bytes
};

std::optional<RegisterName> find_register(std::string_view name);

}  // namespace tsomon::litmus
