#include "decoders/capture/entries.h"

#include <algorithm>

#include <fmt/format.h>

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
  constexpr size_t kMost = size_t{1} << 16;  // arguments; an empty one costs more than its byte
  while (!payload.empty() && command_line.size() < kMost) {
    const size_t end = std::min(payload.find('\0'), payload.size());
    command_line.emplace_back(payload.substr(0, end));
    payload.remove_prefix(std::min(end + 1, payload.size()));
  }
}

bool read_sets(EntryReader& reader, std::vector<AtomicSet>& sets, uint32_t& ranges,
               std::vector<std::string>& problems) {
  while (!reader.at_end()) {
    SetEntry entry;
    std::string_view name;
    if (!reader.entry(entry) || !reader.bytes(entry.name_size, name)) {
      return false;
    }
    if (name.empty()) {
      problems.emplace_back(
          "declarations of atomic sets are missing: there were more than the probe keeps or can "
          "watch");
      continue;
    }
    // No probe writes more; a damaged or made-up file must not take all memory.
    constexpr uint64_t kMostBytes = uint64_t{1} << 30;
    constexpr uint32_t kMostRanges = 4096;
    if (++ranges > kMostRanges) {
      problems.push_back(fmt::format("more than {} ranges of atomic sets", kMostRanges));
      return true;
    }
    if (entry.size > kMostBytes || entry.address > ~entry.size) {
      problems.push_back(
          fmt::format("a range of {} bytes cannot be part of an atomic set", entry.size));
      continue;
    }
    auto set = std::find_if(sets.begin(), sets.end(),
                            [&](const AtomicSet& known) { return known.name == name; });
    if (set == sets.end()) {
      set = sets.insert(set, {std::string(name), {}});
    }
    add_range(&set->members, entry.address, entry.size);
  }
  return true;
}

bool read_clock(EntryReader& reader, ClockMargin& clock, uint64_t place) {
  while (!reader.at_end()) {
    ClockEntry entry;
    if (!reader.entry(entry)) {
      return false;
    }
    clock.add(entry, place);
  }
  return true;
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

bool UnseenCode::read(EntryReader& reader) {
  TextEntry entry;
  while (!reader.at_end()) {
    std::string_view text;
    if (!reader.entry(entry) || !reader.bytes(entry.size, text)) {
      return false;
    }
    switch (static_cast<NotInstrumented>(entry.id)) {
      case NotInstrumented::kLinked:
        linked = text;
        break;
      case NotInstrumented::kModule:
        modules.emplace_back(text);
        break;
      case NotInstrumented::kSystemModules:
        system_modules = text;
        break;
      case NotInstrumented::kChildren:
        children = text;
        break;
      case NotInstrumented::kShared:
        shared_memory = text;
        break;
      case NotInstrumented::kAssembly:
        assembly.emplace_back(text);
        break;
    }
  }
  return true;
}

std::string UnseenCode::assembly_problem() const {
  if (assembly.empty()) {
    return {};
  }
  return fmt::format(
      "asm statements are not understood: {}; they may be accesses, locks or fences, so nothing "
      "follows from "
      "what was recorded with them",
      fmt::join(assembly, ", "));
}

std::string UnseenCode::other_writers() const {
  if (shared_memory.empty()) {
    return {};
  }
  return fmt::format(
      "the program has memory that other processes may write ({}), which was not seen: nothing is "
      "clean (TSOMON_OPTIONS=shared=own says that none does)",
      shared_memory);
}

std::vector<std::string> UnseenCode::notes() const {
  constexpr size_t kMost = 8;
  std::vector<std::string> result;
  if (!children.empty()) {
    result.push_back(
        fmt::format("child processes were not followed, what they did was not seen; {} were forked "
                    "(record with TSOMON_OPTIONS=follow_fork=1 writes a capture of each)",
                    children));
  }
  std::string text = linked;
  for (size_t i = 0; i != std::min(kMost, modules.size()); ++i) {
    text += (text.empty() ? "" : ", ") + modules[i];
  }
  if (text.empty()) {
    return result;
  }
  if (modules.size() > kMost) {
    text += fmt::format(" and {} more modules", modules.size() - kMost);
  }
  if (!system_modules.empty()) {
    text += fmt::format(", and {} shared libraries of the system", system_modules);
  }
  result.push_back("not instrumented, what happens there was not seen: " + text);
  return result;
}

}  // namespace tsomon::capture
