#include "monitor/input/perf_source.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "decoders/perf/directory.h"
#include "decoders/perf/events.h"
#include "decoders/perf/listing.h"
#include "decoders/perf/ordered.h"
#include "decoders/perf/raw_trace.h"
#include "decoders/perf/record.h"
#include "monitor/events/read_input.h"
#include "monitor/process/location_texts.h"
#include "monitor/process/module_files.h"
#include "monitor/pt/pt_recording.h"
#include "monitor/pt/pt_source.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr size_t kPerfBlock = 4096;

class PerfSource : public EventSource {
 public:
  PerfSource(perf::SampledTrace samples, std::optional<AddressCoverage> coverage, std::string input,
             const SourceOptions& options)
      : samples_(std::move(samples)), modules_(find_modules(samples_.mappings, options.files)) {
    coverage_ = coverage;
    input_ = std::move(input);
    format_ = InputFormat::kPerf;
    files_ = options.files;
    if (options.symbolise) {
      texts_ = std::make_shared<LocationTexts>(modules_, options.files);
    }
  }

  Result<bool> next(EventBlock& block) override {
    block.clear();
    const Trace& trace = samples_.trace;
    const size_t end = std::min(at_ + kPerfBlock, trace.events.size());
    block.append(trace, at_, end);
    if (texts_) {
      texts_->replace(trace.symbols.locations, block);
    }
    return std::exchange(at_, end) < end;
  }

  const Symbols& symbols() const override { return samples_.trace.symbols; }
  Symbols take_symbols() override {
    Symbols symbols = std::move(samples_.trace.symbols);
    if (texts_) {
      symbols.locations = texts_->take();
    }
    return symbols;
  }
  const std::vector<capture::Module>& modules() const override { return modules_; }
  bool complete() const override { return samples_.trace.complete; }
  bool sampled() const override { return samples_.trace.sampled; }
  BasisSource basis() const override { return BasisSource::kPerf; }
  uint64_t lost_events() const override { return samples_.trace.lost_events; }
  std::vector<std::string> warnings() const override {
    std::vector<std::string> all = samples_.problems;
    all.insert(all.end(), samples_.notes.begin(), samples_.notes.end());
    if (texts_) {
      const std::vector<std::string> of_files = texts_->warnings();
      all.insert(all.end(), of_files.begin(), of_files.end());
    }
    return all;
  }

 private:
  perf::SampledTrace samples_;
  std::vector<capture::Module> modules_;
  size_t at_ = 0;
};

// The files of a directory after its `data`, by number.
Result<perf::JoinedDirectory> join_files(const MappedInput& bytes, const std::string& folder) {
  constexpr std::string_view kPart = "data.";
  std::map<unsigned, std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    const std::string name = file->path().filename();
    unsigned number = 0;
    const auto read = std::from_chars(name.data() + std::min(kPart.size(), name.size()),
                                      name.data() + name.size(), number);
    if (name.starts_with(kPart) && read.ec == std::errc() &&
        read.ptr == name.data() + name.size()) {
      names[number] = file->path();
    }
  }
  if (error) {
    return fail(ErrorKind::kUnreadable, error.message());
  }
  std::deque<MappedInput> files;
  std::vector<std::string_view> parts;
  for (const auto& [number, name] : names) {
    auto opened = open_input(name);
    if (!opened) {
      return tl::unexpected<Error>(opened.error());
    }
    auto mapped = MappedInput::of(std::move(opened->descriptor), opened->regular);
    if (!mapped) {
      return tl::unexpected<Error>(mapped.error());
    }
    parts.push_back(files.emplace_back(std::move(*mapped)).view());
  }
  return perf::join_directory(bytes.view(), parts);
}

// Raw trace dumps, whose list is at `path`, and the files of the directory `path`, as one
// perf.data; "" when the input is neither.
Result<perf::JoinedDirectory> perf_data_of(const MappedInput& bytes, const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return join_files(bytes, path);
  }
  perf::JoinedDirectory converted;
  if (perf::looks_like_trace_list(bytes.view())) {
    auto list = perf::perf_data_of_list(bytes.view(), [&](const std::string& name) {
      const bool absolute = name.substr(0, 1) == "/";
      return read_input(absolute ? name : path.substr(0, path.rfind('/') + 1) + name);
    });
    if (!list) {
      return tl::unexpected<Error>(list.error());
    }
    converted.bytes = std::move(*list);
    more_input(converted.bytes.size());
  }
  return converted;
}

// What is missing of the parts makes the trace incomplete.
void add_problems(const std::vector<std::string>& problems, perf::SampledTrace& to) {
  to.problems.insert(to.problems.end(), problems.begin(), problems.end());
  to.trace.complete = to.trace.complete && problems.empty();
}

}  // namespace

Result<OpenedInput> open_perf_input(const std::string& path) {
  const std::string data = path + "/data";
  std::error_code error;
  const bool joined = path != "-" && std::filesystem::is_regular_file(data, error);
  return open_input(joined ? data : path);
}

Result<std::unique_ptr<EventSource>> open_perf_data(MappedInput bytes, const std::string& input,
                                                    const SourceOptions& options) {
  const auto failed = [&](Error error) {
    error.input = error.input.empty() ? input : error.input;
    return tl::unexpected<Error>(std::move(error));
  };
  const auto converted = perf_data_of(bytes, input);
  if (!converted) {
    return failed(converted.error());
  }
  const std::string_view data = converted->bytes.empty() ? bytes.view() : converted->bytes;
  const auto type = trace_data_type(data);
  if (!type) {
    return failed(type.error());
  }
  if (*type == perf::AuxtraceInfo::kIntelPt) {
    // A bit stands for a branch, and that for all that was done up to it.
    constexpr uint64_t kBytesOfTextForOne = 64;
    more_input(kBytesOfTextForOne * data.size());
    auto traced = read_pt_trace(data, options.perf, options.files);
    if (!traced) {
      return failed(traced.error());
    }
    add_problems(converted->problems, traced->trace);
    return std::make_unique<PerfSource>(std::move(traced->trace), traced->coverage, input, options);
  }
  if (options.perf.needs_pt()) {
    return failed({ErrorKind::kUsage, {}, {}, kNeedsPt});
  }
  auto samples = perf::read_samples(data);
  if (!samples) {
    return failed(samples.error());
  }
  add_problems(converted->problems, *samples);
  if (*type) {
    samples->problems.push_back(
        fmt::format("trace data of type {} are not read: only Intel PT (type {}) is", **type,
                    perf::AuxtraceInfo::kIntelPt));
    samples->trace.complete = false;
  }
  if (samples->trace.events.empty()) {
    samples->notes.emplace_back(
        "no sample shows an access: record breakpoints (-e mem:ADDRESS/SIZE:w), probes of "
        "functions "
        "(perf probe -x) or perf mem");
  }
  return std::make_unique<PerfSource>(std::move(*samples), std::nullopt, input, options);
}

Result<std::vector<std::string>> list_perf_records(
    const std::string& path, const std::function<void(const std::string&)>& lines) {
  constexpr size_t kAtOnce = size_t{1} << 16;  // bytes of text
  const auto failed = [&](Error error) {
    error.input = input_name(path);
    return tl::unexpected<Error>(std::move(error));
  };
  auto opened = open_perf_input(path);
  if (!opened) {
    return failed(opened.error());
  }
  auto bytes = MappedInput::of(std::move(opened->descriptor), opened->regular);
  if (!bytes) {
    return failed(bytes.error());
  }
  const auto converted = perf_data_of(*bytes, path);
  if (!converted) {
    return failed(converted.error());
  }
  auto reader = perf::Reader::open(converted->bytes.empty() ? bytes->view() : converted->bytes);
  if (!reader) {
    return failed(reader.error());
  }
  perf::OrderedReader records(std::move(*reader));
  std::string text;
  const bool known = !records.reader().info().pipe;  // of a pipe it comes with the records
  if (known) {
    text = perf::header_listing(records.reader().info());
  }
  perf::Record record;
  while (records.next(record)) {
    perf::append_listing(records.reader().info(), record, text);
    if (text.size() >= kAtOnce) {
      lines(text);
      text.clear();
    }
  }
  if (!known) {
    text += perf::header_listing(records.reader().info());
  }
  for (const auto& [type, count] : records.reader().unknown()) {
    text += fmt::format("# {} records of type {} are not known\n", count, type);
  }
  lines(text);
  std::vector<std::string> problems = converted->problems;
  problems.insert(problems.end(), records.reader().problems().begin(),
                  records.reader().problems().end());
  if (records.late() > 0) {
    problems.push_back(fmt::format("{} records are out of the order of time", records.late()));
  }
  return problems;
}

}  // namespace tsomon
