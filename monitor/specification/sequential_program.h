// A program that says what an object does when calls come one after the other.
//
// Purpose     What `PROGRAM --specification` of tsomon_client.h answers: a line of calls, separated
//             by spaces; a line of their results, separated by bars. Any program that does so will
//             do.
// Errors      It cannot be started; it ends, or answers with another number of results; a stop was
//             asked for, or no answer came in ten seconds (kUnreadable, with what it was asked).
// Memory      Results that are known, at most kMostKnown sequences.
// Thread-safety: one caller at a time; result_of() waits for its turn.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "monitor/process/descriptor.h"
#include "offline/linearizability/sequential.h"

namespace tsomon {

class SequentialProgram : public linearizability::SequentialObject {
 public:
  static constexpr size_t kMostKnown = 1'000'000;

  // The program with its arguments.
  static Result<std::unique_ptr<SequentialProgram>> start(const std::vector<std::string>& command);
  // As a shell takes it.
  static Result<std::unique_ptr<SequentialProgram>> start(const std::string& command);
  ~SequentialProgram() override;

  Result<std::string> result_of(const std::vector<std::string>& calls) override;

 private:
  SequentialProgram() = default;
  Error failed(const std::string& why) const;
  bool send(const std::string& line);
  Result<std::string> receive();

  std::string name_;
  pid_t process_ = -1;
  Descriptor to_;
  std::mutex mutex_;
  std::string read_;
  std::unordered_map<std::string, std::string> known_;
};

}  // namespace tsomon
