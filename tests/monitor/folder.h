// A folder for the files of a test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <sys/stat.h>

namespace tsomon::testing {

class Folder {
 public:
  Folder() {
    std::string path = (std::filesystem::temp_directory_path() / "tsomon_source_XXXXXX").string();
    REQUIRE(mkdtemp(path.data()) != nullptr);
    path_ = path;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return (path_ / name).string();
  }
  std::string fifo(const std::string& name) const {
    REQUIRE(mkfifo((path_ / name).c_str(), 0600) == 0);
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

}  // namespace tsomon::testing
