#include "monitor/process/source_lines.h"

#include <utility>

#include <sys/stat.h>

#include "monitor/process/source_file.h"

namespace tsomon {
namespace {

bool is_newer(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

// Empty: it cannot be read, or is not what the module was built from.
std::string contents(const std::string& path, const std::string& module) {
  struct stat of_module = {};
  struct stat of_file = {};
  if (path.empty() || path[0] != '/' || ::stat(module.c_str(), &of_module) != 0) {
    return {};
  }
  auto text = read_source_file(path, SourceLines::kMostBytes, LastLink::kFollow, &of_file);
  return text && !is_newer(of_file.st_mtim, of_module.st_mtim) ? std::move(*text) : std::string();
}

}  // namespace

std::string source_path(const SourcePlace& place) {
  return place.file.empty() || place.file[0] == '/' ? place.file : place.folder + "/" + place.file;
}

std::string source_text(const SourcePlace& place) {
  if (place.source != nullptr) {
    return *place.source;
  }
  return contents(source_path(place), place.code.empty() ? place.module : place.code);
}

std::string SourceLines::line(const SourcePlace& place) {
  if (place.file.empty() || place.line <= 0 || place.module.empty()) {
    return {};
  }
  const std::string path = source_path(place);
  auto known = files_.find(path);
  if (place.source == nullptr && known == files_.end()) {
    if (files_.size() == kMostFiles) {
      return {};
    }
    known = files_.emplace(path, source_text(place)).first;
  }
  const std::string& text = place.source != nullptr ? *place.source : known->second;
  size_t begin = 0;
  for (int line = 1; line < place.line; ++line) {
    begin = text.find('\n', begin);
    if (begin == std::string::npos) {
      return {};
    }
    ++begin;
  }
  constexpr const char* kBlanks = " \t\r";
  std::string found = text.substr(begin, text.find('\n', begin) - begin);
  const size_t first = found.find_first_not_of(kBlanks);
  return first == std::string::npos
             ? std::string()
             : found.substr(first, found.find_last_not_of(kBlanks) + 1 - first);
}

}  // namespace tsomon
