// Stores, findings and slices for the tests of the service.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "monitor/process/descriptor.h"
#include "monitor/service/store.h"

namespace tsomon::testing {

inline constexpr uint64_t kStoreRoom = uint64_t{64} << 20;

inline std::unique_ptr<service::Store> kept_store(const std::string& folder,
                                                  uint64_t bytes = kStoreRoom) {
  auto store = service::Store::keep(folder, bytes);
  if (!store) {
    FAIL(store.error().to_string());
  }
  return std::move(*store);
}

inline service::SeenFinding seen_finding(uint64_t number, bool definite = true,
                                         uint64_t count = 1) {
  return {fmt::format("{:016x}", number + 0x1000'0000'0000'0000),
          "serializability",
          definite,
          count,
          "a sentence",
          "{\"accesses\":[]}"};
}

inline Descriptor slice_of(size_t bytes) {
  Descriptor file(::memfd_create("capture", MFD_CLOEXEC));
  const std::string text(bytes, 'c');
  REQUIRE(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(bytes));
  return file;
}

}  // namespace tsomon::testing
