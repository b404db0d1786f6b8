// A fleet in PostgreSQL, which is all that small fleets need.
//
// Tables      Schema `tsomon`: work, verdict, sighting, chunk, tenant (docs/formats/fleet.md). They are made by whoever is
//             allowed to and comes first.
// Queue       Rows of `work`, taken with FOR UPDATE SKIP LOCKED, so workers do not wait for one another.
// Once        Each call is one statement, which is all or nothing, and may be run again.
// Bound       Chunks are kept until `tsomon fleet prune` removes them.
#pragma once

#include <memory>
#include <string>

#include "monitor/fleet/credentials.h"
#include "monitor/fleet/fleet.h"
#include "tso/support/result.h"

namespace tsomon::fleet {

Result<std::unique_ptr<Fleet>> open_postgres_fleet(const std::string& url,
                                                   const Credentials& credentials);

}  // namespace tsomon::fleet
