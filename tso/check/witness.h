// The witness checker: trusts nothing that a search computed.
//
// Source      Theory sections 2, 6 and 8.
// Purpose     Replays a witness on the rules of the machine and recomputes what it is said to show,
//             from the definitions and by plain loops, without the tables that the searches use:
//              1. every event of the slice is issued once, in program order of its thread;
//              2. every store commits once, after its issue, first in first out; fences and locked
//                 operations find their thread's buffer empty;
//              3. every directed edge of the trace between events of the slice is kept;
//              4. the conflict graph of the execution (for robustness: its events with full
//                 program order) has a cycle: of the events of the witness alone, so that what
//                 orders a store and a later load of its thread has to be among them;
//              5. where a location's stores all lie in the slice, and none was made before the
//                 trace begins, loads return recorded values (WitnessValues);
//              6. nobody acquires a lock between an acquisition and its release in the slice.
//             SC-serializability asks for the order of the issues. Where values count they are those of
//             an execution under TSO, and stores may commit late; elsewhere they commit at once.
// Complexity  O(n) for a trace of n events, once; then for a witness of w events O(w^2) and what
//             the definitions look at: at most the events of a thread between two drains, and the
//             stores to the bytes that the witness loads.
// Thread-safety: check_witness() is a pure function of its arguments; of a WitnessChecker every
//             thread needs its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tso/model/property.h"
#include "tso/model/relation.h"
#include "tso/order/execution.h"
#include "tso/support/result.h"

namespace tsomon {

enum class WitnessValues : uint8_t {
  kIgnored,  // rule 5 is not asked for
  kKnown,    // rule 5
  kShown,    // and in the witness alone a load returns what it shows to be in memory
};

struct WitnessClaim {
  Property property = Property::kSerializability;
  RelationOptions options;
  WitnessValues values = WitnessValues::kKnown;
  bool exclusion = true;  // rule 6
};

// For many witnesses of one trace, which must outlive the checker.
class WitnessChecker {
 public:
  WitnessChecker(const Trace& trace, const WitnessClaim& claim);
  ~WitnessChecker();
  WitnessChecker(const WitnessChecker&) = delete;
  WitnessChecker& operator=(const WitnessChecker&) = delete;

  // As check_witness(); `values` in place of the claim's.
  Result<std::vector<uint32_t>> check(const std::vector<Step>& witness, WitnessValues values) const;

 private:
  struct Tables;
  const Trace& trace_;
  WitnessClaim claim_;
  std::unique_ptr<Tables> tables_;
};

// The witness without the events that it does not need: of what is left, no single event could be
// left out without the checker refusing the rest or a load losing a store it may be forwarded from.
// `first_kept` are events that suffice, as far as known: the ends of the cycle's edges, and what
// orders them; Ends::kStay: none of them is left out. More than kMaxMinimised events are returned as they are.
// O(w) checks for w of these.
inline constexpr size_t kMaxMinimised = 200;
enum class Ends : uint8_t { kMayGo, kStay };
std::vector<Step> minimal_witness(const WitnessChecker& checker, const Relation& relation,
                                  const std::vector<Step>& witness, WitnessValues values,
                                  const std::vector<uint32_t>& first_kept,
                                  Ends ends = Ends::kMayGo);

// The cycle that the execution shows, as trace events: each one's unit (for robustness: the event
// itself) precedes the next one's. An error says which rule the witness breaks.
Result<std::vector<uint32_t>> check_witness(const Trace& trace, const std::vector<Step>& witness,
                                            const WitnessClaim& claim);

}  // namespace tsomon
