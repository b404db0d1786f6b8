// What a verdict rests on, and what is missing for a clean one.
//
// Purpose     "Nothing found" means something only if there was something to find it in. A
//             recording without any unit of two or more accesses, or without any event, shows
//             nothing: of it a clean verdict is `inconclusive`, with the reason and the
//             remedy. One place decides so for `check`, `run`, `attach` and the embedded
//             monitor.
// Units       Serializability and atomic sets are about units of several accesses: between single
//             accesses there is nothing to interrupt. Robustness is not about units. It needs an
//             event.
// Text traces What somebody wrote down, as a question about these very events, is answered even if
//             each of them is a unit of its own; only without any event it is not. A text trace of
//             a recording says that it is one (`recorded()`, docs/formats/text-traces.md).
// Cancelled   Attempts that failed are no units. Where all failed, nothing was meant to be atomic.
// Misses      How much of the program was instrumented, as long as the recording does not say so.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "monitor/findings/event_count.h"
#include "tso/model/trace.h"

namespace tsomon {

// Where the events come from.
enum class BasisSource : uint8_t {
  kWritten,   // a text trace that somebody wrote
  kProbe,     // a program that was built with tsomon-c++
  kAttached,  // a process that was attached to
  kPerf,      // perf.data
  kFed,       // a program that feeds a monitor of its own
};

struct Shortfall {
  std::string reason;
  std::string remedy;
};

struct Basis {
  BasisSource source = BasisSource::kWritten;
  uint64_t matter = 0;           // events that order anything: all but begin, end and their like
  uint64_t accesses = 0;         // loads, stores, locked read-modify-writes
  uint64_t declared_units = 0;   // that somebody began
  uint64_t larger_units = 0;     // with two accesses or more
  uint64_t cancelled_units = 0;  // which are none of these
  uint64_t labels = 0;           // different ones
  uint64_t sets = 0;             // atomic sets that were declared
  Selection selection;
  std::optional<Shortfall> no_event;  // why there is none, of who knows more about it
};

Basis basis_of(const EventCount& count, const Symbols& symbols, const Selection& selection,
               BasisSource source);

// Why a clean verdict would mean nothing; empty: it means something. `about_units`: the property
// asks about units.
std::vector<Shortfall> shortfalls(const Basis& basis, bool about_units);

// "rests on: 1200 declared units with 2 labels, 1100 of them with two or more accesses; ...".
std::string basis_text(const Basis& basis);
// Two lines of a report: why it is inconclusive, and what to do.
std::string shortfall_lines(const Shortfall& shortfall);
nlohmann::ordered_json basis_json(const Basis& basis);
nlohmann::ordered_json shortfalls_json(const std::vector<Shortfall>& shortfalls);

}  // namespace tsomon
