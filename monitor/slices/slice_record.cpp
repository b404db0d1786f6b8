#include "monitor/slices/slice_record.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>

#include "monitor/process/descriptor.h"
#include "monitor/record/capture_file.h"

namespace tsomon {

Result<SliceEnd> record_slice_to(pid_t pid, const std::string& folder,
                                 std::chrono::microseconds time, const std::string& output) {
  const auto place = CapturePlace::make(output);
  if (!place) {
    return tl::unexpected<Error>(place.error());
  }
  const Descriptor file(
      ::open(place->path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
  if (!file.is_open()) {
    return tl::unexpected<Error>(Error{ErrorKind::kEnvironment, output, {}, std::strerror(errno)});
  }
  return record_slice({pid, folder, time, {}}, file.get());
}

}  // namespace tsomon
