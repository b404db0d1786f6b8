#include "decoders/pt/memory/accesses.h"

#include <algorithm>
#include <utility>

#include "decoders/pt/memory/binding.h"
#include "decoders/pt/memory/path_walk.h"
#include "decoders/pt/memory/register_walk.h"
#include "tso/support/result.h"

namespace tsomon::pt {
namespace {

using Kind = PathEntry::Kind;
constexpr size_t kMostNodes = size_t{1} << 15;  // before old ones are given up

// Walks window by window; one is told when the next one has been walked as well.
class Finder {
 public:
  Finder(const ThreadPath& path, const std::vector<PlacedSample>& samples,
         const AccessOptions& options, AccessSink& sink)
      : entries_(path.entries),
        samples_(samples),
        walk_(path.process, options),
        binding_(path.process, options.constants),
        walked_binding_(binding_),
        reach_(options.reach),
        proves_(options.proofs != nullptr),
        sink_(sink) {}

  void run() {
    Window before;
    Window window;
    for (size_t begin = 0; begin < entries_.size(); begin += kWindow) {
      walk(begin, std::min(begin + kWindow, entries_.size()), window);
      walk_.solve();
      report(before);
      if (walk_.terms().size() > kMostNodes) {
        walk_.forget_before(window.first_node, {window.places.data(), window.recorded},
                            window.repeats, window.calls);
      }
      std::swap(before, window);
    }
    report(before);
    if (reach_) {
      sink_.began(values(walk_.first()));
    }
  }

 private:
  struct Window {
    size_t begin = 0;
    size_t end = 0;
    size_t first_node = 0;
    std::vector<PathWalk::Place> places;  // and room for more
    size_t recorded = 0;                  // places
    std::vector<PathWalk::Repeats> repeats;
    std::vector<PathWalk::Call> calls;
  };

  void walk(size_t begin, size_t end, Window& window) {
    walk_.record_to(window.places.data());
    window.recorded = 0;
    window.repeats.clear();
    window.calls.clear();
    window.repeats.swap(walk_.repeats());
    window.calls.swap(walk_.calls());
    window.begin = begin;
    window.end = end;
    window.first_node = walk_.terms().size();
    for (size_t i = begin; i < end; ++i) {
      const PathEntry& entry = entries_[i];
      switch (entry.kind) {
        case Kind::kBlock:
          expect(entry.block->accesses.size(), window);
          if (proves_) {
            walk_.at(i, walked_binding_.next(entry));
          }
          if (sample_ == samples_.size() || samples_[sample_].entry > i) {
            walk_.block(*entry.block);
          } else {
            sampled_block(i);
          }
          break;
        case Kind::kValue:
          if (i != 0 && entries_[i - 1].kind == Kind::kBlock) {
            walk_.written(entries_[i - 1].block->instructions.back(), entry.value);
          }
          break;
        case Kind::kGap:
          walked_binding_.next(entry);
          walk_.gap();
          break;
        case Kind::kElsewhere:
          walked_binding_.next(entry);
          walk_.elsewhere(i + 1 < entries_.size() && entries_[i + 1].kind == Kind::kBlock
                              ? entries_[i + 1].block->ip()
                              : 0);
          break;
      }
    }
    window.repeats.swap(walk_.repeats());
    window.calls.swap(walk_.calls());
    TSOMON_CHECK(walk_.recorded() == window.places.data() + window.recorded,
                 "every access of a block is recorded once");
  }

  void expect(size_t accesses, Window& window) {
    const size_t before = std::exchange(window.recorded, window.recorded + accesses);
    if (window.places.size() < window.recorded) {
      window.places.resize(2 * window.recorded);
      walk_.record_to(window.places.data() + before);
    }
  }

  // Samples of entries that are no blocks say nothing.
  void sampled_block(size_t i) {
    while (sample_ < samples_.size() && samples_[sample_].entry < i) {
      ++sample_;
    }
    const size_t first = sample_;
    while (sample_ < samples_.size() && samples_[sample_].entry == i) {
      ++sample_;
    }
    walk_.block(*entries_[i].block, samples_.data() + first, samples_.data() + sample_);
  }

  void report(const Window& window) {
    const PathWalk::Place* place = window.places.data();
    const PathWalk::Call* call = window.calls.data();
    for (size_t i = window.begin; i < window.end; ++i) {
      const bool binds = binding_.next(entries_[i]);
      if (entries_[i].kind == Kind::kBlock) {
        const std::vector<CodeBlock::Place>& accesses = entries_[i].block->accesses;
        found_.resize(accesses.size());
        FoundAccess* found = found_.data();
        for (const CodeBlock::Place& access : accesses) {
          find(access, *place++, window, *found++);
        }
        if (binds) {
          note_loader(found_);
          sink_.binds();
        }
      } else {
        found_.clear();
      }
      sink_.entry(entries_[i], found_);
      if (reach_ && entries_[i].kind == Kind::kBlock &&
          entries_[i].block->instructions.back().operation == x86::Operation::kSystemCall) {
        report_call(*call++);
      }
    }
  }

  std::optional<uint64_t> value(const SymbolicValue& term) {
    const SymbolicValue now = walk_.terms().settled(term);
    return now.known() ? std::optional(now.offset) : std::nullopt;
  }

  x86::RegisterFile values(const PathWalk::Registers& registers) {
    x86::RegisterFile known;
    for (unsigned i = 0; i < x86::kRegisters; ++i) {
      known.set_or_forget(static_cast<x86::Register>(i), value(registers[i]));
    }
    return known;
  }

  void report_call(const PathWalk::Call& call) {
    SystemCall told;
    told.number = value(call.number);
    for (size_t i = 0; i < told.arguments.size(); ++i) {
      told.arguments[i] = {value(call.arguments[i]), call.own[i]};
    }
    if (call.creates) {
      const PathWalk::NewThreadTerms& terms = *call.creates;
      told.creates = {values(terms.registers), value(terms.flags), value(terms.thread_pointer)};
    }
    sink_.system_call(told);
  }

  // Where an access is at most whose address is not known.
  void bound(const PathWalk::Place& place, SymbolicValue address, FoundAccess& found) {
    found.stack = place.stack;
    if (!place.stack && place.repeats == 0) {
      if (const auto range = walk_.terms().bounds(address);
          range && range->second <= ~uint64_t{0} - found.access->size) {
        found.within = {range->first, range->second - range->first + found.access->size};
      }
    }
  }

  void find(const CodeBlock::Place& of, const PathWalk::Place& place, const Window& window,
            FoundAccess& found) {
    found = {of.instruction, of.access, {}, AddressSource::kUnknown, false, {}};
    if (!place.followed) {
      found.stack = place.stack;
      return;
    }
    SymbolicValue address = walk_.terms().settled(place.address);
    if (!address.known()) {
      found.source = place.own ? AddressSource::kOwnStack : AddressSource::kUnknown;
      if (reach_) {
        bound(place, address, found);
      }
      return;
    }
    if (place.repeats == 0) {
      found.range = {address.offset, of.access->size};
    } else {
      const PathWalk::Repeats& repeats = window.repeats[place.repeats - 1];
      const SymbolicValue count = walk_.terms().settled(repeats.count);
      const SymbolicValue down = walk_.terms().settled(repeats.down);
      x86::RegisterFile file;
      file.set_or_forget(x86::Register::kRcx,
                         count.known() ? std::optional(count.offset) : std::nullopt);
      file.set_or_forget(x86::Register::kDirection,
                         down.known() ? std::optional(down.offset) : std::nullopt);
      x86::Access access = *of.access;
      access.address = {};
      access.address.displacement = static_cast<int64_t>(address.offset);
      const auto range = x86::evaluate(access, file);
      if (!range) {
        found.stack = place.stack;
        return;
      }
      found.range = *range;
      address.via = address.via | count.via | down.via;
    }
    found.source = (address.via & kViaMemory) != 0  ? AddressSource::kMemory
                   : (address.via & kViaStack) != 0 ? AddressSource::kStack
                   : of.required == 0               ? AddressSource::kInstruction
                   : place.address.node != 0        ? AddressSource::kBackward
                                                    : AddressSource::kForward;
  }

  const std::vector<PathEntry>& entries_;
  const std::vector<PlacedSample>& samples_;
  PathWalk walk_;
  Binding binding_;
  Binding walked_binding_;  // of what is walked; the other one: of what is told
  bool reach_;
  bool proves_;
  AccessSink& sink_;
  std::vector<FoundAccess> found_;
  size_t sample_ = 0;
};

}  // namespace

void find_accesses(const ThreadPath& path, const std::vector<PlacedSample>& samples,
                   const AccessOptions& options, AccessSink& sink) {
  if (options.registers_only) {
    find_by_registers(path, samples, options.constants, sink);
  } else {
    Finder(path, samples, options, sink).run();
  }
}

}  // namespace tsomon::pt
