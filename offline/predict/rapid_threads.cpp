#include "offline/predict/rapid_threads.h"

#include <algorithm>
#include <string>
#include <vector>

namespace tsomon::predict {

std::vector<std::pair<uint32_t, uint64_t>> unite_rapid_threads(EventBlock& trace,
                                                               const Interner& names) {
  std::vector<std::pair<uint32_t, uint64_t>> changed;
  std::vector<bool> acts(names.size());
  for (const Event& event : trace.events) {
    if (event.thread < acts.size()) {
      acts[event.thread] = true;
    }
  }
  std::vector<ThreadId> meant(names.size());
  for (ThreadId id = 0; id < names.size(); ++id) {
    meant[id] = id;
    const std::string_view name = names.text(id);
    const bool number = !name.empty() && std::all_of(name.begin(), name.end(),
                                                     [](char c) { return c >= '0' && c <= '9'; });
    if (!number || acts[id]) {
      continue;
    }
    std::string acting = "T";
    acting += name;
    const uint32_t other = names.find(acting);
    if (other != Interner::kNone) {
      meant[id] = other;
    }
  }
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    Event& event = trace.events[i];
    const bool names_thread = event.kind() == EventKind::kFork || event.kind() == EventKind::kJoin;
    if (names_thread && event.address < meant.size() && meant[event.address] != event.address) {
      changed.emplace_back(i, event.address);
      event.address = meant[event.address];
    }
  }
  return changed;
}

}  // namespace tsomon::predict
