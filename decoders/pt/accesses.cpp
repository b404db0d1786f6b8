#include "decoders/pt/accesses.h"

#include <algorithm>

#include "decoders/pt/path_walk.h"
#include "decoders/pt/register_walk.h"

namespace tsomon::pt {
namespace {

using Kind = PathEntry::Kind;
constexpr size_t kMostNodes = size_t{1} << 15;  // before old ones are given up

// Walks window by window; one is told when the next one has been walked as well.
class Finder {
 public:
  Finder(const ThreadPath& path, const std::vector<PlacedSample>& samples,
         const AccessOptions& options, AccessSink& sink)
      : entries_(path.entries), samples_(samples), walk_(path.process, options), sink_(sink) {}

  void run() {
    Window before;
    Window window;
    for (size_t begin = 0; begin < entries_.size(); begin += kWindow) {
      walk(begin, std::min(begin + kWindow, entries_.size()), window);
      walk_.solve();
      tell(before);
      if (walk_.terms().size() > kMostNodes) {
        walk_.forget_before(window.first_node, window.places, window.repeats);
      }
      std::swap(before, window);
    }
    tell(before);
  }

 private:
  struct Window {
    size_t begin = 0;
    size_t end = 0;
    size_t first_node = 0;
    std::vector<PathWalk::Place> places;
    std::vector<PathWalk::Repeats> repeats;
  };

  void walk(size_t begin, size_t end, Window& window) {
    window.places.clear();
    window.repeats.clear();
    window.places.swap(walk_.places());
    window.repeats.swap(walk_.repeats());
    window.begin = begin;
    window.end = end;
    window.first_node = walk_.terms().size();
    for (size_t i = begin; i < end; ++i) {
      const PathEntry& entry = entries_[i];
      switch (entry.kind) {
        case Kind::kBlock: {
          const size_t first = sample_;
          while (sample_ < samples_.size() && samples_[sample_].entry <= i) {
            ++sample_;
          }
          walk_.block(*entry.block, samples_.data() + first, samples_.data() + sample_);
          break;
        }
        case Kind::kValue:
          if (i != 0 && entries_[i - 1].kind == Kind::kBlock) {
            walk_.written(entries_[i - 1].block->instructions.back(), entry.value);
          }
          break;
        case Kind::kGap:
          walk_.gap();
          break;
        case Kind::kElsewhere:
          walk_.elsewhere(i + 1 < entries_.size() && entries_[i + 1].kind == Kind::kBlock
                              ? entries_[i + 1].block->ip()
                              : 0);
          break;
      }
    }
    window.places.swap(walk_.places());
    window.repeats.swap(walk_.repeats());
  }

  void tell(const Window& window) {
    const PathWalk::Place* place = window.places.data();
    for (size_t i = window.begin; i < window.end; ++i) {
      found_.clear();
      if (entries_[i].kind == Kind::kBlock) {
        for (const CodeBlock::Place& access : entries_[i].block->accesses) {
          find(access, *place++, window, found_.emplace_back());
        }
      }
      sink_.entry(entries_[i], found_);
    }
  }

  void find(const CodeBlock::Place& of, const PathWalk::Place& place, const Window& window,
            FoundAccess& found) {
    found.instruction = of.instruction;
    found.access = of.access;
    if (!place.followed) {
      return;
    }
    Term address = walk_.terms().settled(place.address);
    if (!address.known()) {
      found.source = place.own ? AddressSource::kOwnStack : AddressSource::kUnknown;
      return;
    }
    if (place.repeats == 0) {
      found.range = {address.offset, of.access->size};
    } else {
      const PathWalk::Repeats& repeats = window.repeats[place.repeats - 1];
      const Term count = walk_.terms().settled(repeats.count);
      const Term down = walk_.terms().settled(repeats.down);
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
        return;
      }
      found.range = *range;
      address.via = address.via | count.via | down.via;
    }
    found.source = (address.via & kViaMemory) != 0  ? AddressSource::kMemory
                   : (address.via & kViaStack) != 0 ? AddressSource::kStack
                   : of.access->address.constant()  ? AddressSource::kInstruction
                   : place.address.node != 0        ? AddressSource::kBackward
                                                    : AddressSource::kForward;
  }

  const std::vector<PathEntry>& entries_;
  const std::vector<PlacedSample>& samples_;
  PathWalk walk_;
  AccessSink& sink_;
  std::vector<FoundAccess> found_;
  size_t sample_ = 0;
};

}  // namespace

void find_accesses(const ThreadPath& path, const std::vector<PlacedSample>& samples,
                   const AccessOptions& options, AccessSink& sink) {
  if (options.registers_only) {
    find_by_registers(path, samples, sink);
  } else {
    Finder(path, samples, options, sink).run();
  }
}

}  // namespace tsomon::pt
