// One event in words, as reports show it: "store x := 5", "load 0x7f10+8 = 3", "fence".
//
// Names are as they came in: text output escapes them (tso/support/printable.h), JSON does not.
// Thread-safety: pure functions of their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tso/model/trace.h"

namespace tsomon {

// What an event does: "load", "store", "locked", "fence", "start thread" ...
const char* operation_name(EventKind kind);
// Some have a kind in common.
const char* operation_name(const Event& event);
// What it does it to: "x", "0x7f10+8", a thread; empty for a fence.
std::string operand_text(const Event& event, const Symbols& symbols);
// The thread's name, or "T5" where it has none.
std::string thread_text(ThreadId thread, const Symbols& symbols);

// "store x := 5" and its like, escaped.
std::string operation_text(const std::string& operation, const std::string& operand,
                           std::optional<uint64_t> read, std::optional<uint64_t> written);
std::string event_text(const EventBlock& events, const Symbols& symbols, uint32_t e);

}  // namespace tsomon
