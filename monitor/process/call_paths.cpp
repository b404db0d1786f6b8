#include "monitor/process/call_paths.h"

#include <algorithm>
#include <iterator>

#include "decoders/x86/decode.h"

namespace tsomon {

// The hooks of the recording runtime are called everywhere and lead nowhere.
std::optional<uint64_t> CallPaths::function_at(uint64_t address) const {
  const attach::Symbol* const symbol = attach::symbol_around(image_.functions(), address);
  return symbol == nullptr || symbol->text().starts_with("__tsan_")
             ? std::nullopt
             : std::optional(symbol->address);
}

const std::vector<CallPaths::Call>& CallPaths::calls_of(uint64_t function) {
  const auto [entry, is_new] = calls_.try_emplace(function);
  std::vector<Call>& calls = entry->second;
  const uint64_t end = attach::symbol_around(image_.functions(), function)->range().end;
  if (!is_new || end - function > kMostCode) {
    return calls;
  }
  const std::vector<uint8_t> code = image_.code({function, end});
  for (size_t at = 0; at < code.size();) {
    const auto instruction = x86::decode(code.data() + at, code.size() - at, function + at);
    if (!instruction) {
      break;
    }
    at += instruction->length;
    const bool is_call = instruction->branch == x86::Branch::kCall;
    const bool jumps = instruction->branch == x86::Branch::kJump ||
                       instruction->branch == x86::Branch::kConditional;
    if ((is_call || (jumps && (instruction->target < function || instruction->target >= end))) &&
        function_at(instruction->target) == instruction->target) {
      calls.push_back({instruction->target, instruction->next()});
    }
  }
  return calls;
}

const CallPath& CallPaths::find(uint64_t from, uint64_t to) {
  static const CallPath kNone;
  const auto first = function_at(from);
  const auto last = function_at(to);
  if (!first || !last || *first == *last) {
    return kNone;
  }
  const auto [entry, is_new] = found_.try_emplace({*first, *last});
  if (is_new) {
    entry->second = search(*first, *last);
  }
  return entry->second;
}

CallPath CallPaths::search(uint64_t first, uint64_t last) {
  std::unordered_map<uint64_t, size_t> level{{first, 0}};
  std::vector<std::vector<uint64_t>> levels{{first}};
  while (level.count(last) == 0) {
    if (levels.size() > kMostCalls) {
      return {};
    }
    std::vector<uint64_t> next;
    for (const uint64_t function : levels.back()) {
      for (const Call& call : calls_of(function)) {
        if (level.size() < kMostFunctions &&
            level.try_emplace(call.function, levels.size()).second) {
          next.push_back(call.function);
        }
      }
    }
    if (next.empty()) {
      return {};
    }
    levels.push_back(std::move(next));
  }
  // Back again: the calls to those functions of a level that lead on.
  CallPath path;
  std::vector<uint64_t> leading{last};
  for (size_t i = level.at(last); i-- > 0;) {
    std::vector<uint64_t> sites;
    std::vector<uint64_t> callers;
    for (const uint64_t function : levels[i]) {
      const size_t before = sites.size();
      for (const Call& call : calls_of(function)) {
        if (std::find(leading.begin(), leading.end(), call.function) != leading.end()) {
          sites.push_back(call.returns_to);
        }
      }
      if (sites.size() != before) {
        callers.push_back(function);
      }
    }
    path.push_back(std::move(sites));
    leading = std::move(callers);
  }
  return path;
}

}  // namespace tsomon
