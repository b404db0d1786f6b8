#include "monitor/events/symbol_delta.h"

#include <utility>

namespace tsomon {

void SymbolTeller::tell(const Interner& texts, uint32_t* told, std::vector<std::string>& news) {
  news.clear();
  while (*told < texts.size()) {
    news.emplace_back(texts.text((*told)++));
  }
}

void SymbolTeller::tell(const Symbols& symbols, SymbolNews& news) {
  tell(symbols.labels, &labels_, news.labels);
  if (what_ == What::kAll) {
    tell(symbols.threads, &threads_, news.threads);
    tell(symbols.locations, &locations_, news.locations);
  }
  const auto& values = symbols.initial_values;
  news.initial_values.assign(values.begin() + static_cast<ptrdiff_t>(initial_values_),
                             values.end());
  initial_values_ = values.size();
  news.initial_zero = symbols.initial_zero;
  size_t members = 0;
  for (const AtomicSet& set : symbols.sets) {
    members += set.members.size();
  }
  news.sets.reset();
  if (symbols.sets.size() != sets_ || members != members_) {
    news.sets = symbols.sets;
    sets_ = symbols.sets.size();
    members_ = members;
  }
}

void learn(SymbolNews&& news, Symbols& symbols) {
  for (const std::string& label : news.labels) {
    symbols.labels.intern(label);
  }
  for (const std::string& thread : news.threads) {
    symbols.threads.intern(thread);
  }
  for (const std::string& location : news.locations) {
    symbols.locations.intern(location);
  }
  symbols.initial_values.insert(symbols.initial_values.end(), news.initial_values.begin(),
                                news.initial_values.end());
  symbols.initial_zero = news.initial_zero;
  if (news.sets) {
    symbols.sets = std::move(*news.sets);
  }
}

}  // namespace tsomon
