// `tsomon explore --clients`: the smallest client of an object that goes wrong.
//
// Purpose     A program that registers an object and its operations (tsomon_client.h) runs any client
//             of it. This runs all clients within bounds, smallest first
//             (offline/explore/clients.h), each under every schedule, until one shows something.
// Bounds file Lines `key = value`, a part of TOML; `#` begins a comment. calls, threads, before,
//             after: ClientBounds; operations = ["push", "pop"]: only these, else all.
// Complete    All clients within the bounds, up to the one that is reported, were explored, each
//             completely.
// Traces      `-o DIR`: of the classes of the client that is reported; that one is explored again.
// Replay      `--replay CLIENT@SCHEDULE`: of this client alone, judged as all are.
// Jobs        Each explores a client at a time. What is reported and the totals do not depend on how
//             many there are: clients behind the reported one do not count.
// Errors      A bounds file that cannot be read or understood (kMalformed, with the line); a program
//             that lists no operations; a replay of what is none of its clients (kUsage).
// Thread-safety: none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "monitor/explore/explore.h"
#include "offline/explore/clients.h"
#include "tso/support/result.h"

namespace tsomon::explore {

struct ClientPlan {
  ClientBounds bounds;
  std::vector<std::string> operations;  // empty: all
};
// `name`: of the input, for messages.
Result<ClientPlan> parse_client_plan(std::string_view text, const std::string& name);

// The program as it runs that client alone.
ExploreOptions of_client(ExploreOptions options, const std::string& client);

// The exploration of the client that shows something, with the totals of all that were explored.
// `file` holds the plan. options.linearizability is added if the program says what its object is.
Result<Exploration> explore_clients(const ExploreOptions& options, const std::string& file);

}  // namespace tsomon::explore
