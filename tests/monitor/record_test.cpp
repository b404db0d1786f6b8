// What `record` and `run` prepare before a program starts: its options, the file, the way for messages.
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "monitor/probe/messages.h"
#include "monitor/probe/options.h"
#include "monitor/record/capture_file.h"
#include "monitor/record/probe_messages.h"
#include "monitor/record/probe_options.h"
#include "tests/monitor/folder.h"

using namespace tsomon;
namespace fs = std::filesystem;

namespace {

constexpr const char* kVariable = "TSOMON_OPTIONS";

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t files_in(const fs::path& folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) {
    ++count;
  }
  return count;
}

std::string capture_text() {
  return text_of(TSOMON_TEST_DATA "/../fuzz/corpus/capture/every_record.tsomon");
}

}  // namespace

TEST_CASE("probe options: the user's come first and are put back") {
  setenv(kVariable, "level=3", 1);
  {
    ProbeOptions options;
    CHECK(options.problem().empty());
    CHECK(options.has("level="));
    CHECK_FALSE(options.has("vel="));
    CHECK_FALSE(options.has("output="));
    options.add("output=x");
    CHECK(std::string(std::getenv(kVariable)) == "level=3:output=x");
  }
  CHECK(std::string(std::getenv(kVariable)) == "level=3");
  setenv(kVariable, "no_such_option=1", 1);
  CHECK(ProbeOptions().problem().find("no_such_option") != std::string::npos);
  unsetenv(kVariable);
  {
    ProbeOptions options;
    CHECK(options.problem().empty());
    options.add("level=1");
  }
  CHECK(std::getenv(kVariable) == nullptr);
}

TEST_CASE("probe options: any path comes through as it is") {
  for (const std::string path :
       {"capture", "a:b", "a::b:", "level=3:x", "with space", "umlaut-\xc3\xa4"}) {
    const auto parsed = std::make_unique<probe::Options>();
    std::array<char, 512> error{};
    INFO(path);
    REQUIRE(probe::parse_options(output_option(path).c_str(), parsed.get(), error.data(),
                                 error.size()));
    CHECK(std::string(parsed->output) == path);
  }
}

TEST_CASE("a capture's place: an old capture comes back unless a new one was written") {
  const std::string capture = capture_text();
  REQUIRE_FALSE(capture.empty());
  const testing::Folder folder;
  const fs::path path = folder.write("capture", capture);
  const fs::path link = path.parent_path() / "link";
  fs::create_symlink("capture", link);
  {
    const auto place = CapturePlace::make(link);
    REQUIRE(place);
    CHECK(place->path() == fs::canonical(path.parent_path()) / "capture");
    CHECK_FALSE(fs::exists(path));
  }
  CHECK(text_of(path) == capture);
  {
    const auto place = CapturePlace::make(path);
    REQUIRE(place);
    std::ofstream(path, std::ios::binary) << capture.substr(0, capture.size() - 1);
  }
  CHECK(text_of(path).size() == capture.size() - 1);
  CHECK(fs::is_symlink(link));
  CHECK(files_in(path.parent_path()) == 2);
}

TEST_CASE("a capture's place: nothing but captures is replaced, and nothing empty is left") {
  const testing::Folder folder;
  const fs::path notes = folder.write("notes", "mine");
  const fs::path in = notes.parent_path();
  const auto refused = [](const fs::path& path) {
    const auto place = CapturePlace::make(path);
    REQUIRE_FALSE(place);
    return place.error();
  };
  CHECK(refused(notes).kind == ErrorKind::kEnvironment);
  CHECK(refused(notes).message.find("not a capture") != std::string::npos);
  CHECK(text_of(notes) == "mine");
  CHECK(refused(in).kind == ErrorKind::kUsage);
  CHECK(refused(in / "no" / "folder").message.find("cannot be written") != std::string::npos);
  CHECK_FALSE(CapturePlace::make(folder.fifo("fifo")));
  CHECK(CapturePlace::make(in / "fifo", true));
  {
    const auto fresh = CapturePlace::make(in / "fresh");
    REQUIRE(fresh);
    std::ofstream(in / "fresh") << "";
  }
  CHECK(files_in(in) == 2);
}

TEST_CASE("a capture that was cut says what is missing of it") {
  const std::string capture = capture_text();
  const testing::Folder folder;
  CHECK(missing_part(folder.write("whole", capture)).empty());
  for (const size_t part : {2, 3, 10}) {
    const std::string cut =
        folder.write("cut", capture.substr(0, capture.size() - capture.size() / part));
    CHECK_FALSE(missing_part(cut).empty());
  }
  CHECK_FALSE(is_capture(folder.write("text", "T|r(x)\n")));
  CHECK_FALSE(is_capture(folder.write("empty", "")));
}

TEST_CASE("the probe's messages come through the pipe that the environment names, once") {
  {
    ProbeMessages messages;
    const char* const path = std::getenv(probe::kMessagesVariable);
    REQUIRE(path != nullptr);
    CHECK(messages.take().unsaid.empty());
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    const std::string sent = "uno processor\nssaid already\n!\nuwith \xc3\xa4\n";
    REQUIRE(write(fd, sent.data(), sent.size()) == static_cast<ssize_t>(sent.size()));
    const ProbeMessages::Said said = messages.take();
    CHECK(said.refused);
    REQUIRE(said.unsaid.size() == 2);
    CHECK(said.unsaid[0] == "no processor");
    CHECK(said.unsaid[1] == "with \xc3\xa4");
    CHECK_FALSE(messages.take().refused);
    close(fd);
  }
  CHECK(std::getenv(probe::kMessagesVariable) == nullptr);
}
