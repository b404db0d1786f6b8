#include "tools/terminal_screen.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "tso/support/printable.h"

namespace tsomon {
namespace {

constexpr const char* kOtherScreen = "\x1b[?1049h\x1b[?25l";
constexpr const char* kUsualScreen = "\x1b[?25h\x1b[?1049l";
constexpr const char* kFirstLine = "\x1b[H";
constexpr const char* kClearLine = "\x1b[K";
constexpr const char* kClearBelow = "\x1b[J";

void put_sequence(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

winsize window_size() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size : winsize{};
}

}  // namespace

TerminalScreen::TerminalScreen() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH}) {
    ::sigaddset(&signals, number);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals, &mask_before_);
  signals_ = Descriptor(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  has_keys_ = ::isatty(STDIN_FILENO) != 0 && ::tcgetattr(STDIN_FILENO, &keys_before_) == 0;
  if (has_keys_) {
    termios keys = keys_before_;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    keys.c_cc[VSUSP] = _POSIX_VDISABLE;
    keys.c_cc[VMIN] = 0;
    keys.c_cc[VTIME] = 0;
    has_keys_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
  }
  put_sequence(kOtherScreen);
}

TerminalScreen::~TerminalScreen() {
  put_sequence(kUsualScreen);
  if (has_keys_) {
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &keys_before_);
  }
  while (read_signal() != Event::kTime) {  // was asked for, and is what ended this
  }
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

size_t TerminalScreen::columns() const { return window_size().ws_col; }
size_t TerminalScreen::rows() const { return window_size().ws_row; }

void TerminalScreen::draw(const std::vector<std::string>& lines) {
  const size_t most = rows() == 0 ? lines.size() : std::min(lines.size(), rows());
  std::string text = kFirstLine;
  for (size_t i = 0; i < most; ++i) {
    text += printable(lines[i]) + kClearLine + (i + 1 < most ? "\r\n" : "");
  }
  put_sequence(text + kClearBelow);
}

// kTime: there was none.
TerminalScreen::Event TerminalScreen::read_signal() {
  signalfd_siginfo came{};
  if (::read(signals_.get(), &came, sizeof came) != static_cast<ssize_t>(sizeof came)) {
    return Event::kTime;
  }
  return came.ssi_signo == SIGWINCH ? Event::kResized : Event::kEnd;
}

TerminalScreen::Event TerminalScreen::wait(std::chrono::milliseconds time) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + time;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd polled[2] = {{signals_.get(), POLLIN, 0}, {has_keys_ ? STDIN_FILENO : -1, POLLIN, 0}};
    if (::poll(polled, 2, static_cast<int>(std::max<int64_t>(left, 0))) < 0 && errno != EINTR) {
      return Event::kEnd;
    }
    if (const Event event = read_signal(); event != Event::kTime) {
      return event;
    }
    if (polled[1].revents != 0) {
      char key = 0;
      const ssize_t size = ::read(STDIN_FILENO, &key, 1);
      if (size <= 0 || key == 'q' || key == 'Q') {
        return Event::kEnd;  // or the terminal is gone
      }
    }
    if (Clock::now() >= until) {
      return Event::kTime;
    }
  }
}

}  // namespace tsomon
