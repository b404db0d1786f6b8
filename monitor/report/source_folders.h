// Source files in folders that the reader named.
//
// Purpose     The page quotes source lines. A result names files as a compiler did on some machine: the file under the
//             folders whose path has the most last parts in common with that name is taken. Folders are searched in their order.
// Safety      Names of a result are compared, never opened: nothing outside the folders is read, whatever `..` or absolute name
//             stands in a result. Symbolic links below a folder are not followed; only regular files are read.
// Misses      Files that fit equally well (`main.cpp` twice): none is taken. Whether a file is what the program was built
//             from is not known here. Folders whose names begin with a dot are passed over.
// Bounds      kMostEntries entries of all folders, files of at most kMostBytes, kMostText bytes of all.
// Complexity  O(entries); each file is read once. Thread-safety: none.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tsomon::report {

class SourceFolders {
 public:
  static constexpr size_t kMostEntries = 300'000;
  static constexpr size_t kMostBytes = size_t{4} << 20;
  static constexpr size_t kMostText = size_t{64} << 20;

  struct File {
    std::string path;
    std::string text;
    std::vector<size_t> lines;  // where they begin

    // From 1; without the line break.
    std::string_view line(size_t number) const;
  };

  // `files`: all that will be asked for.
  SourceFolders(const std::vector<std::string>& folders, const std::vector<std::string>& files);
  bool any() const { return !folders_.empty(); }
  // Lives as long as this. nullptr: it is not there, or several are.
  const File* find(const std::string& file);
  // What cannot be searched, in words.
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  void search(const std::string& folder, size_t number);
  std::string best_path(const std::string& file) const;

  struct Candidate {
    size_t folder = 0;
    std::string path;
  };
  std::vector<std::string> folders_;
  std::unordered_map<std::string, std::vector<Candidate>> by_name_;  // last part of the path
  std::map<std::string, File> read_;
  std::unordered_map<std::string, std::string> chosen_;  // path, by file of a result
  size_t entries_ = 0;
  size_t bytes_ = 0;
  std::vector<std::string> problems_;
};

}  // namespace tsomon::report
