// Where the loader binds symbols, against the stack pointers of the stepped runs.
#include "decoders/pt/memory/binding.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/pt/traced_programs.h"

using namespace tsomon;
using namespace tsomon::test;
using pt::PathEntry;

namespace {

// Of each step of a thread: whether it is the loader's while it binds. By what the processor had:
// binding lasts until the two words that the linkage table has pushed are off the stack.
std::vector<bool> binding_by_stack(const SteppedRun& run, uint32_t thread) {
  const auto in_loader = [&](uint64_t ip) {
    return std::any_of(run.code.begin(), run.code.end(), [&](const MappedCode& code) {
      return ip - code.address < code.size && code.file.find("/ld-linux") != std::string::npos;
    });
  };
  std::vector<bool> binding;
  std::vector<uint64_t> begun;  // the stack pointer
  bool pushed = false;          // by the instruction before, a word of constant address
  for (const Step& step : run.steps) {
    if (step.thread != thread) {
      continue;
    }
    const uint64_t stack = step.registers.value(x86::Register::kRsp);
    while (!begun.empty() && stack > begun.back() + 16) {
      begun.pop_back();
    }
    binding.push_back(!begun.empty() && in_loader(step.ip));
    const x86::Instruction& instruction = run.at(step.ip);
    if (!begun.empty() && stack == begun.back() + 16) {
      begun.pop_back();  // with this jump to the function
    }
    if (pushed && instruction.branch == x86::Branch::kIndirectJump && in_loader(step.next)) {
      begun.push_back(stack);
    }
    pushed = instruction.operation == x86::Operation::kPush && instruction.source.is_memory() &&
             instruction.accesses[0].address.constant();
  }
  return binding;
}

struct Counted {
  size_t stores = 0;   // to data of files, while it binds
  size_t outside = 0;  // of which binding is not said to change it
  size_t binds = 0;
  size_t wrong = 0;   // and it does not
  size_t missed = 0;  // it binds, and that is not said
};

// `gap_before`: in the path, before each so many entries.
Counted compare(const std::string& name, size_t gap_before = 0) {
  const SteppedRun& run = stepped(name);
  const EncodedRun encoded = encode(run);
  const pt::Flow flow = decode_flow(input_of(run, encoded));
  Counted counted;
  for (const pt::ThreadPath& path : flow.threads) {
    const auto thread = static_cast<uint32_t>(
        std::find(run.threads.begin(), run.threads.end(), path.thread) - run.threads.begin());
    const std::vector<bool> truth = binding_by_stack(run, thread);
    std::vector<size_t> steps;
    for (size_t i = 0; i < run.steps.size(); ++i) {
      if (run.steps[i].thread == thread) {
        steps.push_back(i);
      }
    }
    pt::Binding binding(path.process, &flow.constants);
    size_t step = 0;
    for (size_t i = 0; i < path.entries.size(); ++i) {
      if (gap_before != 0 && i % gap_before == 0) {
        PathEntry gap;
        gap.kind = PathEntry::Kind::kGap;
        CHECK(!binding.next(gap));
      }
      const PathEntry& entry = path.entries[i];
      const bool binds = binding.next(entry);
      if (entry.kind != PathEntry::Kind::kBlock) {
        CHECK(!binds);
        continue;
      }
      const size_t count = entry.block->instructions.size();
      for (size_t j = 0; binds && j < count; ++j) {
        const Step& at = run.steps[steps[step + j]];
        for (const x86::Access& access : run.at(at.ip)) {
          const auto range = evaluate(access, at.registers);
          if (access.kind != x86::AccessKind::kLoad && range &&
              flow.constants.may_be_data(path.process, range->address, range->size)) {
            ++counted.stores;
            counted.outside +=
                flow.constants.may_change_by_binding(path.process, range->address, range->size) ? 0
                                                                                                : 1;
          }
        }
      }
      const bool all = std::all_of(truth.begin() + static_cast<ptrdiff_t>(step),
                                   truth.begin() + static_cast<ptrdiff_t>(step + count),
                                   [](bool value) { return value; });
      step += count;
      counted.binds += binds ? 1 : 0;
      counted.wrong += binds && !all ? 1 : 0;
      counted.missed += !binds && all ? 1 : 0;
    }
    CHECK(step == truth.size());
  }
  return counted;
}

}  // namespace

TEST_CASE("the loader binds from the linkage table until the words that it pushed are off") {
  // With functions that the loader has itself (threads), and those that say which one is meant.
  // Of handlers that return, and one that does not.
  for (const char* name : {"queue", "threads", "strings", "signals"}) {
    CAPTURE(name);
    const Counted counted = compare(name);
    CHECK(counted.binds > 100);
    CHECK(counted.wrong == 0);
    CHECK(counted.missed == 0);
    CHECK(counted.stores > 0);
    CHECK(counted.outside == 0);
  }
}

TEST_CASE("behind a gap the loader's code is as any other") {
  const Counted some = compare("strings", 50);
  CHECK(some.binds > 0);
  CHECK(some.wrong == 0);
  CHECK(some.missed > 0);
  CHECK(compare("strings", 1).binds == 0);
  pt::Binding nowhere(1, nullptr);
  const pt::Flow flow = decode_flow(input_of(stepped("strings"), encode(stepped("strings"))));
  for (const PathEntry& each : flow.threads[0].entries) {
    CHECK(!nowhere.next(each));
  }
}
