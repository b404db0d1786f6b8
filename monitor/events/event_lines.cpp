#include "monitor/events/event_lines.h"

#include <utility>

#include <unistd.h>

namespace tsomon {

Result<bool> EventLines::add(uint64_t first, const std::vector<uint64_t>& lines) {
  if (!file_.is_open()) {
    auto file = temporary_file();
    if (!file) {
      return tl::unexpected<Error>(file.error());
    }
    file_ = std::move(*file);
  }
  std::vector<uint64_t> entries(lines);
  for (uint64_t& entry : entries) {
    ++entry;
  }
  return write_at(file_, entries.data(), entries.size() * sizeof(uint64_t),
                  first * sizeof(uint64_t));
}

uint64_t EventLines::line(uint64_t position) const {
  uint64_t entry = 0;
  const bool known =
      file_.is_open() && ::pread(file_.get(), &entry, sizeof entry,
                                 static_cast<off_t>(position * sizeof entry)) == sizeof entry;
  return known && entry != 0 ? entry - 1 : position;
}

}  // namespace tsomon
