#include "monitor/pt_live/flight_recorder.h"

#include <csignal>
#include <utility>

#include <unistd.h>

namespace tsomon::pt_live {

Result<std::unique_ptr<FlightRecorder>> FlightRecorder::start(const RecordingSetup& setup,
                                                              const std::string& output, pid_t pid,
                                                              bool running) {
  auto recording = Recording::begin(setup, output, pid, running);
  if (!recording) {
    return tl::unexpected<Error>(recording.error());
  }
  std::unique_ptr<FlightRecorder> recorder(new FlightRecorder(std::move(*recording), output));
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  recorder->thread_ = std::thread([self = recorder.get()] { self->follow(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return recorder;
}

void FlightRecorder::follow() {
  while (!ended_) {
    recording_->wait(100);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!ended_) {
      static_cast<void>(recording_->write());  // of a snapshot: into memory
    }
  }
}

void FlightRecorder::dump() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!ended_.exchange(true)) {
    result_ = recording_->finish();
  }
}

Result<bool> FlightRecorder::stop() {
  const std::lock_guard<std::mutex> one(stopping_);
  const bool never_dumped = !ended_.exchange(true);
  if (thread_.joinable()) {
    thread_.join();
    if (never_dumped) {
      ::unlink(output_.c_str());
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);  // of a dump that is under way
  return result_;
}

}  // namespace tsomon::pt_live
