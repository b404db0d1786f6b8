#include "decoders/perf/probes.h"

#include <fmt/format.h>

#include "decoders/perf/cursor.h"

namespace tsomon::perf {

std::optional<Probe> find_probe(const FileInfo& info, const Attribute& attribute) {
  Probe probe;
  probe.label = attribute.name;
  if (attribute.type == kTypeTracepoint) {
    const auto found = info.tracepoints.find(attribute.config);
    if (found == info.tracepoints.end()) {
      return std::nullopt;
    }
    const Tracepoint& point = found->second;
    probe.is_return = point.return_function.has_value();
    probe.address_at = probe.is_return ? point.return_function : point.probe_ip;
    probe.label = point.name;
    return probe.address_at ? std::optional(std::move(probe)) : std::nullopt;
  }
  const auto pmu = info.pmus.find(attribute.type);
  if (pmu == info.pmus.end() || pmu->second != "uprobe") {
    return std::nullopt;
  }
  probe.is_return = (attribute.config & 1) != 0;
  probe.function = attribute.config2;  // its offset in the file
  if (probe.label.empty()) {
    probe.label = fmt::format("uprobe+0x{:x}", attribute.config2);
  }
  return probe;
}

std::optional<uint64_t> probed_function(const Probe& probe, const Sample& sample) {
  if (!probe.address_at) {
    return probe.function;
  }
  if (*probe.address_at > sample.raw.size()) {
    return std::nullopt;
  }
  Cursor in(sample.raw.substr(*probe.address_at));
  const auto address = in.take<uint64_t>();
  return in.ok() ? std::optional(address) : std::nullopt;
}

}  // namespace tsomon::perf
