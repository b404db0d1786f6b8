// The files of a process that runs, opened when they are asked for.
//
// Purpose     Names for what is recorded in it, also where its files are deleted, lie in another mount namespace, or in
//             a folder that is not this user's: through a ProcessAccess (process_access.h).
// Bound       The mappings are read once for each round(); a recording may name any files.
// Thread-safety: any thread.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "monitor/process/file_search.h"
#include "monitor/process/target.h"

namespace tsomon::attach {

class ProcessFiles : public OpenedFiles {
 public:
  // `access` is there as long as this.
  ProcessFiles(pid_t pid, ProcessAccess& access) : pid_(pid), access_(access) {}
  std::string file_at(const std::string& path) const override;
  // What was loaded since may be asked for.
  void round();

 private:
  const pid_t pid_;
  ProcessAccess& access_;
  mutable std::mutex mutex_;
  mutable std::optional<Target> target_;
  mutable bool looked_ = false;  // in this round
};

}  // namespace tsomon::attach
