// The archive of a pack: what is written is read, and what is no archive of regular files is refused with its place.

#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <zstd.h>

#include "decoders/pack/archive.h"
#include "decoders/pack/ustar.h"

using namespace tsomon;
using namespace tsomon::pack;

namespace {

using Contents = std::map<std::string, std::string>;

std::string written(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string bytes;
  ArchiveWriter writer([&](std::string_view piece) {
    bytes += piece;
    return Result<void>();
  });
  for (const auto& [name, text] : members) {
    REQUIRE(writer.add(name, text, 1'700'000'000));
  }
  REQUIRE(writer.finish());
  CHECK(writer.written() == bytes.size());
  return bytes;
}

Result<Contents> read(std::string_view bytes) {
  ArchiveReader reader(bytes);
  Contents contents;
  Member member;
  for (;;) {
    const auto more = reader.next(member);
    if (!more) {
      return tl::unexpected<Error>(more.error());
    }
    if (!*more) {
      CHECK_FALSE(*reader.next(member));
      return contents;
    }
    std::string& text = contents[member.name];
    for (;;) {
      const auto piece = reader.read();
      if (!piece) {
        return tl::unexpected<Error>(piece.error());
      }
      if (piece->empty()) {
        break;
      }
      text += *piece;
    }
    CHECK(text.size() == member.size);
  }
}

std::string compressed(const std::string& bytes) {
  std::string packed(ZSTD_compressBound(bytes.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), 1));
  return packed;
}

// A member of an archive that nobody here would write.
std::string member(const std::string& name, char type, const std::string& text,
                   const std::string& size = {}) {
  UstarHeader header{};
  std::memcpy(header.name.data(), name.data(), std::min(name.size(), header.name.size()));
  const std::string octal = size.empty() ? std::string("00000000000") : size;
  std::memcpy(header.size.data(), octal.data(), octal.size());
  header.type = type;
  std::memcpy(header.magic.data(), "ustar", 6);
  char sum[8];
  std::snprintf(sum, sizeof sum, "%06o", checksum_of(header));
  std::memcpy(header.checksum.data(), sum, 7);
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + text;
}

// What is said of the archive, its place included.
std::string refusal(const std::string& archive) {
  const auto contents = read(compressed(archive + std::string(1024, '\0')));
  REQUIRE_FALSE(contents);
  CHECK(contents.error().kind == ErrorKind::kMalformed);
  return contents.error().to_string();
}

bool has(const std::string& text, std::string_view part) {
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("packs: what was written is read") {
  std::string large(3'000'000, '\0');
  for (size_t i = 0; i < large.size(); ++i) {
    large[i] = static_cast<char>((i * i) >> 7);
  }
  const Contents contents = {{"empty", ""},
                             {".build-id/12/3456.debug", large},
                             {"block", std::string(kBlock, 'x')},
                             {"more", std::string(kBlock + 1, 'y')}};
  const auto again = read(written({contents.begin(), contents.end()}));
  REQUIRE(again);
  CHECK(*again == contents);
  CHECK(read(written({}))->empty());
}

TEST_CASE("packs: one of any size is read, also where what it unpacks to fills the reader's room") {
  std::string text;
  const size_t most = 2 * ZSTD_DStreamOutSize();
  for (size_t blocks = 0; blocks * kBlock <= most; ++blocks) {
    text.resize(blocks * kBlock, static_cast<char>('a' + blocks % 26));
    const auto again = read(written({{"member", text}}));
    REQUIRE_MESSAGE(again, again.error().to_string());
    REQUIRE(again->at("member") == text);
  }
}

TEST_CASE("packs: members that are not read are left out") {
  const std::string bytes = written({{"a", std::string(700, 'a')}, {"b", "bb"}});
  ArchiveReader reader(bytes);
  Member found;
  REQUIRE(*reader.next(found));
  CHECK(found.name == "a");
  CHECK(found.modified == 1'700'000'000);
  REQUIRE(*reader.next(found));
  CHECK(found.name == "b");
  CHECK(found.offset == 3 * kBlock);
  CHECK(*reader.read() == "bb");
  CHECK(reader.read()->empty());
  CHECK_FALSE(*reader.next(found));
}

TEST_CASE("packs: one that is cut off anywhere is refused") {
  const std::string bytes = written({{"manifest.json", "{}"}, {"capture", std::string(2000, 'c')}});
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto contents = read(std::string_view(bytes).substr(0, size));
    REQUIRE_FALSE(contents);
    CHECK(contents.error().kind == ErrorKind::kMalformed);
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    if (const auto contents = read(flipped)) {
      CHECK(*contents == *read(bytes));  // zstd's checksum
    }
  }
  CHECK(has(refusal(member("cut", '0', "text", "00000010000")), "member 'cut' at byte 0"));
  CHECK_FALSE(read(bytes + "behind"));
}

TEST_CASE("packs: names that lead out of the archive, links, pipes and devices are refused") {
  for (const char* const name : {"../up", "/absolute", "a/../b", "a//b", "a/", "./a", "a b", "a\nb",
                                 "..", ".", "\x1b[31m", ""}) {
    CHECK_FALSE(is_member_name(name));
    CHECK(has(refusal(member(name, '0', "")), "expected a path within the archive"));
  }
  CHECK(is_member_name(".build-id/12/34.debug"));
  CHECK(is_member_name("..a/b..c"));
  const std::string first = member("fine", '0', "");
  CHECK(has(refusal(first + member("x", '1', "")),
            "member 'x' at byte 512 of the archive: is a hard"));
  CHECK(has(refusal(first + member("x", '2', "")), "is a symbolic link"));
  CHECK(has(refusal(first + member("x", '3', "")), "is a device"));
  CHECK(has(refusal(first + member("x", '5', "")), "is a folder"));
  CHECK(has(refusal(first + member("x", '6', "")), "is a named pipe"));
  CHECK(has(refusal(first + member("x", 'L', "")), "of an unknown kind"));
}

TEST_CASE("packs: sizes and checksums that are none") {
  CHECK(has(refusal(member("x", '0', "", "0000000000x")), "its size in octal digits"));
  CHECK(has(refusal(member("x", '0', "", "77777777777")), "the archive ends within it"));
  CHECK(has(refusal(member("x", '0', "", "\x80\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01")),
            "its size in octal digits"));
  std::string wrong = member("x", '0', "");
  wrong[0] = 'y';
  CHECK(has(refusal(wrong), "byte 0 of the archive: expected the header of a member"));
  CHECK(has(refusal(std::string(1024, '\0') + "behind"), "something follows"));
  std::string many;
  for (size_t i = 0; i <= kMostMembers; ++i) {
    many += member("x", '0', "");
  }
  CHECK(has(refusal(many), "more than 4096 members"));
}

TEST_CASE("packs: a small file does not unpack to very much") {
  const std::string bomb =
      compressed(member("bomb", '0', std::string(size_t{100} << 20, '\0'), "00620000000"));
  REQUIRE(bomb.size() < 100'000);
  const auto contents = read(bomb);
  REQUIRE_FALSE(contents);
  CHECK(
      has(contents.error().to_string(), "member 'bomb' at byte 0 of the archive: unpacks to more"));
  // And none is written that would.
  ArchiveWriter writer([](std::string_view) { return Result<void>(); });
  REQUIRE(writer.add("bomb", std::string(size_t{100} << 20, '\0'), 0));
  CHECK_FALSE(writer.finish());
}

TEST_CASE("packs: a sink that fails ends the writing") {
  ArchiveWriter writer(
      [](std::string_view) -> Result<void> { return fail(ErrorKind::kEnvironment, "full"); });
  auto done = writer.add("a", std::string(1000, 'a'), 0);
  done = done ? writer.finish() : done;
  REQUIRE_FALSE(done);
  CHECK(done.error().message == "full");
  CHECK_FALSE(writer.add("../a", "", 0));
}
