// Contents go in in chunks, each once, and come out as they were.
#include "monitor/fleet/contents.h"

#include <random>
#include <string>

#include <doctest/doctest.h>
#include <unistd.h>

#include "decoders/pack/archive.h"
#include "monitor/events/mapped_input.h"
#include "monitor/process/descriptor.h"
#include "tests/fleet/memory_fleet.h"

namespace tsomon::fleet {
namespace {

std::string random_bytes(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& c : bytes) {
    c = static_cast<char>(random() % 40);
  }
  return bytes;
}

}  // namespace

TEST_CASE("a file of any size comes out as it went in") {
  for (const size_t size : {size_t{0}, size_t{1}, kChunkBytes - 1, kChunkBytes, kChunkBytes + 1,
                            3 * kChunkBytes + 17, 70 * kChunkBytes}) {
    MemoryFleet fleet;
    ContentSender sender(fleet);
    const std::string bytes = random_bytes(size, 7);
    const auto part = sender.send("", bytes, -5);
    REQUIRE(part);
    REQUIRE(sender.finish());
    CHECK(part->modified == 0);
    CHECK(sender.chunks() == fleet.chunks.size());
    const auto back = fetch_part(fleet, *part);
    REQUIRE(back);
    CHECK(*back == bytes);
    // Once more: nothing is sent.
    ContentSender again(fleet);
    REQUIRE(again.send("", bytes, 0));
    REQUIRE(again.finish());
    CHECK(again.chunks() == 0);
  }
}

TEST_CASE("a pack is written anew from its parts") {
  MemoryFleet fleet;
  ContentSender sender(fleet);
  Content content;
  content.packed = true;
  const std::string capture = random_bytes(kChunkBytes + 5, 1);
  content.parts = {*sender.send("manifest.json", "{}", 1), *sender.send("capture", capture, 2)};
  REQUIRE(sender.finish());
  auto file = temporary_file();
  REQUIRE(file);
  ContentFetcher fetcher(fleet);
  REQUIRE(fetcher.fetch(content, *file));
  const auto packed = MappedInput::of(std::move(*file), true);
  REQUIRE(packed);
  pack::ArchiveReader reader(packed->view());
  pack::Member member;
  REQUIRE(reader.next(member).value());
  CHECK(member.name == "manifest.json");
  REQUIRE(reader.next(member).value());
  CHECK(member.name == "capture");
  CHECK(member.modified == 2);
  std::string whole;
  for (auto piece = reader.read(); piece && !piece->empty(); piece = reader.read()) {
    whole += *piece;
  }
  CHECK(whole == capture);
  // What came is kept for the next recording of the same program, and for nobody else.
  fleet.chunks.clear();
  auto other = temporary_file();
  REQUIRE(other);
  CHECK(fetcher.fetch(content, *other));
  CHECK_FALSE(ContentFetcher(fleet).fetch(content, *other));
}

TEST_CASE("a chunk that is not what its name says is damaged, and is missing then") {
  MemoryFleet fleet;
  ContentSender sender(fleet);
  const std::string bytes = random_bytes(2 * kChunkBytes, 3);
  const auto part = sender.send("", bytes, 0);
  REQUIRE(sender.finish());
  const std::string right = fleet.chunks[part->chunks[1]];
  for (const std::string& wrong : {std::string(), std::string("\x28\xb5\x2f\xfd"), right.substr(1),
                                   fleet.chunks[part->chunks[0]]}) {
    fleet.chunks[part->chunks[1]] = wrong;
    const auto back = fetch_part(fleet, *part);
    REQUIRE_FALSE(back);
    CHECK(back.error().kind == ErrorKind::kDamaged);
    CHECK(fleet.chunks.count(part->chunks[1]) == 0);
    const auto gone = fetch_part(fleet, *part);
    REQUIRE_FALSE(gone);
    CHECK(gone.error().kind == ErrorKind::kDamaged);
  }
}

}  // namespace tsomon::fleet
