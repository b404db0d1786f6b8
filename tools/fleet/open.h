// The fleet of a command line.
#pragma once

#include <memory>
#include <string_view>

#include "monitor/fleet/fleet.h"
#include "tools/fleet_commands.h"

namespace tsomon {

// nullptr: it was told why, and `exit_status` says it, too.
std::unique_ptr<fleet::Fleet> open_fleet_of(const FleetAddress& address, std::string_view tool,
                                            int* exit_status);
}  // namespace tsomon
