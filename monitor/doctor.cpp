#include "monitor/doctor.h"

#include <thread>

#include <sys/utsname.h>

namespace tsomon {
namespace {

Finding examine_kernel() {
  utsname name{};
  uname(&name);
  return {"kernel", true, false, name.release, "everything", ""};
}

Finding examine_cores() {
  const unsigned cores = std::thread::hardware_concurrency();
  return {"cores",
          cores >= 2,
          false,
          std::to_string(cores) + " online",
          "violations that need two threads at the same time",
          cores >= 2 ? "" : "run on a machine with at least two cores"};
}

}  // namespace

std::vector<Finding> examine_machine() { return {examine_kernel(), examine_cores()}; }

}  // namespace tsomon
