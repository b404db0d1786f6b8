#include "tests/pt/traced_programs.h"

#include <csignal>

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

}  // namespace tsomon::test
