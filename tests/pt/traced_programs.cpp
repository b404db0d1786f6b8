#include "tests/pt/traced_programs.h"

#include <algorithm>
#include <csignal>

#include <doctest/doctest.h>

namespace tsomon::test {

const SteppedRun& stepped(const std::string& name) {
  static std::map<std::string, SteppedRun> runs;
  const auto known = runs.find(name);
  if (known != runs.end()) {
    return known->second;
  }
  StepOptions options;
  options.signal = name.rfind("signals", 0) == 0 ? SIGUSR1 : 0;
  options.check_memory = name == "hash_table" || name == "strings";
#ifdef TSOMON_SANITIZED
  options.max_steps = 15000;
#else
  options.max_steps = 40000;
#endif
  return runs.emplace(name, step_through(TSOMON_TRACED_PROGRAMS "/traced_" + name, options))
      .first->second;
}

pt::Input input_of(const SteppedRun& run, const EncodedRun& encoded) {
  pt::Input input;
  for (const EncodedStream& stream : encoded.streams) {
    pt::TraceStream to;
    to.bytes = {reinterpret_cast<const char*>(stream.bytes.data()), stream.bytes.size()};
    to.cpu = stream.cpu;
    to.process = run.threads[0];
    to.thread = stream.cpu >= 0 ? 0 : run.threads[stream.thread];
    input.streams.push_back(to);
  }
  for (const MappedCode& code : run.code) {
    input.code.push_back(
        {code.file, code.offset, code.size, code.address, kTimeMin, run.threads[0]});
  }
  for (const ThreadSwitch& item : encoded.switches) {
    input.switches.push_back({item.time, item.cpu, run.threads[0], run.threads[item.thread]});
  }
  input.clock = {kTscRatioNumerator, kTscRatioDenominator, kMtcFrequency, kNominalRatio};
  return input;
}

size_t check_accesses(const SteppedRun& run, const Trace& trace, uint64_t behind) {
  // What each thread did at which address, in order.
  std::vector<std::vector<size_t>> steps(run.threads.size());
  for (size_t i = 0; i < run.steps.size(); ++i) {
    steps[run.steps[i].thread].push_back(i);
  }
  std::vector<size_t> next(run.threads.size());
  int64_t last = kTimeMin;
  size_t found = 0;
  for (const Event& event : trace.events) {
    CHECK(event.lo >= last);
    last = event.lo;
    if (!is(event, kinds::kAccesses)) {
      continue;
    }
    // The next step of the thread at this place that accesses these bytes.
    const std::string text(trace.symbols.threads.text(event.thread));
    const int tid = std::stoi(text.substr(text.find('/') + 1));
    const auto thread = static_cast<size_t>(std::find(run.threads.begin(), run.threads.end(), tid) -
                                            run.threads.begin());
    REQUIRE(thread < run.threads.size());
    const std::string place = trace.symbols.location_text(event.location);
    const uint64_t ip = std::stoull(place, nullptr, 16) - behind;
    size_t& at = next[thread];
    bool same = false;
    for (; at < steps[thread].size(); ++at) {
      const Step& step = run.steps[steps[thread][at]];
      const auto time = static_cast<int64_t>(time_of(steps[thread][at]));
      if (step.ip != ip || time < trace.lo(event) || time > trace.hi(event)) {
        continue;
      }
      for (const x86::Access& access : run.at(ip)) {
        const auto range = evaluate(access, step.registers);
        same |= range && range->address == event.address && range->size == event.size;
      }
      if (same) {
        break;
      }
    }
    CHECK_MESSAGE(same, place);
    ++found;
  }
  return found;
}

}  // namespace tsomon::test
