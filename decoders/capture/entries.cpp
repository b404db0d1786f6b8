#include "decoders/capture/entries.h"

#include <algorithm>

namespace tsomon::capture {

bool read_modules(EntryReader& reader, std::vector<Module>& modules) {
  while (!reader.at_end()) {
    ModuleEntry entry;
    std::string_view path;
    std::string_view build_id;
    if (!reader.entry(entry) || !reader.bytes(entry.path_size, path) ||
        !reader.bytes(entry.build_id_size, build_id)) {
      return false;
    }
    modules.push_back(
        {std::string(path), std::string(build_id), entry.bias, entry.begin, entry.end});
  }
  return true;
}

bool read_texts(EntryReader& reader, ChunkType type, Names& names) {
  while (!reader.at_end()) {
    TextEntry entry;
    std::string_view text;
    if (!reader.entry(entry) || !reader.bytes(entry.size, text)) {
      return false;
    }
    type == ChunkType::kLabels ? names.set_label(entry.id, text)
                               : names.set_thread_name(entry.id, text);
  }
  return true;
}

void read_command_line(std::string_view payload, std::vector<std::string>& command_line) {
  while (!payload.empty()) {
    const size_t end = std::min(payload.find('\0'), payload.size());
    command_line.emplace_back(payload.substr(0, end));
    payload.remove_prefix(std::min(end + 1, payload.size()));
  }
}

bool read_end(EntryReader& reader, std::map<uint32_t, EndEntry>& totals) {
  while (!reader.at_end()) {
    EndEntry entry;
    if (!reader.entry(entry)) {
      return false;
    }
    totals[entry.thread] = entry;
  }
  return true;
}

}  // namespace tsomon::capture
