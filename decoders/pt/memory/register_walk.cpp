#include "decoders/pt/memory/register_walk.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "decoders/pt/memory/binding.h"
#include "decoders/x86/dataflow.h"

namespace tsomon::pt {
namespace {

using Kind = PathEntry::Kind;
using x86::Instruction;
using x86::Register;
using x86::RegisterFile;

class RegisterWalk {
 public:
  RegisterWalk(const std::vector<PlacedSample>& samples, Binding binding, AccessSink& sink)
      : binding_(std::move(binding)),
        sample_(samples.data()),
        samples_end_(samples.data() + samples.size()),
        sink_(sink) {}

  void run(const std::vector<PathEntry>& entries) {
    const Instruction* last = nullptr;  // of the block before
    for (size_t i = 0; i < entries.size(); ++i) {
      const PathEntry& entry = entries[i];
      found_.clear();
      const bool binds = binding_.next(entry);
      switch (entry.kind) {
        case Kind::kBlock:
          block(*entry.block, i);
          last = &entry.block->instructions.back();
          break;
        case Kind::kValue:
          if (last != nullptr && last->ptwrite && last->source.is_register() &&
              last->source.size == 8) {
            registers_.set(last->source.reg, entry.value);
          }
          last = nullptr;
          break;
        case Kind::kGap:
          registers_.forget(x86::kAllRegisters);
          last = nullptr;
          break;
        case Kind::kElsewhere:
          // Neither handlers nor other code of the thread have another thread pointer.
          registers_.forget(~x86::mask_of(Register::kFsBase));
          last = nullptr;
          break;
      }
      if (binds) {
        note_loader(found_);
      }
      sink_.entry(entry, found_);
    }
  }

 private:
  void block(const CodeBlock& block, size_t entry) {
    auto place = block.accesses.begin();
    for (size_t j = 0; j < block.instructions.size(); ++j) {
      const Instruction& instruction = block.instructions[j];
      for (; sample_ != samples_end_ &&
             (sample_->entry < entry || (sample_->entry == entry && sample_->instruction <= j));
           ++sample_) {
        if (sample_->entry == entry && sample_->instruction == j) {
          add(sample_->registers);
        }
      }
      for (; place != block.accesses.end() && place->instruction == &instruction; ++place) {
        access(*place);
      }
      const CodeBlock::Effect& effect = block.effects[j];
      if ((effect.required & ~registers_.known) != 0) {
        registers_.forget(effect.writes);
      } else {
        step_forward(instruction, registers_);
      }
    }
  }

  void add(const RegisterFile& from) {
    for (x86::RegisterMask left = from.known & ~registers_.known; left != 0; left &= left - 1) {
      const auto name = static_cast<Register>(__builtin_ctz(left));
      registers_.set(name, from.value(name));
    }
  }

  void access(const CodeBlock::Place& place) {
    FoundAccess& found = found_.emplace_back();
    found.instruction = place.instruction;
    found.access = place.access;
    if ((place.required & ~registers_.known) != 0) {
      return;
    }
    if (place.plain) {
      found.range = {place.access->address.sum(registers_), place.access->size};
    } else if (const auto range = evaluate(*place.access, registers_)) {
      found.range = *range;
    } else {
      return;
    }
    found.source = place.required == 0 ? AddressSource::kInstruction : AddressSource::kForward;
  }

  Binding binding_;
  const PlacedSample* sample_;
  const PlacedSample* samples_end_;
  AccessSink& sink_;
  RegisterFile registers_;
  std::vector<FoundAccess> found_;
};

}  // namespace

void find_by_registers(const ThreadPath& path, const std::vector<PlacedSample>& samples,
                       const ReadOnlyData* constants, AccessSink& sink) {
  RegisterWalk(samples, Binding(path.process, constants), sink).run(path.entries);
}

}  // namespace tsomon::pt
