// A program may record anything of itself, and hold the file while it is judged.
#include "monitor/slices/slice_judge.h"

#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace tsomon;

namespace {

const std::vector<CheckOptions> kQuestions(2);

Descriptor file_with(const std::string& bytes) {
  auto file = make_slice_file();
  REQUIRE(file);
  REQUIRE(::pwrite(file->get(), bytes.data(), bytes.size(), 0) ==
          static_cast<ssize_t>(bytes.size()));
  return std::move(*file);
}

std::string a_capture() {
  std::ifstream file(TSOMON_TEST_DATA "/../fuzz/corpus/capture/twice.tsomon", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Why nothing was judged; empty: it was.
std::string refusal_of(const Descriptor& file) {
  const auto judged = judge_slice(file.get(), kQuestions);
  REQUIRE(judged);
  REQUIRE(judged->checked.reports.size() == kQuestions.size());
  if (!judged->refused) {
    return {};
  }
  for (const CheckReport& report : judged->checked.reports) {
    CHECK(report.verdict() == Verdict::kInconclusive);
  }
  REQUIRE(judged->checked.warnings.size() == 1);
  return judged->checked.warnings.front();
}

}  // namespace

TEST_CASE("what is judged stays as it is, whatever the program does with it") {
  const Descriptor file = file_with(a_capture());
  const Descriptor programs(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
  CHECK(refusal_of(file).empty());
  CHECK(::ftruncate(programs.get(), 0) != 0);
  CHECK(::ftruncate(programs.get(), 1 << 20) != 0);
  CHECK(::pwrite(programs.get(), "x", 1, 0) != 1);
  CHECK(::mmap(nullptr, 1, PROT_WRITE, MAP_SHARED, programs.get(), 0) == MAP_FAILED);
  CHECK(refusal_of(file).empty());  // again, as it was
}

TEST_CASE("what the program could still change is not read") {
  const std::string bytes = a_capture();
  const Descriptor file = file_with(bytes);
  void* const mapped =
      ::mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  REQUIRE(mapped != MAP_FAILED);
  CHECK(refusal_of(file).find("keeps others from sealing it") != std::string::npos);
  ::munmap(mapped, bytes.size());
  CHECK(refusal_of(file).empty());
  const Descriptor locked = file_with(bytes);
  REQUIRE(::fcntl(locked.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_GROW) == 0);
  CHECK(refusal_of(locked).find("keeps others from sealing it") != std::string::npos);
  const Descriptor sealed = file_with(bytes);
  REQUIRE(::fcntl(sealed.get(), F_ADD_SEALS,
                  F_SEAL_SEAL | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_WRITE) == 0);
  CHECK(refusal_of(sealed).empty());
  const Descriptor large = file_with(bytes);
  REQUIRE(::ftruncate(large.get(), static_cast<off_t>(kMostSliceBytes + 1)) == 0);
  CHECK(refusal_of(large).find("has more than") != std::string::npos);
}

TEST_CASE("what is no capture is inconclusive") {
  CHECK(refusal_of(file_with("\x1b[2Jnothing")).find("cannot be judged") != std::string::npos);
  CHECK_FALSE(refusal_of(file_with("")).empty());
  CHECK_FALSE(refusal_of(file_with(std::string(100'000, '\xff'))).empty());
}
