#include "monitor/doctor/doctor.h"

#include <iterator>
#include <utility>

#include "monitor/doctor/doctor_parts.h"

namespace tsomon {

MachineFinding doctor::finding(std::string name, bool available, bool required, std::string detail,
                               std::string needed_by, std::string remedy) {
  if (available) {
    remedy.clear();
  }
  return {std::move(name),      available,         required, std::move(detail),
          std::move(needed_by), std::move(remedy), {}};
}

std::vector<MachineFinding> examine_machine() {
  std::vector<MachineFinding> all;
  for (auto part : {doctor::examine_kernel, doctor::examine_processor, doctor::examine_perf,
                    doctor::examine_hits}) {
    std::vector<MachineFinding> findings = part();
    all.insert(all.end(), std::make_move_iterator(findings.begin()),
               std::make_move_iterator(findings.end()));
  }
  return all;
}

}  // namespace tsomon
