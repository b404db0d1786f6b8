#include "monitor/events/symbol_delta.h"

#include <utility>

namespace tsomon {

void SymbolDeltaWriter::write(const Interner& texts, uint32_t* written,
                              std::vector<std::string>& delta) {
  delta.clear();
  while (*written < texts.size()) {
    delta.emplace_back(texts.text((*written)++));
  }
}

void SymbolDeltaWriter::write(const Symbols& symbols, SymbolDelta& delta) {
  write(symbols.labels, &labels_, delta.labels);
  if (what_ == What::kAll) {
    write(symbols.threads, &threads_, delta.threads);
    write(symbols.locations, &locations_, delta.locations);
  }
  const auto& values = symbols.initial_values;
  delta.initial_values.assign(values.begin() + static_cast<ptrdiff_t>(initial_values_),
                              values.end());
  initial_values_ = values.size();
  delta.initial_zero = symbols.initial_zero;
  size_t members = 0;
  for (const AtomicSet& set : symbols.sets) {
    members += set.members.size();
  }
  delta.sets.reset();
  if (symbols.sets.size() != sets_ || members != members_) {
    delta.sets = symbols.sets;
    sets_ = symbols.sets.size();
    members_ = members;
  }
}

void learn(SymbolDelta&& delta, Symbols& symbols) {
  for (const std::string& label : delta.labels) {
    symbols.labels.intern(label);
  }
  for (const std::string& thread : delta.threads) {
    symbols.threads.intern(thread);
  }
  for (const std::string& location : delta.locations) {
    symbols.locations.intern(location);
  }
  symbols.initial_values.insert(symbols.initial_values.end(), delta.initial_values.begin(),
                                delta.initial_values.end());
  symbols.initial_zero = delta.initial_zero;
  if (delta.sets) {
    symbols.sets = std::move(*delta.sets);
  }
}

}  // namespace tsomon
