#include "monitor/service/message_limiter.h"

#include <fmt/format.h>

namespace tsomon::service {

std::optional<std::string> MessageLimiter::add(const std::string& text, Time now) {
  std::string key = text;
  std::erase_if(key, [](char c) { return c >= '0' && c <= '9'; });
  if (told_.size() >= kMost && !told_.contains(key)) {
    key.clear();
  }
  const auto [found, is_new] = told_.try_emplace(key, Told{now, 0, {}});
  if (is_new) {
    return text;
  }
  ++found->second.again;
  ++withheld_;
  found->second.last = text;
  return std::nullopt;
}

std::vector<std::string> MessageLimiter::due(Time now, bool all) {
  std::vector<std::string> texts;
  for (auto at = told_.begin(); at != told_.end();) {
    Told& told = at->second;
    if (!all && now - told.at < kQuiet) {
      ++at;
    } else if (told.again == 0) {
      at = told_.erase(at);
    } else {
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - told.at).count();
      texts.push_back(fmt::format("{} ({} times in {} s{})", told.last, told.again, seconds,
                                  at->first.empty() ? ", with others" : ""));
      told = {now, 0, {}};
      ++at;
    }
  }
  return texts;
}

}  // namespace tsomon::service
