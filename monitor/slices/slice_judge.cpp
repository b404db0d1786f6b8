#include "monitor/slices/slice_judge.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tso/support/printable.h"

namespace tsomon {
namespace {

constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

// Why it is not to be read; empty: it stays as it is from here on.
std::string seal(int file) {
  // The program may have sealed it itself.
  if (::fcntl(file, F_ADD_SEALS, kSeals) != 0 && (::fcntl(file, F_GET_SEALS) & kSeals) != kSeals) {
    return fmt::format("it keeps others from sealing it: {}", std::strerror(errno));
  }
  struct stat status {};
  if (::fstat(file, &status) != 0 || static_cast<uint64_t>(status.st_size) > kMostSliceBytes) {
    return fmt::format("it has more than {} bytes", kMostSliceBytes);
  }
  return {};
}

JudgedFile refusal(const std::vector<CheckOptions>& questions, const std::string& why) {
  JudgedFile judged;
  judged.refused = true;
  const std::string text =
      fmt::format("what the program recorded cannot be judged: {}", printable(why));
  judged.checked.warnings.push_back(text);
  for (const CheckOptions& options : questions) {
    CheckReport& report = judged.checked.reports.emplace_back();
    report.property = options.property;
    report.semantics = options.analysis.relation.semantics;
    report.missing(text);
  }
  return judged;
}

}  // namespace

Result<Descriptor> make_slice_file() {
  Descriptor file(::memfd_create("tsomon-slice", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.is_open()) {
    return tl::unexpected<Error>(Error{ErrorKind::kEnvironment,
                                       "memory for a slice",
                                       {},
                                       fmt::format("there is none: {}", std::strerror(errno))});
  }
  return file;
}

Result<JudgedFile> judge_slice(int file, const std::vector<CheckOptions>& questions,
                               const FileSearch& files, EventOnlooker* onlooker) {
  if (const std::string why = seal(file); !why.empty()) {
    return refusal(questions, why);
  }
  auto checked = check_properties(fmt::format("/proc/self/fd/{}", file), InputFormat::kCapture,
                                  questions, {}, files, onlooker);
  if (!checked && checked.error().kind == ErrorKind::kEnvironment) {
    return tl::unexpected<Error>(checked.error());
  }
  if (!checked) {
    return refusal(questions, checked.error().message);
  }
  return JudgedFile{std::move(*checked), false};
}

}  // namespace tsomon
