#include "monitor/events/address_coverage.h"

#include <fmt/format.h>

namespace tsomon {

std::string coverage_text(const AddressCoverage& coverage) {
  const uint64_t known = coverage.by_instruction + coverage.forward + coverage.backward;
  const uint64_t all = known + coverage.unknown;
  const std::string found =
      all == 0
          ? "no accesses"
          : fmt::format(
                "addresses of {} accesses are known, {:.1f} % ({} by the instruction, {} "
                "carried forwards, {} backwards), {} are not",
                known, 100.0 * static_cast<double>(known) / static_cast<double>(all),
                coverage.by_instruction, coverage.forward, coverage.backward, coverage.unknown);
  return fmt::format("{} instructions; {}; {} on the stack and {} of the loader left out; {} gaps",
                     coverage.instructions, found, coverage.stack, coverage.loader, coverage.gaps);
}

nlohmann::ordered_json coverage_json(const AddressCoverage& coverage) {
  return {{"instructions", coverage.instructions},
          {"by_instruction", coverage.by_instruction},
          {"forward", coverage.forward},
          {"backward", coverage.backward},
          {"unknown", coverage.unknown},
          {"stack", coverage.stack},
          {"loader", coverage.loader},
          {"gaps", coverage.gaps},
          {"incomplete_units", coverage.incomplete_units}};
}

}  // namespace tsomon
