// Reconstructed addresses against the registers that the processor had.
#include "decoders/pt/memory/accesses.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/pt/memory/cross_thread_propagation.h"
#include "tests/pt/traced_programs.h"

using namespace tsomon;
using namespace tsomon::test;
using pt::AddressSource;

namespace {

struct Coverage {
  size_t known = 0;
  size_t unknown = 0;
  size_t own = 0;     // certainly of the thread's stack, at an address that is not known
  size_t loader = 0;  // what it read to bind symbols, at an address that is not known
  size_t wrong = 0;

  double share() const {
    return known + unknown == 0 ? 1
                                : static_cast<double>(known) / static_cast<double>(known + unknown);
  }
};

// Compares access by access with the truth.
class Comparer : public pt::AccessSink {
 public:
  Comparer(const SteppedRun& run, std::vector<size_t> steps, Coverage& coverage)
      : run_(run), steps_(std::move(steps)), coverage_(coverage) {}

  void entry(const pt::PathEntry& entry, const std::vector<pt::FoundAccess>& accesses) override {
    if (entry.kind != pt::PathEntry::Kind::kBlock) {
      return;
    }
    size_t at = 0;
    for (const x86::Instruction& instruction : entry.block->instructions) {
      const Step& step = run_.steps[steps_.at(next_++)];
      REQUIRE(step.ip == instruction.address);
      for (const x86::Access& access : instruction) {
        const pt::FoundAccess& found = accesses.at(at++);
        REQUIRE(found.access == &access);
        const auto truth = evaluate(access, step.registers);
        const bool own = found.source == AddressSource::kOwnStack;
        const bool loader = found.source == AddressSource::kLoader;
        const bool known = found.source != AddressSource::kUnknown && !own && !loader;
        if (known &&
            (!truth || truth->address != found.range.address || truth->size != found.range.size)) {
          ++coverage_.wrong;
        }
        if (!truth || truth->size == 0) {
          continue;  // gathers and searches that the data ends
        }
        if (own && !access.stack_relative()) {
          const uint64_t stack = step.registers.value(x86::Register::kRsp);
          ++coverage_.own;
          coverage_.wrong += truth->address + 128 < stack || truth->address > stack + (8 << 20);
          continue;
        }
        if (loader && !access.stack_relative()) {
          ++coverage_.loader;
          coverage_.wrong += written_by_program(step, *truth);
          continue;
        }
        if (!access.stack_relative()) {
          ++(known ? coverage_.known : coverage_.unknown);
        }
      }
    }
    REQUIRE(at == accesses.size());
  }

 private:
  // Whether code of the program stored there, on no stack.
  bool written_by_program(const Step& step, const x86::ByteRange& range) {
    if (written_.empty()) {
      for (const Step& storing : run_.steps) {
        for (const x86::Access& access : run_.at(storing.ip)) {
          const auto stored = evaluate(access, storing.registers);
          if (access.kind == x86::AccessKind::kLoad || !stored || is_loader(storing.ip) ||
              near_stack(storing, stored->address)) {
            continue;
          }
          for (uint64_t i = 0; i < std::min<uint64_t>(stored->size, 4096); ++i) {
            written_.insert(stored->address + i);
          }
        }
      }
    }
    if (!is_loader(step.ip)) {
      return true;
    }
    for (uint64_t i = 0; i < range.size; ++i) {
      if (written_.count(range.address + i) != 0 && !near_stack(step, range.address)) {
        return true;
      }
    }
    return false;
  }

  static bool near_stack(const Step& step, uint64_t address) {
    const uint64_t stack = step.registers.value(x86::Register::kRsp);
    return address + 4096 > stack && address < stack + 65536;
  }

  bool is_loader(uint64_t ip) const {
    return std::any_of(run_.code.begin(), run_.code.end(), [&](const MappedCode& code) {
      return ip - code.address < code.size && code.file.find("/ld-linux") != std::string::npos;
    });
  }

  const SteppedRun& run_;
  std::vector<size_t> steps_;
  Coverage& coverage_;
  std::unordered_set<uint64_t> written_;
  size_t next_ = 0;
};

enum class Placement { kExact, kByTime };

Coverage cover(const std::string& name, size_t sample_every, Placement placement,
               pt::AccessOptions options, bool proofs = true) {
  const SteppedRun& run = stepped(name);
  const EncodedRun encoded = encode(run);
  const pt::Flow flow = decode_flow(input_of(run, encoded));
  std::vector<pt::ThreadToFind> threads;
  std::vector<std::vector<size_t>> steps_of;
  for (const pt::ThreadPath& path : flow.threads) {
    const auto thread = static_cast<uint32_t>(
        std::find(run.threads.begin(), run.threads.end(), path.thread) - run.threads.begin());
    std::vector<size_t> steps;
    for (size_t i = 0; i < run.steps.size(); ++i) {
      if (run.steps[i].thread == thread) {
        steps.push_back(i);
      }
    }
    std::vector<pt::PlacedSample> samples;
    if (sample_every != 0 && placement == Placement::kExact) {
      size_t step = 0;
      for (size_t i = 0; i < path.entries.size(); ++i) {
        if (path.entries[i].kind != pt::PathEntry::Kind::kBlock) {
          continue;
        }
        for (size_t j = 0; j < path.entries[i].block->instructions.size(); ++j, ++step) {
          if (step % sample_every == sample_every / 2) {
            samples.push_back({i, j, run.steps[steps[step]].registers});
          }
        }
      }
    } else if (sample_every != 0) {
      std::vector<pt::RegisterSample> unplaced;
      for (size_t step = sample_every / 2; step < steps.size(); step += sample_every) {
        const Step& at = run.steps[steps[step]];
        unplaced.push_back({path.process, path.thread, static_cast<int64_t>(time_of(steps[step])),
                            at.ip, at.registers});
      }
      samples = place_samples(path, unplaced);
      for (const pt::PlacedSample& sample : samples) {
        REQUIRE(path.entries[sample.entry].kind == pt::PathEntry::Kind::kBlock);
      }
    }
    threads.push_back({&path, std::move(samples)});
    steps_of.push_back(std::move(steps));
  }
  options.constants = &flow.constants;
  options.memory = options.memory && run.threads.size() == 1;
  std::vector<Coverage> found(threads.size());
  std::vector<std::unique_ptr<Comparer>> comparers(threads.size());
  const auto comparer = [&](size_t i) -> Comparer& {
    CHECK(found[i].wrong == 0);  // in the pass before
    found[i] = {};
    comparers[i] = std::make_unique<Comparer>(run, steps_of[i], found[i]);
    return *comparers[i];
  };
  if (proofs) {
    find_with_proofs(threads, options, comparer);
  } else {
    for (size_t i = 0; i < threads.size(); ++i) {
      find_accesses(*threads[i].path, threads[i].samples, options, comparer(i));
    }
  }
  Coverage coverage;
  for (const Coverage& thread : found) {
    coverage.known += thread.known;
    coverage.unknown += thread.unknown;
    coverage.own += thread.own;
    coverage.loader += thread.loader;
    coverage.wrong += thread.wrong;
  }
  CHECK(coverage.wrong == 0);
  return coverage;
}

}  // namespace

TEST_CASE("addresses are right, and how many are known") {
  std::printf(
      "addresses known, in %% of the accesses that are not through the stack pointer "
      "(and how many are certainly of its own stack at an unknown address, and how many are the "
      "loader's)\n%-16s",
      "");
  for (const char* column : {"quick", "PT alone", "older frames", "PTWRITE", "1 in 10,000",
                             "1 in 1,000", "older frames", "by time", "and memory"}) {
    std::printf(" %-17s", column);
  }
  std::printf("\n");
  pt::AccessOptions older;
  older.frames_before = true;
  pt::AccessOptions all = older;
  all.memory = true;
  for (const std::string& name : traced_programs()) {
    CAPTURE(name);
    const Coverage quick = cover(name, 0, Placement::kExact, {.registers_only = true}, false);
    const Coverage alone = cover(name, 0, Placement::kExact, {});
    const Coverage alone_older = cover(name, 0, Placement::kExact, older);
    const Coverage written = cover(name + "_ptwrite", 0, Placement::kExact, {});
    const Coverage rare = cover(name, 10000, Placement::kExact, {});
    const Coverage often = cover(name, 1000, Placement::kExact, {});
    const Coverage often_older = cover(name, 1000, Placement::kExact, older);
    const Coverage timed = cover(name, 1000, Placement::kByTime, {});
    const Coverage memory = cover(name, 1000, Placement::kExact, all);
    std::printf("%-16s", name.c_str());
    for (const Coverage& coverage :
         {quick, alone, alone_older, written, rare, often, often_older, timed, memory}) {
      std::printf(" %5.1f (%4zu, %4zu)", 100 * coverage.share(), coverage.own, coverage.loader);
    }
    std::printf(
        "  1 in 1,000: %zu unknown; %.1f with the loader's\n", often.unknown,
        100 * static_cast<double>(often.known) /
            static_cast<double>(std::max<size_t>(1, often.known + often.unknown + often.loader)));
    CHECK(often.known >= alone.known);
    CHECK(alone.known >= quick.known);
    CHECK(memory.known >= often_older.known);
  }
}
