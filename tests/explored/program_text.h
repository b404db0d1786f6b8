// Programs of the abstract machine as one argument of a command line: numbers, a space between them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tso/machine/program.h"

namespace tsomon::explored {

std::string program_text(const machine::Program& program);
// Reads what program_text() gave.
machine::Program parse_program(const std::string& text);

// The registers that a final state is told by: those that some instruction names, and that compare-exchange writes.
// Ordered by thread, then by number.
std::vector<std::pair<size_t, machine::Register>> named_registers(const machine::Program& program);

}  // namespace tsomon::explored
