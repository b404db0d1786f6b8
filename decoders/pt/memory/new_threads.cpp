#include "decoders/pt/memory/new_threads.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tsomon::pt {
namespace {

using x86::Register;
using x86::RegisterFile;

constexpr size_t kMostCalls = 128;

struct Call {
  size_t creator = 0;
  const ThreadStores::Creation* creation = nullptr;
};

// What one end knows, in the registers that the new thread begins with.
RegisterFile passed_on(const NewThread& from) {
  RegisterFile given = from.registers;
  given.forget(~kPassedOn);
  if (from.flags) {
    given.set_or_forget(Register::kFsBase, sets_thread_pointer(*from.flags)
                                               ? from.thread_pointer
                                               : from.registers.get(Register::kFsBase));
  }
  return given;
}

bool differ(const RegisterFile& a, const RegisterFile& b) {
  for (x86::RegisterMask both = a.known & b.known; both != 0; both &= both - 1) {
    const auto name = static_cast<Register>(__builtin_ctz(both));
    if (a.value(name) != b.value(name)) {
      return true;
    }
  }
  return false;
}

class Pairs {
 public:
  Pairs(const std::vector<ThreadStores*>& threads, const std::vector<size_t>& created)
      : threads_(threads), created_(created) {
    for (size_t i = 0; i < threads.size(); ++i) {
      for (const ThreadStores::Creation& creation : threads[i]->creations()) {
        calls_.push_back({i, &creation});
      }
    }
    call_of_.resize(created.size());
    taken_.resize(calls_.size());
  }

  // By position in `created`; nothing where it is not certain.
  std::vector<std::optional<Call>> find() {
    bool more = calls_.size() == created_.size() && calls_.size() <= kMostCalls;
    while (std::exchange(more, false) && !impossible_) {
      for (size_t thread = 0; thread < created_.size(); ++thread) {
        if (!call_of_[thread]) {
          more |= pair_thread(thread);
        }
      }
      for (size_t call = 0; call < calls_.size(); ++call) {
        if (!taken_[call]) {
          more |= pair_call(call);
        }
      }
    }
    std::vector<std::optional<Call>> found(created_.size());
    for (size_t i = 0; i < found.size() && !impossible_; ++i) {
      if (call_of_[i]) {
        found[i] = calls_[*call_of_[i]];
      }
    }
    return found;
  }

 private:
  bool may_be(size_t thread, size_t call) const {
    const ThreadStores& created = *threads_[created_[thread]];
    const ThreadStores::Creation& creation = *calls_[call].creation;
    return calls_[call].creator != created_[thread] && creation.site == created.first_ip() &&
           creation.from <= created.first() &&
           !differ(passed_on(creation.creates), created.began());
  }
  bool pair(size_t thread, size_t call) {
    call_of_[thread] = call;
    taken_[call] = true;
    return true;
  }
  // The only one below `count` that may be; nothing: there are several.
  template <typename MayBe>
  std::optional<size_t> only(size_t count, const MayBe& may_be) {
    std::optional<size_t> found;
    for (size_t i = 0; i < count; ++i) {
      if (may_be(i)) {
        if (found) {
          return std::nullopt;
        }
        found = i;
      }
    }
    impossible_ |= !found;
    return found;
  }
  bool pair_thread(size_t thread) {
    const auto call =
        only(calls_.size(), [&](size_t i) { return !taken_[i] && this->may_be(thread, i); });
    return call && pair(thread, *call);
  }
  bool pair_call(size_t call) {
    const auto thread =
        only(created_.size(), [&](size_t i) { return !call_of_[i] && this->may_be(i, call); });
    return thread && pair(*thread, call);
  }

  const std::vector<ThreadStores*>& threads_;
  const std::vector<size_t>& created_;
  std::vector<Call> calls_;
  std::vector<std::optional<size_t>> call_of_;  // of each thread
  std::vector<bool> taken_;                     // calls
  bool impossible_ = false;                     // something is not as required
};

// At the creator's end, what the new thread knows.
PlacedSample at_call(const ThreadStores& creator, const ThreadStores::Creation& creation,
                     const RegisterFile& known) {
  PlacedSample sample;
  sample.entry = creation.entry;
  sample.instruction = creator.path().entries[creation.entry].block->instructions.size() - 1;
  sample.registers = known;
  sample.registers.forget(~kPassedOn);
  const NewThread& creates = creation.creates;
  const auto base = known.get(Register::kFsBase);
  const auto number = creates.registers.get(Register::kRax);
  if (base && creates.flags && !sets_thread_pointer(*creates.flags)) {
    sample.registers.set(Register::kFsBase, *base);
  } else if (base && creates.flags && number && is_clone(*number)) {
    sample.registers.set(Register::kR8, *base);
  } else if (base && creates.flags && number && is_clone3(*number)) {
    sample.thread_pointer = base;
  }
  return sample;
}

}  // namespace

std::vector<std::vector<PlacedSample>> facts_of_creations(const std::vector<ThreadStores*>& threads,
                                                          const std::vector<size_t>& created) {
  std::vector<std::vector<PlacedSample>> facts(threads.size());
  std::vector<RegisterFile> begin;
  begin.reserve(threads.size());
  for (const ThreadStores* thread : threads) {
    begin.push_back(thread->began());
  }
  const std::vector<std::optional<Call>> calls = Pairs(threads, created).find();
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!calls[i]) {
      continue;
    }
    RegisterFile& here = begin[created[i]];
    const ThreadStores& creator = *threads[calls[i]->creator];
    facts[calls[i]->creator].push_back(at_call(creator, *calls[i]->creation, here));
    const RegisterFile given = passed_on(calls[i]->creation->creates);
    for (x86::RegisterMask left = given.known; left != 0; left &= left - 1) {
      const auto name = static_cast<Register>(__builtin_ctz(left));
      here.set(name, given.value(name));
    }
  }
  for (size_t i = 0; i < threads.size(); ++i) {
    const std::vector<PathEntry>& entries = threads[i]->path().entries;
    if (begin[i].known != 0 && !entries.empty() &&
        entries.front().kind == PathEntry::Kind::kBlock) {
      facts[i].push_back({0, 0, begin[i], std::nullopt});
    }
    // The calls were found by the threads that they created.
    std::stable_sort(facts[i].begin(), facts[i].end(), is_before);
  }
  return facts;
}

}  // namespace tsomon::pt
