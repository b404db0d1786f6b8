#include "decoders/pt/accesses.h"

#include <algorithm>

#include "decoders/pt/carried_memory.h"
#include "decoders/x86/dataflow.h"

namespace tsomon::pt {
namespace {

using Kind = PathEntry::Kind;
using x86::AccessKind;
using x86::Instruction;
using x86::Register;
using x86::RegisterFile;
using x86::Value;

constexpr size_t kWindow = 16384;  // blocks

void add(RegisterFile& to, const RegisterFile& from) {
  for (x86::RegisterMask missing = from.known & ~to.known; missing != 0; missing &= missing - 1) {
    const auto name = static_cast<Register>(__builtin_ctz(missing));
    to.set(name, from.value(name));
  }
}

// What a PTWRITE told of a register.
void add_written(const Instruction& instruction, uint64_t value, RegisterFile& registers) {
  if (instruction.ptwrite && instruction.source.is_register() && instruction.source.size == 8) {
    registers.set(instruction.source.reg, value);
  }
}

class Finder {
 public:
  Finder(const ThreadPath& path, const std::vector<PlacedSample>& samples,
         const AccessOptions& options, AccessSink& sink)
      : entries_(path.entries), samples_(samples), options_(options), sink_(sink) {}

  void run() {
    size_t begin = 0;
    while (begin < entries_.size()) {
      if (breaks(entries_[begin])) {
        elsewhere(entries_[begin]);
        ++begin;
        continue;
      }
      size_t end = begin;
      while (end < entries_.size() && end < begin + kWindow && !breaks(entries_[end])) {
        ++end;
      }
      size_t seen = end;
      while (seen < entries_.size() && seen < end + kLookAhead && !breaks(entries_[seen])) {
        ++seen;
      }
      window(begin, end, seen);
      begin = end;
    }
  }

 private:
  static bool breaks(const PathEntry& entry) {
    return entry.kind == Kind::kGap || entry.kind == Kind::kElsewhere;
  }

  void elsewhere(const PathEntry& entry) {
    // Neither handlers nor other code of the thread have another thread pointer.
    state_.forget(entry.kind == Kind::kGap ? x86::kAllRegisters : ~x86::mask_of(Register::kFsBase));
    memory_.clear();
    found_.clear();
    sink_.entry(entry, found_);
  }

  void window(size_t begin, size_t end, size_t seen) {
    while (sample_ < samples_.size() && samples_[sample_].entry < begin) {
      ++sample_;
    }
    bool facts = sample_ < samples_.size() && samples_[sample_].entry < seen;
    for (size_t i = begin; i < seen && !facts; ++i) {
      facts = entries_[i].kind == Kind::kValue;
    }
    backs_.clear();
    if (facts) {
      carry_back(begin, end, seen);
    }
    for (size_t i = begin; i < end; ++i) {
      found_.clear();
      if (entries_[i].kind == Kind::kBlock) {
        block(i, begin, facts);
      } else if (i != 0 && entries_[i - 1].kind == Kind::kBlock) {
        add_written(entries_[i - 1].block->instructions.back(), entries_[i].value, state_);
      }
      sink_.entry(entries_[i], found_);
    }
  }

  // backs_[i - begin]: what later facts say of the registers before entry i.
  void carry_back(size_t begin, size_t end, size_t seen) {
    backs_.resize(end - begin + 1);
    RegisterFile known;
    auto sample = static_cast<ptrdiff_t>(
        std::lower_bound(samples_.begin() + static_cast<ptrdiff_t>(sample_), samples_.end(), seen,
                         [](const PlacedSample& s, size_t at) { return s.entry < at; }) -
        samples_.begin());
    for (size_t i = seen; i-- != begin;) {
      if (i + 1 == end) {
        backs_[end - begin] = known;
      }
      const PathEntry& entry = entries_[i];
      if (entry.kind == Kind::kBlock) {
        const auto& code = entry.block->instructions;
        for (size_t j = code.size(); j-- != 0;) {
          step_backward(code[j], known);
          for (; sample > static_cast<ptrdiff_t>(sample_) && samples_[sample - 1].entry == i &&
                 samples_[sample - 1].instruction == j;
               --sample) {
            add(known, samples_[sample - 1].registers);
          }
        }
      } else if (i != 0 && entries_[i - 1].kind == Kind::kBlock) {
        add_written(entries_[i - 1].block->instructions.back(), entry.value, known);
      }
      if (i < end) {
        backs_[i - begin] = known;
      }
    }
  }

  void block(size_t i, size_t begin, bool facts) {
    const auto& code = entries_[i].block->instructions;
    x86::RegisterMask from_behind = 0;
    if (facts) {
      from_behind = backs_[i - begin].known & ~state_.known;
      add(state_, backs_[i - begin]);
    }
    const CodeBlock& all = *entries_[i].block;
    size_t missing = 0;
    auto place = all.accesses.begin();
    for (size_t j = 0; j < code.size(); ++j) {
      const Instruction& instruction = code[j];
      for (; facts && sample_ < samples_.size() && samples_[sample_].entry == i &&
             samples_[sample_].instruction == j;
           ++sample_) {
        add(state_, samples_[sample_].registers);
      }
      for (; place != all.accesses.end() && place->at == j; ++place) {
        FoundAccess& found = found_.emplace_back();
        found.instruction = &instruction;
        found.access = place->access;
        const bool known = (place->required & ~state_.known) == 0;
        if (const auto range = known ? range_of(*place) : std::nullopt) {
          found.range = *range;
          found.source = place->required == 0                   ? AddressSource::kInstruction
                         : (place->required & from_behind) != 0 ? AddressSource::kBackward
                                                                : AddressSource::kForward;
        } else {
          ++missing;
        }
      }
      const CodeBlock::Effect& effect = all.effects[j];
      if (options_.memory) {
        advance(instruction);
      } else if ((effect.required & ~state_.known) != 0) {
        state_.forget(effect.writes);
      } else {
        step_forward(instruction, state_);
      }
      from_behind &= ~effect.writes;
    }
    if (facts && missing != 0) {
      from_block_end(i, begin);
    }
  }

  // Requires that what it needs is known.
  std::optional<x86::ByteRange> range_of(const CodeBlock::Place& place) const {
    if (place.plain) {
      return x86::ByteRange{place.access->address.sum(state_), place.access->size};
    }
    return evaluate(*place.access, state_);
  }

  // What was written inside the block may be known from behind it.
  void from_block_end(size_t i, size_t begin) {
    const auto& code = entries_[i].block->instructions;
    RegisterFile known = state_;
    add(known, backs_[i + 1 - begin]);
    size_t at = found_.size();
    for (size_t j = code.size(); j-- != 0;) {
      step_backward(code[j], known);
      at -= code[j].access_count;
      for (size_t k = at; k < at + code[j].access_count; ++k) {
        if (found_[k].source != AddressSource::kUnknown) {
          continue;
        }
        if (const auto range = evaluate(*found_[k].access, known)) {
          found_[k].range = *range;
          found_[k].source = AddressSource::kBackward;
        }
      }
    }
  }

  // With memory.
  void advance(const Instruction& instruction) {
    Value loaded;
    Value stored;
    std::optional<x86::ByteRange> target;
    const x86::Access* store = nullptr;
    for (const x86::Access& access : instruction) {
      const auto range = evaluate(access, state_);
      if (access.kind != AccessKind::kStore && &access == instruction.begin() && range &&
          range->size <= 8 && access.repeat == x86::Repeat::kOnce) {
        loaded = memory_.load(range->address, static_cast<unsigned>(range->size));
      }
      if (access.kind != AccessKind::kLoad) {
        store = &access;
        target = range;
      }
    }
    if (store != nullptr && !store->conditional && !store->masked &&
        store->repeat == x86::Repeat::kOnce) {
      stored = stored_value(instruction, state_, loaded);
    }
    step_forward(instruction, state_, loaded);
    if (instruction.unlisted_stores || (store != nullptr && !target)) {
      memory_.clear();
    } else if (store != nullptr) {
      memory_.store(target->address, target->size, stored);
    }
  }

  const std::vector<PathEntry>& entries_;
  const std::vector<PlacedSample>& samples_;
  const AccessOptions& options_;
  AccessSink& sink_;
  RegisterFile state_;
  CarriedMemory memory_;
  std::vector<RegisterFile> backs_;
  std::vector<FoundAccess> found_;
  size_t sample_ = 0;
};

}  // namespace

void find_accesses(const ThreadPath& path, const std::vector<PlacedSample>& samples,
                   const AccessOptions& options, AccessSink& sink) {
  Finder(path, samples, options, sink).run();
}

}  // namespace tsomon::pt
