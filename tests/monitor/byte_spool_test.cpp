// What goes in comes out, whatever waits in memory and whatever in the file.
#include "monitor/live/byte_spool.h"

#include <cstdlib>
#include <random>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

using namespace tsomon;

namespace {

std::string random_bytes(std::mt19937& random, size_t most) {
  std::string bytes(1 + random() % most, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random());
  }
  return bytes;
}

}  // namespace

TEST_CASE("all that is saved can wait, and comes out as it went in") {
  char name[] = "/tmp/tsomon-spool-XXXXXX";
  const int writing = mkstemp(name);
  REQUIRE(writing >= 0);
  ByteSpool spool(Descriptor(::open(name, O_RDONLY | O_CLOEXEC)));
  std::mt19937 random(7);
  std::string all;
  // Nobody pops: without the file this would wait for ever.
  while (all.size() < 3 * ByteSpool::kMost) {
    const std::string bytes = random_bytes(random, 100'000);
    REQUIRE(::write(writing, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    all += bytes;
    spool.push(bytes, true);
  }
  // The disk is full: from here on there is no file, and whoever pushes waits.
  std::thread popping([&, rest = std::string()]() mutable {
    std::string bytes;
    while (spool.pop(bytes)) {
      rest += bytes;
    }
    CHECK_FALSE(spool.failed());
    CHECK(rest == all);
  });
  std::string more;
  for (int i = 0; i < 100; ++i) {
    more += random_bytes(random, 100'000);
  }
  all += more;
  for (size_t at = 0; at < more.size(); at += 70'000) {
    spool.push(std::string_view(more).substr(at, 70'000), false);
  }
  spool.end();
  popping.join();
  ::close(writing);
  ::unlink(name);
}

TEST_CASE("a file that was cut ends what waits in it") {
  char name[] = "/tmp/tsomon-spool-XXXXXX";
  const int writing = mkstemp(name);
  REQUIRE(writing >= 0);
  ByteSpool spool(Descriptor(::open(name, O_RDONLY | O_CLOEXEC)));
  const std::string piece(ByteSpool::kMost, 'x');
  spool.push(piece, true);  // in memory
  spool.push(piece, true);  // said to be in the file
  spool.end();
  std::string bytes;
  CHECK(spool.pop(bytes));
  CHECK(bytes == piece);
  CHECK_FALSE(spool.pop(bytes));
  CHECK(spool.failed());
  ::close(writing);
  ::unlink(name);
}
