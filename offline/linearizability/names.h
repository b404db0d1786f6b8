// The names that operations have in histories, and what each is for an object.
//
// Spelling    Case, '_', '-' and a leading "try" do not matter.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "offline/linearizability/operation.h"

namespace tsomon::linearizability {

enum class Meaning : uint8_t {
  kRead,
  kWrite,
  kCas,
  kExchange,
  kFetchAdd,  // returns the value before
  kAddFetch,  // returns the value after, if any
  kFetchSub,
  kSubFetch,
  kInsert,    // a key
  kRemove,    // a key
  kContains,  // a key
  kPutIfAbsent,
  kAppend,
  kPushFront,
  kPushBack,
  kPopFront,
  kPopBack,
  kPeekFront,
  kPeekBack,
  kLock,
  kTryLock,
  kUnlock,
};

std::optional<Meaning> meaning_of(ObjectKind kind, std::string_view name);

// The one object that all of these names belong to: the simplest one if one kind of object has all
// that another has. An error says between which kinds the names leave open.
Result<ObjectKind> guess_kind(const std::vector<std::string>& names);

}  // namespace tsomon::linearizability
