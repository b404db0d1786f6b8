#include "monitor/report/source_folders.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "monitor/process/source_file.h"

namespace tsomon::report {
namespace {

namespace fs = std::filesystem;

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// How many of their last parts are the same.
size_t common_parts(std::string_view a, std::string_view b) {
  size_t parts = 0;
  while (!a.empty() && !b.empty()) {
    const size_t in_a = a.rfind('/') + 1;  // 0: there is none
    const size_t in_b = b.rfind('/') + 1;
    if (a.substr(in_a) != b.substr(in_b)) {
      break;
    }
    ++parts;
    a = a.substr(0, in_a == 0 ? 0 : in_a - 1);
    b = b.substr(0, in_b == 0 ? 0 : in_b - 1);
  }
  return parts;
}

}  // namespace

std::string_view SourceFolders::File::line(size_t number) const {
  if (number == 0 || number > lines.size()) {
    return {};
  }
  const size_t begin = lines[number - 1];
  std::string_view found = std::string_view(text).substr(begin, text.find('\n', begin) - begin);
  if (!found.empty() && found.back() == '\r') {
    found.remove_suffix(1);
  }
  return found;
}

SourceFolders::SourceFolders(const std::vector<std::string>& folders,
                             const std::vector<std::string>& files)
    : folders_(folders) {
  for (const std::string& file : files) {
    by_name_.try_emplace(last_part(file));
  }
  by_name_.erase("");
  for (size_t i = 0; i < folders_.size(); ++i) {
    search(folders_[i], i);
  }
}

void SourceFolders::search(const std::string& folder, size_t number) {
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
  if (error) {
    problems_.push_back(fmt::format("{}: {}", folder, error.message()));
    return;
  }
  for (const fs::recursive_directory_iterator end; at != end; at.increment(error)) {
    if (++entries_ > kMostEntries) {
      problems_.push_back(fmt::format(
          "{}: more than {} files and folders, the rest was not searched", folder, kMostEntries));
      return;
    }
    std::error_code none;
    const std::string name = at->path().filename().string();
    const fs::file_type type = at->symlink_status(none).type();
    if (type == fs::file_type::directory && !name.empty() && name.front() == '.') {
      at.disable_recursion_pending();
    }
    const auto wanted = by_name_.find(name);
    if (type == fs::file_type::regular && wanted != by_name_.end()) {
      wanted->second.push_back({number, at->path().string()});
    }
  }
  if (error) {
    problems_.push_back(fmt::format("{}: {}", folder, error.message()));
  }
}

// Empty: none, or several fit.
std::string SourceFolders::best_path(const std::string& file) const {
  const auto candidates = by_name_.find(last_part(file));
  if (candidates == by_name_.end()) {
    return {};
  }
  const Candidate* best = nullptr;
  size_t most = 0;
  bool alone = true;
  for (const Candidate& candidate : candidates->second) {
    const size_t parts = common_parts(file, candidate.path);
    if (parts > most) {
      best = &candidate;
      most = parts;
      alone = true;
    } else if (parts == most && candidate.folder == best->folder && candidate.path != best->path) {
      alone = false;
    }
  }
  return best != nullptr && alone ? best->path : std::string();
}

const SourceFolders::File* SourceFolders::find(const std::string& file) {
  auto chosen = chosen_.find(file);
  if (chosen == chosen_.end()) {
    chosen = chosen_.emplace(file, best_path(file)).first;
  }
  if (chosen->second.empty()) {
    return nullptr;
  }
  const auto [known, is_new] = read_.try_emplace(chosen->second);
  File& found = known->second;
  if (is_new) {
    auto text = read_source_file(chosen->second, kMostBytes, LastLink::kRefuse);
    if (text && bytes_ + text->size() <= kMostText) {
      bytes_ += text->size();
      found.path = chosen->second;
      found.text = std::move(*text);
      for (size_t at = 0; at < found.text.size();) {
        found.lines.push_back(at);
        const size_t end = found.text.find('\n', at);
        at = end == std::string::npos ? found.text.size() : end + 1;
      }
    }
  }
  return found.path.empty() ? nullptr : &found;
}

}  // namespace tsomon::report
