#include "monitor/process/location_texts.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace tsomon {

std::unique_ptr<Symboliser> KnownSymbolisers::take(const std::vector<capture::Module>& modules) {
  const std::lock_guard<std::mutex> guard(lock_);
  const auto found = std::find_if(known_.begin(), known_.end(),
                                  [&](const auto& one) { return one->modules() == modules; });
  if (found == known_.end()) {
    return nullptr;
  }
  auto one = std::move(*found);
  known_.erase(found);
  return one;
}

void KnownSymbolisers::give(std::unique_ptr<Symboliser> symboliser) noexcept {
  const std::lock_guard<std::mutex> guard(lock_);
  if (known_.size() == kMost) {
    known_.erase(known_.begin());
  }
  known_.push_back(std::move(symboliser));
}

LocationTexts::LocationTexts(std::vector<capture::Module> modules, FileSearch search)
    : known_(search.known), symboliser_(known_ == nullptr ? nullptr : known_->take(modules)) {
  if (symboliser_ == nullptr) {
    search.known = nullptr;  // which will own it
    symboliser_ = std::make_unique<Symboliser>(std::move(modules), std::move(search));
  }
}

LocationTexts::~LocationTexts() {
  if (known_ != nullptr && whole_) {
    known_->give(std::move(symboliser_));
  }
}

void LocationTexts::replace(const Interner& pcs, EventBlock& block) {
  while (ids_.size() < pcs.size()) {
    const std::string_view text = pcs.text(static_cast<uint32_t>(ids_.size()));
    uint64_t pc = 0;
    const bool is_pc = text.substr(0, 2) == "0x" &&
                       std::from_chars(text.data() + 2, text.data() + text.size(), pc, 16).ptr ==
                           text.data() + text.size();
    if (is_pc) {
      const SourcePlace place = ask([&](Symboliser& symboliser) { return symboliser.place(pc); });
      add_place(place, &places_);
      ids_.push_back(texts_.intern_place(place.text, place.within));
      pcs_.emplace(ids_.back(), pc);
    } else {
      ids_.push_back(texts_.intern_location(text));
    }
  }
  for (Event& event : block.events) {
    if ((event.location & Event::kNumericLocation) == 0) {
      event.location = ids_[event.location];
    }
  }
}

bool LocationTexts::waits(uint32_t location) {
  const auto [first, last] = pcs_.equal_range(location);
  return ask([first = first, last = last](Symboliser& symboliser) {
    return std::any_of(first, last, [&](const auto& pc) { return symboliser.waits(pc.second); });
  });
}

std::vector<std::string> symbolise(Trace& trace, const std::vector<capture::Module>& modules,
                                   const FileSearch& search) {
  LocationTexts texts(modules, search);
  texts.replace(trace.symbols.locations, trace);
  trace.symbols.locations = texts.take();
  return texts.warnings();
}

}  // namespace tsomon
