// A whole terminal that is written anew, and given back as it was.
//
// Purpose     Its other screen, without a cursor; keys come one by one and are not shown. SIGINT, SIGTERM, SIGHUP and SIGQUIT end
//             what is waited for instead of the process, so that the terminal is given back whatever ends it; Ctrl-Z is
//             a key like others. No curses: a few sequences that every terminal of today knows are all there is to it.
// Errors      Where standard input is no terminal no keys come.
// Thread-safety: one at a time in a process, made before other threads.
#pragma once

#include <chrono>
#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

#include <termios.h>

#include "monitor/process/descriptor.h"

namespace tsomon {

class TerminalScreen {
 public:
  enum class Event { kTime, kResized, kEnd };

  TerminalScreen();
  TerminalScreen(const TerminalScreen&) = delete;
  TerminalScreen& operator=(const TerminalScreen&) = delete;
  ~TerminalScreen();

  // As it is now; 0: not known.
  size_t columns() const;
  size_t rows() const;
  // As many as there are rows for. Each has been made printable, and is no wider than the terminal.
  void draw(const std::vector<std::string>& lines);
  // kEnd: a signal, or the key q.
  Event wait(std::chrono::milliseconds time);

 private:
  Event read_signal();

  Descriptor signals_;
  sigset_t mask_before_{};
  termios keys_before_{};
  bool has_keys_ = false;
};

}  // namespace tsomon
