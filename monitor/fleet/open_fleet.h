// A fleet by its address.
//
// Form        postgresql://USER@HOST:PORT/DATABASE, as libpq has it; nats://HOST:PORT, or several of one cluster with commas.
// Errors      Those of fleet.h.
#pragma once

#include <memory>
#include <string>

#include "monitor/fleet/credentials.h"
#include "monitor/fleet/fleet.h"
#include "tso/support/result.h"

namespace tsomon::fleet {

Result<std::unique_ptr<Fleet>> open_fleet(const std::string& url, const Credentials& credentials);

}  // namespace tsomon::fleet
