// The findings of a fleet: one for each fingerprint and property, of however many hosts.
//
// Best        The one that is shown is a definite one before others, then the first one.
// Complexity  O(sightings) times its logarithm; memory O(findings and where they were seen).
// Thread-safety: none.
#pragma once

#include <string>
#include <vector>

#include "monitor/fleet/fleet.h"
#include "monitor/service/store.h"
#include "tso/support/result.h"

namespace tsomon::fleet {

// Those whose fingerprint begins with `id`, of one tenant unless `tenant` is empty, the last seen first. `files` are the names that
// contents had, some of them; a sighting's target is the tenant.
Result<std::vector<service::KeptFinding>> fleet_findings(Fleet& fleet, const std::string& id,
                                                         const std::string& tenant);

}  // namespace tsomon::fleet
