#include "monitor/pt/pt_source.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "decoders/perf/spaces.h"
#include "decoders/pt/flow/flow.h"
#include "decoders/pt/memory/trace.h"
#include "decoders/pt/values/value_flow.h"
#include "monitor/pt/pt_recording.h"
#include "monitor/pt/pt_units.h"

namespace tsomon {
namespace {

using perf::AddressSpaces;

// Numbers of the processes that have paths; takes the paths of the others away.
std::map<int, uint64_t> number_processes(pt::Flow& flow) {
  std::map<int, uint64_t> numbers;
  size_t left_out = 0;
  for (pt::ThreadPath& path : flow.threads) {
    if (numbers.size() < AddressSpaces::kMaxSpaces) {
      numbers.try_emplace(path.process, numbers.size());
    } else if (numbers.count(path.process) == 0) {
      path.entries.clear();
      ++left_out;
    }
  }
  if (left_out != 0) {
    flow.problems.push_back(
        fmt::format("{} threads left out: there are too many processes", left_out));
  }
  return numbers;
}

// Addresses with the number of the process; source locations as pcs after the instruction's begin,
// as captures have them.
void tag_addresses(Trace& trace, const std::map<int, uint64_t>& numbers) {
  std::vector<uint64_t> tags;  // by thread
  for (uint32_t thread = 0; thread < trace.symbols.threads.size(); ++thread) {
    const std::string_view name = trace.symbols.threads.text(thread);  // PROCESS/THREAD
    int process = 0;
    std::from_chars(name.data(), name.data() + name.size(), process);
    const auto number = numbers.find(process);
    tags.push_back(number == numbers.end() ? 0 : number->second << AddressSpaces::kTagShift);
  }
  const Symbols& symbols = trace.symbols;
  Symbols tagged;  // its locations
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> ids;
  for (Event& event : trace.events) {
    const uint64_t tag = tags[event.thread];
    if (is(event, kinds::kAccesses)) {
      event.address |= tag;
    }
    if (event.location == Event::kNoLocation) {
      continue;
    }
    const auto [id, is_new] = ids.try_emplace({event.location, tag}, 0);
    if (is_new) {
      const std::string text = symbols.location_text(event.location);
      uint64_t ip = 0;
      std::from_chars(text.data() + std::min<size_t>(2, text.size()), text.data() + text.size(), ip,
                      16);
      id->second = tagged.intern_location(fmt::format("0x{:x}", (ip | tag) + 1));
    }
    event.location = id->second;
  }
  trace.symbols.locations = std::move(tagged.locations);
}

pt::Flow flow_of(const PtRecording& recording) {
  if (!recording.branches) {
    return pt::decode_ptwrites(recording.input);
  }
  pt::FlowOptions options;
  options.jobs = std::max(1U, std::thread::hardware_concurrency());
  return decode_flow(recording.input, options);
}

}  // namespace

Result<PtTrace> read_pt_trace(std::string_view bytes, const PerfOptions& options,
                              const FileSearch& files) {
  auto read = read_pt_recording(bytes, files);
  if (!read) {
    return tl::unexpected<Error>(read.error());
  }
  PtRecording& recording = *read;
  pt::TraceOptions asked;
  asked.partial = recording.partial;
  asked.all_threads = recording.all_threads && recording.branches && recording.problems.empty();
  asked.samples = std::move(recording.samples);
  asked.quick = options.quick;
  asked.memory = options.assume_memory;
  asked.frames_before = options.assume_frames;
  if (auto units = find_pt_units(options.units, recording.code, files)) {
    asked.units = std::move(*units);
  } else {
    return tl::unexpected<Error>(units.error());
  }
  pt::Flow flow = flow_of(recording);
  const std::map<int, uint64_t> numbers = number_processes(flow);
  if (flow.of_nobody != 0) {
    flow.problems.push_back(
        fmt::format("{} times code ran while no thread was known to run", flow.of_nobody));
  }
  flow.problems.insert(flow.problems.begin(), recording.problems.begin(), recording.problems.end());

  PtTrace result;
  pt::DecodedTrace decoded = make_trace(flow, asked);
  result.coverage = {
      flow.instructions,
      decoded.counts.by_instruction,
      decoded.counts.forward + decoded.counts.through_stack + decoded.counts.through_memory,
      decoded.counts.backward,
      decoded.counts.unknown,
      decoded.counts.stack,
      decoded.counts.loader,
      flow.gaps,
      decoded.counts.incomplete_units};
  result.trace.trace = std::move(decoded.trace);
  result.trace.problems = std::move(decoded.problems);
  result.trace.notes = std::move(recording.notes);
  if (!asked.samples.empty()) {
    result.trace.notes.push_back(fmt::format("{} of {} samples of registers have a certain place",
                                             decoded.counts.placed_samples, asked.samples.size()));
  }
  if (options.assume_memory) {
    std::map<int, size_t> threads;
    for (const pt::ThreadPath& path : flow.threads) {
      if (++threads[path.process] == 2) {
        result.trace.notes.push_back(fmt::format(
            "process {} has several threads: its memory is not relied upon", path.process));
      }
    }
  }
  result.trace.notes.push_back(coverage_text(result.coverage));
  tag_addresses(result.trace.trace, numbers);
  for (const PtCode::Mapping& code : recording.code) {
    if (const auto number = numbers.find(code.process); number != numbers.end()) {
      perf::CodeMapping mapping = code.mapping;
      mapping.begin |= number->second << AddressSpaces::kTagShift;
      result.trace.mappings.push_back(std::move(mapping));
    }
  }
  return result;
}

}  // namespace tsomon
