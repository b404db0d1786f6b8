// Servers of debugging information, debuginfod: asked where DEBUGINFOD_URLS names some, and only then.
//
// Client      libdebuginfod.so.1 (Debian: libdebuginfod1), loaded when it is needed; what it has fetched it keeps in a cache of its
//             own. libdwfl asks it for debugging information, this file for code that is not here.
// Bounds      A file is waited for kSecondsForOne, all of a process kSecondsForAll, and no longer than until somebody asks for a
//             stop (tso/support/work.h); the bounds of the client (DEBUGINFOD_TIMEOUT, DEBUGINFOD_MAXTIME) hold, too.
// Thread-safety: all functions may be called by several threads.
#pragma once

#include <string>
#include <string_view>

#include <elfutils/libdwfl.h>

namespace tsomon {

inline constexpr double kSecondsForOne = 30;
inline constexpr double kSecondsForAll = 60;

// While there is one, the client of this session keeps to the bounds.
class DebuginfodTurn {
 public:
  explicit DebuginfodTurn(Dwfl* dwfl);
  DebuginfodTurn(const DebuginfodTurn&) = delete;
  DebuginfodTurn& operator=(const DebuginfodTurn&) = delete;
  ~DebuginfodTurn();

 private:
  bool bounds_ = false;
};

// The file with the code of this build-id (of raw bytes), or, if no server has it and `or_debug`, with its debugging information.
// Empty: none.
std::string fetch_code(std::string_view build_id, bool or_debug);

// What a user should know about that, once each; empty: nothing.
std::string take_debuginfod_problem();

}  // namespace tsomon
