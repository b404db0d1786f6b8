// Readers of histories of concurrent objects (docs/formats/histories.md).
//
// Purpose     Calls and returns of operations, in the formats that checkers of linearizability
//             read, to a History.
// Formats     std: `call(op,args)` and `ret(values)` events of text traces, other events skipped.
//             etcd: lines `INFO  jepsen.util - PROCESS :type :operation value`.
//             edn: maps {:process 0, :type :invoke, :f :read, :value nil}, as Knossos reads them.
//             hist: lines `[process] call op(args)` and `[process] return value`.
//             log: one operation a line with the times of its call and return.
// Pending     What never returns, and what ends with `info`, is pending. `fail` says that the
//             operation had no effect; a failed `cas` of an etcd log was carried out and found
//             another value, which is a result.
// Times       Of a log, equal times: what ends then comes before what begins then.
// Errors      kMalformed with "line N" (from 1), what was expected and what was found. The first
//             error ends the reading. An input without anything of its format is malformed,
//             too; entries of edn and etcd that are nobody's operation are skipped.
// Memory      The history. Complexity: O(bytes), log: and a sort.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tso/model/history.h"
#include "tso/support/result.h"

namespace tsomon {

enum class HistoryFormat : uint8_t { kAuto, kStd, kEtcd, kEdn, kHist, kLog };

// The name as --format takes it; nothing for an unknown one.
std::optional<HistoryFormat> history_format(std::string_view name);

// By the first line that says something. Never kAuto.
HistoryFormat detect_history_format(std::string_view text);

// `name`: of the input, for messages.
Result<History> read_history(std::string_view text, const std::string& name,
                             HistoryFormat format = HistoryFormat::kAuto);

}  // namespace tsomon
