#include "monitor/slices/sampling.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <sys/mman.h>

#include "monitor/process/descriptor.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::duration_cast;
using std::chrono::microseconds;

// True: nobody asked to stop meanwhile.
bool sleep_for(microseconds time) {
  constexpr microseconds kLook{20'000};
  for (const Clock::time_point until = Clock::now() + time; Clock::now() < until;) {
    if (stop_asked()) {
      return false;
    }
    std::this_thread::sleep_for(std::min(kLook, duration_cast<microseconds>(until - Clock::now())));
  }
  return !stop_asked();
}

}  // namespace

Result<SamplingSummary> watch_slices(
    const SamplingOptions& options,
    const std::function<void(uint64_t, microseconds, CheckedProperties&)>& judged) {
  SamplingSummary summary;
  std::mt19937_64 random(options.seed);
  const auto pause = static_cast<double>(options.slice.count()) * (1 / options.share - 1);
  const Clock::time_point begin = Clock::now();
  const auto elapsed = [&] { return duration_cast<microseconds>(Clock::now() - begin); };
  const auto left = [&] { return options.time - elapsed(); };
  while (!stop_asked() && (options.time.count() == 0 || left().count() > 0)) {
    const Descriptor file(::memfd_create("tsomon-slice", MFD_CLOEXEC));
    if (!file.is_open()) {
      return tl::unexpected<Error>(Error{ErrorKind::kEnvironment,
                                         "memory for a slice",
                                         {},
                                         fmt::format("there is none: {}", std::strerror(errno))});
    }
    const microseconds at = elapsed();
    const microseconds slice =
        options.time.count() == 0 ? options.slice : std::min(options.slice, left());
    const auto end = record_slice(options.pid, options.folder, slice, file.get());
    if (!end && summary.slices == 0) {
      return tl::unexpected<Error>(end.error());
    }
    if (!end) {
      summary.ended = end.error().message;
      break;
    }
    const Clock::time_point ended = Clock::now();
    ++summary.slices;
    summary.watched += end->watched;
    summary.cut_units += end->cut_units;
    summary.without_threads += end->threads == 0 ? 1 : 0;
    if (end->threads != 0) {
      auto checked = check_properties(fmt::format("/proc/self/fd/{}", file.get()),
                                      InputFormat::kCapture, options.questions);
      if (!checked) {
        return tl::unexpected<Error>(checked.error());
      }
      const WorkPause outside;  // what was found is told whole
      judged(summary.slices, at, *checked);
    }
    const microseconds gap(
        static_cast<int64_t>(std::uniform_real_distribution<double>(0, 2 * pause)(random)));
    const auto judging = duration_cast<microseconds>(Clock::now() - ended);
    if (pause > 0 && gap > judging && !sleep_for(gap - judging)) {
      break;
    }
  }
  summary.elapsed = elapsed();
  return summary;
}

}  // namespace tsomon
