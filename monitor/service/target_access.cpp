#include "monitor/service/target_access.h"

#include <utility>

#include <unistd.h>

#include "monitor/process/running_programs.h"
#include "monitor/service/trusted_file.h"

namespace tsomon::service {
namespace {

class DirectTarget : public TargetAccess {
 public:
  explicit DirectTarget(TargetConfig target) : target_(std::move(target)) {}
  std::vector<pid_t> processes() override { return processes_of(target_); }
  Result<StartedProgram> start() override {
    return StartedProgram::start(target_.command, target_.control);
  }
  std::optional<int> wait_status(const StartedProgram& ended) override {
    return ended.wait_status();
  }
  Result<Descriptor> executable(pid_t pid) override {
    return attach::direct_access().executable(pid);
  }
  Result<Descriptor> mappings(pid_t pid) override { return attach::direct_access().mappings(pid); }
  Result<Descriptor> code(pid_t pid, const attach::Mapping& mapping) override {
    return attach::direct_access().code(pid, mapping);
  }
  Result<Descriptor> connect(pid_t pid, const std::string& folder) override {
    return attach::direct_access().connect(pid, folder);
  }

 private:
  const TargetConfig target_;
};

class DirectService : public ServiceAccess {
 public:
  explicit DirectService(std::string file) : file_(std::move(file)) {}
  std::unique_ptr<TargetAccess> of(const TargetConfig& target) override {
    return std::make_unique<DirectTarget>(target);
  }
  ConfigReading read_again() override { return read_trusted_config(file_, ::geteuid()); }
  Result<IdleEnd> run_idle(const IdleBounds& bounds, const std::vector<std::string>& command,
                           const std::function<bool()>& stopped) override {
    idle_.set_bounds(bounds);
    return idle_.run(command, stopped);
  }

 private:
  const std::string file_;
  IdleProcess idle_;
};

}  // namespace

std::unique_ptr<ServiceAccess> direct_service_access(std::string config_file) {
  return std::make_unique<DirectService>(std::move(config_file));
}

bool is_of(const TargetConfig& target, pid_t pid) {
  const bool names = !target.program.empty() || !target.group.is_empty();
  return names && (target.program.empty() || attach::runs_program(pid, target.program)) &&
         (target.group.is_empty() || attach::is_in_group(pid, target.group));
}

std::vector<pid_t> processes_of(const TargetConfig& target) {
  return attach::processes_where([&](pid_t pid) { return is_of(target, pid); });
}

}  // namespace tsomon::service
