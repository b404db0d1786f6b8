// Public histories with known verdicts, where TSOMON_HISTORIES names a folder of them: `etcd` with
// its verdicts.csv, `knossos-cas-register-good` and `-bad`, `kv` (names end with -ok or -bad).
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "decoders/histories/reader.h"
#include "offline/linearizability/check.h"

using namespace tsomon;
using namespace tsomon::linearizability;

namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void expect(const fs::path& path, const std::string& verdict) {
  CAPTURE(path.string());
  const auto history = read_history(contents(path), path.string());
  REQUIRE_MESSAGE(history, history.error().to_string());
  const auto report = check(*history, {});
  REQUIRE_MESSAGE(report, report.error().to_string());
  CHECK(verdict_name(report->verdict) == verdict);
}

}  // namespace

TEST_CASE("linearizability: public histories have their known verdicts") {
  const char* const folder = std::getenv("TSOMON_HISTORIES");
  if (folder == nullptr) {
    MESSAGE("skipped: TSOMON_HISTORIES does not name a folder of histories");
    return;
  }
  std::istringstream verdicts(contents(fs::path(folder) / "etcd" / "verdicts.csv"));
  int judged = 0;
  for (std::string line; std::getline(verdicts, line); ++judged) {
    line.erase(line.find_last_not_of(" \r") + 1);
    const size_t comma = line.find(',');
    expect(fs::path(folder) / "etcd" / line.substr(0, comma), line.substr(comma + 1));
  }
  for (const std::string name : {"knossos-cas-register-good", "knossos-cas-register-bad", "kv"}) {
    for (const auto& file : fs::directory_iterator(fs::path(folder) / name)) {
      const bool good = name == "kv" ? file.path().stem().string().find("-ok") != std::string::npos
                                     : name == "knossos-cas-register-good";
      expect(file.path(), good ? "linearizable" : "violation");
      ++judged;
    }
  }
  CHECK(judged > 0);
}
