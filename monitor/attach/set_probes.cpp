#include "monitor/attach/set_probes.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

namespace tsomon::attach {

// Those of locks first: which are held is then known when the units begin.
Result<void> SetProbes::set_from(size_t first) {
  held_.resize(plan_.groups.size());
  for (const bool locks : {true, false}) {
    std::vector<uint32_t> groups;
    for (auto group = static_cast<uint32_t>(first); group < plan_.groups.size(); ++group) {
      if (plan_.groups[group].locks == locks) {
        groups.push_back(group);
      }
    }
    for (const uint32_t group : groups) {
      if (auto done = set(group); !done) {
        return done;
      }
    }
    const int64_t live = hit_clock() + kClockError;
    for (const uint32_t group : groups) {
      events_.group_live_from(group, live);
    }
  }
  return {};
}

// In one piece; when the kernel refuses it, the sites one by one.
Result<void> SetProbes::set(uint32_t group) {
  const std::string& file = target_.modules()[plan_.groups[group].module].file;
  std::vector<ProbePlace> places;
  for (const uint32_t site : plan_.groups[group].sites) {
    places.push_back(
        {plan_.sites[site].offset, plan_.sites[site].semaphore, site, plan_.sites[site].memory});
  }
  constexpr int kNotSupported = 524;  // ENOTSUPP, which only the kernel has a name for
  int refused = 0;
  auto held = probes_.attach(target_.pid(), file, places, &refused);
  if (!held && (refused == EINVAL || refused == kNotSupported || refused == EOPNOTSUPP)) {
    if (auto kept = leave_out_refused(group, file, &places); !kept) {
      return kept;
    }
    held = probes_.attach(target_.pid(), file, places, &refused);
  }
  if (!held) {
    return tl::unexpected<Error>(held.error());
  }
  held_[group] = std::move(*held);
  return {};
}

Result<void> SetProbes::leave_out_refused(uint32_t group, const std::string& file,
                                          std::vector<ProbePlace>* places) {
  std::vector<ProbePlace> kept;
  for (const ProbePlace& place : *places) {
    if (probes_.attach(target_.pid(), file, {place})) {
      kept.push_back(place);
      continue;
    }
    const Site& site = plan_.sites[place.source];
    const std::string text = fmt::format("{}: the kernel does not probe the instruction at 0x{:x}",
                                         plan_.groups[group].name, site.address);
    const bool marker =
        std::any_of(site.actions.begin(), site.actions.end(), [](const Action& action) {
          return action.kind == Action::Kind::kBegin || action.kind == Action::Kind::kEnd;
        });
    if (site.only_accesses()) {
      plan_.missed.push_back(text + ": its accesses are not seen");
    } else if (marker || !plan_.functions[site.function].by_pattern) {
      return fail(ErrorKind::kUsage, text + ", where a unit begins or ends");
    } else {
      // What begins unseen is left out; where its end is not seen, the stack shows it.
      plan_.notes.push_back(text + ": " + plan_.functions[site.function].name +
                            " is skipped, or ends late");
    }
  }
  *places = std::move(kept);
  return {};
}

}  // namespace tsomon::attach
