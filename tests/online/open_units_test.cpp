// Which unit an access to a set belongs to, against the plainest means.
#include "online/graph/open_units.h"

#include <optional>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

namespace tsomon {
namespace {

constexpr uint32_t kScopes = 6;

// The outermost frame that is declared on the scope.
class Naive {
 public:
  struct Frame {
    std::optional<std::set<uint32_t>> scopes;  // nothing: all
    uint64_t begin = 0;
  };
  void begin(std::optional<std::set<uint32_t>> scopes, uint64_t index) {
    frames_.push_back({std::move(scopes), index});
  }
  void end() {
    if (!frames_.empty()) {
      frames_.pop_back();
    }
  }
  // Of each scope the unit goes on behind it.
  void wait(uint64_t index) {
    for (uint32_t scope = 0; scope < kScopes; ++scope) {
      waited_[scope] = index;
    }
  }
  void abandon() { frames_.clear(); }
  std::optional<uint64_t> unit(uint32_t scope) const {
    for (const Frame& frame : frames_) {
      if (!frame.scopes || frame.scopes->count(scope) != 0) {
        return waited_[scope] > frame.begin ? waited_[scope] : frame.begin;
      }
    }
    return {};
  }

 private:
  std::vector<Frame> frames_;
  uint64_t waited_[kScopes] = {};
};

TEST_CASE("an access belongs to the outermost unit that is declared on its set") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 3000; ++round) {
    OpenUnits units;
    Naive naive;
    std::set<OpenUnits::Node> open_nodes;
    OpenUnits::Node next_node = 0;
    const auto finish = [&](OpenUnits::Node node) { REQUIRE(open_nodes.erase(node) == 1); };
    for (uint64_t index = 1; index < 60; ++index) {
      switch (random() % 8) {
        case 0:
          units.begin_on_all(1, index);
          naive.begin({}, index);
          break;
        case 1: {
          std::set<uint32_t> scopes;
          for (uint32_t scope = 0; scope < kScopes; ++scope) {
            if (random() % 3 == 0) {
              scopes.insert(scope);
            }
          }
          units.begin(std::vector<uint32_t>(scopes.begin(), scopes.end()), 2, index);
          naive.begin(scopes, index);
          break;
        }
        case 2:
        case 3:
          units.end(finish);
          naive.end();
          break;
        case 4:
          if (random() % 4 == 0) {
            units.wait(index, finish);
            naive.wait(index);
          } else if (random() % 8 == 0) {
            units.abandon(finish);
            naive.abandon();
          }
          break;
        default: {
          const auto scope = static_cast<uint32_t>(random() % kScopes);
          OpenUnits::Unit& unit = units.unit(scope);
          const auto expected = naive.unit(scope);
          REQUIRE(unit.open == expected.has_value());
          if (unit.open) {
            REQUIRE(unit.begin == *expected);
            if (unit.node == OpenUnits::kNone) {
              open_nodes.insert(unit.node = next_node++);
            }
            REQUIRE(open_nodes.count(unit.node) == 1);
          }
          break;
        }
      }
    }
    units.abandon(finish);
    REQUIRE(open_nodes.empty());
  }
}

TEST_CASE("a unit that is declared on very many sets is opened in those that it accesses") {
  OpenUnits units;
  uint64_t finished = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    units.begin_on_all(1, i);
    units.unit(static_cast<uint32_t>(300 * i)).node = 7;
    units.end([&](OpenUnits::Node) { ++finished; });
  }
  CHECK(finished == 1000);
}

}  // namespace
}  // namespace tsomon
