// A fleet in NATS JetStream.
//
// Streams     TSOMON_WORK_tenant for each tenant (work queue, one message for a piece of work, so a full one is that tenant's alone),
//             with a consumer `workers`; key-value buckets TSOMON_VERDICT, TSOMON_SIGHTING, TSOMON_PARKED, TSOMON_TRY,
//             TSOMON_CHUNK (docs/formats/fleet.md). They are made by whoever is allowed to and comes first, with three replicas where the
//             address has three servers or more, else one.
// Order       What a verdict rests on comes before it: its chunks, its findings, the verdict, the acknowledgement of the work. Whoever
//             ends in between leaves work that is judged again, with the same findings under the same keys.
// Leases      The consumer's AckWait, which the worker that comes last sets for all; extend() begins it anew.
// Errors      As fleet.h.
#pragma once

#include <memory>
#include <string>

#include "monitor/fleet/credentials.h"
#include "monitor/fleet/fleet.h"
#include "tso/support/result.h"

namespace tsomon::fleet {

Result<std::unique_ptr<Fleet>> open_nats_fleet(const std::string& url,
                                               const Credentials& credentials);

}  // namespace tsomon::fleet
