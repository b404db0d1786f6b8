// The source locations of an input, instruction pointers, as text.
//
// Known       Symbolisers (symbols.h) may be kept from one input to the next, where the inputs are of one program.
// Complexity  Each instruction pointer is looked up once; O(1) for an event.
// Thread-safety: of LocationTexts none; of KnownSymbolisers any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "decoders/capture/reader.h"
#include "monitor/process/file_search.h"
#include "monitor/process/symbols.h"
#include "tso/model/trace.h"

namespace tsomon {

// For whoever looks at one program again and again: what was read of its files stays open until the next time. All
// searches with one of these are for the same files.
// Complexity  take() and give() O(kMost modules). Memory: kMost symbolisers. Thread-safety: any thread.
class KnownSymbolisers {
 public:
  static constexpr size_t kMost = 4;  // the last ones

  KnownSymbolisers() { known_.reserve(kMost); }
  // Of exactly these modules; null: none is there.
  std::unique_ptr<Symboliser> take(const std::vector<capture::Module>& modules);
  void give(std::unique_ptr<Symboliser> symboliser) noexcept;

 private:
  std::mutex lock_;
  std::vector<std::unique_ptr<Symboliser>> known_;  // the last one at the end
};

// Replaces source locations that are pcs ("0x401136") by their text, block by block.
class LocationTexts {
 private:
  // A stop, or a bound of the memory, may end it in the middle: what is half read is not given back.
  template <typename Ask>
  auto ask(const Ask& ask) {
    whole_ = false;
    auto answer = ask(*symboliser_);
    whole_ = true;
    return answer;
  }

 public:
  explicit LocationTexts(std::vector<capture::Module> modules, FileSearch search = {});
  ~LocationTexts();
  LocationTexts(const LocationTexts&) = delete;
  LocationTexts& operator=(const LocationTexts&) = delete;

  // `pcs` may have grown since the last call; it is always the same table.
  void replace(const Interner& pcs, EventBlock& block);
  // Of a replaced one.
  std::string text(uint32_t location) const { return texts_.location_text(location); }
  std::string place_text(uint32_t location, char between) const {
    return texts_.place_text(location, between);
  }
  uint32_t without_place(uint32_t location) const { return texts_.without_place(location); }
  // Whether there is an instruction of it that loads, and that waits (Symboliser::waits()).
  bool waits(uint32_t location);
  // The table that the replaced locations refer to.
  Interner take() { return std::move(texts_.locations); }
  // Where the texts that instruction pointers became are in the source.
  const SourcePlaces& places() const { return places_; }
  std::string variable(uint64_t address) {
    return ask([&](Symboliser& symboliser) { return symboliser.variable(address); });
  }
  SourceCalls calls(uint64_t from, uint64_t to) {
    return ask([&](Symboliser& symboliser) { return symboliser.calls(from, to); });
  }
  std::vector<std::string> warnings() const { return symboliser_->warnings(); }

 private:
  std::shared_ptr<KnownSymbolisers> known_;
  std::unique_ptr<Symboliser> symboliser_;
  bool whole_ = true;
  std::vector<uint32_t> ids_;                        // by id in `pcs`
  std::unordered_multimap<uint32_t, uint64_t> pcs_;  // by location
  Symbols texts_;                                    // its locations
  SourcePlaces places_;
};

// The same for a whole trace. Returns the warnings.
std::vector<std::string> symbolise(Trace& trace, const std::vector<capture::Module>& modules,
                                   const FileSearch& search = {});

}  // namespace tsomon
