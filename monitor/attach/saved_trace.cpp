#include "monitor/attach/saved_trace.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace tsomon::attach {

SavedTrace::SavedTrace(const std::string& path, const Symbols& symbols, const std::string& note)
    : path_(path), writer_(symbols) {
  if (path.empty()) {
    return;
  }
  file_ = Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file_.is_open()) {
    note_failure();
    return;
  }
  if (!note.empty()) {
    text_ = fmt::format("# {}\n", note);
  }
  writer_.write_headers(text_);
  StdWriter::write_recorded_until_whole(text_);
}

void SavedTrace::add(const EventBlock& block, const std::vector<EventLoss>& losses) {
  if (!file_.is_open() || !problem_.empty()) {
    return;
  }
  for (const EventLoss& loss : losses) {
    StdWriter::write_lost(loss.events, text_);
  }
  writer_.write(block, text_);
  flush();
}

void SavedTrace::incomplete() {
  if (file_.is_open() && problem_.empty()) {
    StdWriter::write_lost(0, text_);
    flush();
  }
}

void SavedTrace::finish() {
  if (file_.is_open() && problem_.empty()) {
    StdWriter::write_whole(text_);
    flush();
  }
}

void SavedTrace::flush() {
  for (size_t at = 0; at < text_.size();) {
    const ssize_t written = ::write(file_.get(), text_.data() + at, text_.size() - at);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      note_failure();
      break;
    }
    at += static_cast<size_t>(written);
  }
  text_.clear();
}

void SavedTrace::note_failure() {
  problem_ = fmt::format("{}: cannot be written: {}", path_, std::strerror(errno));
}

}  // namespace tsomon::attach
