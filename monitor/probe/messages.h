// What the runtime tells the user.
//
// warn() writes a line on standard error, but only while that is what it was when the program
// started: a daemon closes it, and a file of the program's gets its number. `tsomon record` and
// `tsomon run` are told, too, through the FIFO that TSOMON_MESSAGES names: they say what could not
// be said, and know that the program ended because the runtime refused.
// In the FIFO     a line for each message: 's' or 'u' (said on standard error or not) and the text;
//                 the line "!": the process ends before main.
// Thread-safety: all of it, also in signal handlers.
#pragma once

namespace tsomon::probe {

inline constexpr const char* kMessagesVariable = "TSOMON_MESSAGES";

// At the start, before the first message.
void prepare_messages();

// Message of one line, prefixed with "tsomon: ".
__attribute__((format(printf, 1, 2))) void warn(const char* format, ...);

// Ends the process: the runtime cannot do what was asked, which it has said.
// kBadOptions: TSOMON_OPTIONS asks for something that is not there; kBadEnvironment: the machine
// refuses something.
inline constexpr int kBadOptions = 2;
inline constexpr int kBadEnvironment = 4;
[[noreturn]] void refuse(int status);

}  // namespace tsomon::probe
