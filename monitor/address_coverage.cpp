#include "monitor/address_coverage.h"

#include <fmt/format.h>

namespace tsomon {

std::string coverage_text(const AddressCoverage& coverage) {
  const uint64_t known = coverage.by_instruction + coverage.forward + coverage.backward;
  const uint64_t all = known + coverage.unknown;
  const double share =
      all == 0 ? 100.0 : 100.0 * static_cast<double>(known) / static_cast<double>(all);
  return fmt::format(
      "{} instructions; addresses of {} accesses are known, {:.1f} % ({} by the instruction, {} "
      "carried forwards, {} backwards), {} are not; {} through the stack pointer left out; {} gaps",
      coverage.instructions, known, share, coverage.by_instruction, coverage.forward,
      coverage.backward, coverage.unknown, coverage.stack, coverage.gaps);
}

nlohmann::ordered_json coverage_json(const AddressCoverage& coverage) {
  return {{"instructions", coverage.instructions},
          {"by_instruction", coverage.by_instruction},
          {"forward", coverage.forward},
          {"backward", coverage.backward},
          {"unknown", coverage.unknown},
          {"stack", coverage.stack},
          {"gaps", coverage.gaps},
          {"incomplete_units", coverage.incomplete_units}};
}

}  // namespace tsomon
