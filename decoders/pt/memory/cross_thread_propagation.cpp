#include "decoders/pt/memory/cross_thread_propagation.h"

#include <algorithm>
#include <utility>

#include "decoders/pt/memory/global_words.h"
#include "decoders/pt/memory/interference.h"
#include "decoders/pt/memory/new_threads.h"

namespace tsomon::pt {
namespace {

// Tells two sinks.
class Both : public AccessSink {
 public:
  Both(AccessSink& first, AccessSink& second) : first_(first), second_(second) {}
  void entry(const PathEntry& entry, const std::vector<FoundAccess>& accesses) override {
    first_.entry(entry, accesses);
    second_.entry(entry, accesses);
  }
  void binds() override {
    first_.binds();
    second_.binds();
  }
  void began(const x86::RegisterFile& registers) override {
    first_.began(registers);
    second_.began(registers);
  }
  void system_call(const SystemCall& call) override {
    first_.system_call(call);
    second_.system_call(call);
  }

 private:
  AccessSink& first_;
  AccessSink& second_;
};

using Stores = std::vector<std::unique_ptr<ThreadStores>>;

std::vector<PlacedSample> together(const std::vector<PlacedSample>& samples,
                                   const std::vector<PlacedSample>& facts) {
  std::vector<PlacedSample> all(samples.size() + facts.size());
  std::merge(samples.begin(), samples.end(), facts.begin(), facts.end(), all.begin(), is_before);
  return all;
}

uint64_t unknown_of(const Stores& stores) {
  uint64_t unknown = 0;
  for (const auto& thread : stores) {
    unknown += thread->unknown();
  }
  return unknown;
}

}  // namespace

void find_with_proofs(const std::vector<ThreadToFind>& threads, const AccessOptions& options,
                      const std::function<AccessSink&(size_t)>& sink) {
  std::vector<PathTimes> times;
  times.reserve(threads.size());
  for (const ThreadToFind& thread : threads) {
    times.emplace_back(thread.path->entries);
  }
  AccessOptions asked = options;
  asked.reach = true;
  Stores before;  // of the last pass
  for (unsigned pass = 0; pass < kMostPasses; ++pass) {
    std::vector<ThreadStores*> others;
    for (const auto& thread : before) {
      others.push_back(thread.get());
    }
    const Interference writers(others);
    if (pass != 0 && !writers.complete()) {
      return;
    }
    const auto facts = facts_of_creations(others, writers.created());
    Stores stores;
    for (size_t i = 0; i < threads.size(); ++i) {
      const MemoryProofs proofs{&writers, pass == 0 ? nullptr : before[i].get(), &times[i]};
      asked.proofs = pass == 0 ? nullptr : &proofs;
      stores.push_back(
          std::make_unique<ThreadStores>(*threads[i].path, times[i], *options.constants));
      Both both(*stores.back(), sink(i));
      find_accesses(*threads[i].path,
                    pass == 0 ? threads[i].samples : together(threads[i].samples, facts[i]), asked,
                    both);
      stores.back()->finish();
    }
    const uint64_t unknown = unknown_of(stores);
    const bool helps = pass == 0 ? unknown != 0 : unknown < unknown_of(before);
    before = std::move(stores);
    if (!helps || unknown == 0) {
      return;
    }
  }
}

}  // namespace tsomon::pt
