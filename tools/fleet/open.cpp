#include "tools/fleet/open.h"

#include "monitor/fleet/open_fleet.h"
#include "tools/output.h"

namespace tsomon {

std::unique_ptr<fleet::Fleet> open_fleet_of(const FleetAddress& address, std::string_view tool,
                                            int* exit_status) {
  const auto credentials = fleet::read_credentials(address.credentials);
  auto opened =
      credentials
          ? fleet::open_fleet(address.url, *credentials)
          : Result<std::unique_ptr<fleet::Fleet>>(tl::unexpected<Error>(credentials.error()));
  if (!opened) {
    *exit_status = put_error(tool, opened.error());
    return nullptr;
  }
  return std::move(*opened);
}

}  // namespace tsomon
