// One event as the order policy sees it: what its kind does, and all that belongs to it.
//
// Thread-safety: plain data.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "online/graph/policy.h"
#include "tso/model/location_table.h"

namespace tsomon {

// What the events of a kind do.
enum OrderRole : uint8_t {
  kNode = 1,
  kAccess = 2,
  kDrain = 4,   // of the store buffer
  kStore = 8,   // into the store buffer
  kWrite = 16,  // conflicts with loads
  kLock = 32,
  kAcquires = 64,
  kRare = 128,  // thread creation and the like
};

// Loads and stores, which are most of the events, have code of their own: kStaticRoles, the roles of an
// event where they are known when this is compiled, or 0.
inline constexpr uint8_t kLoadRoles = kNode | kAccess;
inline constexpr uint8_t kStoreRoles = kNode | kAccess | kStore | kWrite;
template <uint8_t kStaticRoles>
constexpr bool has(uint8_t roles, OrderRole role) {
  return ((kStaticRoles != 0 ? kStaticRoles : roles) & role) != 0;
}

// By kind; `drains` is the mask of the kinds that drain the store buffer.
std::array<uint8_t, 32> order_roles(uint32_t drains);

// Some bit of every location.
constexpr uint64_t location_bit(LocationId location) { return uint64_t{1} << (location % 64); }

struct OrderThread;

// The event in hand.
struct OrderEvent {
  const Event* event = nullptr;
  uint64_t index = 0;
  int64_t lo = 0;
  int64_t hi = 0;
  OrderThread* thread = nullptr;
  Policy::Node unit = ConflictGraph::kNone;
  LocationId location = LocationTable::kNone;
  std::span<const LocationId> others;  // that overlap with it
  uint8_t roles = 0;
  bool late = false;
  bool joins = false;  // a run, and has no edge of its own from what came before
  uint64_t store = 0;  // its own number; of a load, that of the store it may be forwarded from
  DetectedAccess access() const { return access_of(*event, index); }
};

}  // namespace tsomon
