#include "monitor/process/process_files.h"

#include <algorithm>
#include <utility>

namespace tsomon::attach {

std::string ProcessFiles::file_at(const std::string& path) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = [&] {
    if (!target_) {
      return std::string();
    }
    const auto& modules = target_->modules();
    const auto found = std::find_if(modules.begin(), modules.end(),
                                    [&](const Module& each) { return each.path == path; });
    return found == modules.end() ? std::string() : found->file;
  };
  std::string file = known();
  if (!file.empty() || std::exchange(looked_, true)) {
    return file;
  }
  if (target_) {
    target_->refresh();
  } else if (auto target = Target::open(pid_, access_)) {
    target_ = std::move(*target);
  }
  return known();
}

void ProcessFiles::round() {
  const std::lock_guard<std::mutex> lock(mutex_);
  looked_ = false;
}

}  // namespace tsomon::attach
