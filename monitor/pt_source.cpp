#include "monitor/pt_source.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fnmatch.h>

#include "decoders/perf/spaces.h"
#include "decoders/pt/flow.h"
#include "decoders/pt/trace.h"
#include "decoders/pt/value_flow.h"
#include "monitor/attach/elf_image.h"
#include "monitor/pt_recording.h"

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

// The functions of the executed files that a pattern matches.
class UnitFinder {
 public:
  explicit UnitFinder(const std::vector<std::string>& patterns)
      : patterns_(patterns), matched_(patterns.size()) {}

  Result<std::vector<pt::UnitFunction>> find(const std::vector<PtRecording::Code>& code) {
    std::vector<pt::UnitFunction> units;
    std::set<std::pair<int, uint64_t>> known;
    for (const PtRecording::Code& item : code) {
      for (const Function& function : functions_of(item)) {
        const uint64_t place = function.offset - item.mapping.file_offset;
        if (function.offset < item.mapping.file_offset || place >= item.mapping.size) {
          continue;
        }
        const uint64_t entry = item.mapping.begin + place;
        if (known.emplace(item.process, entry).second) {  // aliases are one function
          units.push_back({function.label, entry, item.process});
        }
      }
    }
    for (size_t i = 0; i < patterns_.size(); ++i) {
      if (!matched_[i]) {
        return fail(
            ErrorKind::kUsage,
            fmt::format("--unit {}: no such function in the files that were found", patterns_[i]));
      }
    }
    return units;
  }

 private:
  struct Function {
    std::string label;
    uint64_t offset = 0;  // in the file
  };

  const std::vector<Function>& functions_of(const PtRecording::Code& item) {
    const auto [entry, is_new] = files_.try_emplace(item.file);
    if (!is_new || item.file.empty() || patterns_.empty()) {
      return entry->second;
    }
    const auto image = attach::ElfImage::open(item.file, item.file);
    if (!image) {
      return entry->second;
    }
    for (const attach::Symbol& symbol : (*image)->symbols()) {
      const auto offset = (*image)->offset_of(symbol.address);
      const bool part = symbol.name.find(".cold") != std::string::npos;
      if (symbol.function && !part && offset && matches(symbol)) {
        entry->second.push_back({label(symbol.readable), *offset});
      }
    }
    return entry->second;
  }

  bool matches(const attach::Symbol& symbol) {
    bool any = false;
    for (size_t i = 0; i < patterns_.size(); ++i) {
      const char* const pattern = patterns_[i].c_str();
      if (::fnmatch(pattern, symbol.readable.c_str(), 0) == 0 ||
          ::fnmatch(pattern, symbol.name.c_str(), 0) == 0) {
        any = matched_[i] = true;
      }
    }
    return any;
  }

  // ';' separates a label from its atomic sets, '|' the fields of a line.
  static std::string label(std::string name) {
    for (char& c : name) {
      if (c == ';' || c == '|' || c == '(' || c == ')' || static_cast<unsigned char>(c) < ' ') {
        c = '_';
      }
    }
    return name;
  }

  const std::vector<std::string>& patterns_;
  std::vector<bool> matched_;
  std::map<std::string, std::vector<Function>> files_;
};

// Addresses with the number of the process; source locations as pcs behind the instruction's begin,
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
    return pt::decode_written_values(recording.input);
  }
  pt::FlowOptions options;
  options.jobs = std::max(1U, std::thread::hardware_concurrency());
  return decode_flow(recording.input, options);
}

}  // namespace

Result<PtTrace> read_pt_trace(std::string_view bytes, const SourceOptions& options) {
  auto read = read_pt_recording(bytes, options.sysroot);
  if (!read) {
    return tl::unexpected<Error>(read.error());
  }
  PtRecording& recording = *read;
  pt::TraceOptions asked;
  asked.partial = recording.partial;
  if (auto units = UnitFinder(options.units).find(recording.code)) {
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
      flow.gaps,
      decoded.counts.incomplete_units};
  result.trace.trace = std::move(decoded.trace);
  result.trace.problems = std::move(decoded.problems);
  result.trace.notes = std::move(recording.notes);
  result.trace.notes.push_back(coverage_text(result.coverage));
  tag_addresses(result.trace.trace, numbers);
  for (const PtRecording::Code& code : recording.code) {
    if (const auto number = numbers.find(code.process); number != numbers.end()) {
      perf::CodeMapping mapping = code.mapping;
      mapping.begin |= number->second << AddressSpaces::kTagShift;
      result.trace.mappings.push_back(std::move(mapping));
    }
  }
  return result;
}

}  // namespace tsomon
