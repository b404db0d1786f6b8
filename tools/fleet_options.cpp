#include "tools/fleet_commands.h"

namespace tsomon {

CLI::Option* add_fleet_options(CLI::App& command, FleetAddress& address, bool required) {
  CLI::Option* const fleet =
      command
          .add_option(
              "--fleet", address.url,
              "Where the fleet is: postgresql://HOST/DATABASE, or nats://HOST:PORT (of several "
              "servers\nwith commas); or TSOMON_FLEET in the environment says it")
          ->option_text("URL")
          ->envname("TSOMON_FLEET")
          ->required(required);
  command
      .add_option("--credentials", address.credentials,
                  "What its server asks for: TOML with user, password, token, nkey, creds, ca, "
                  "certificate, key,\nwhich nobody else may read; or TSOMON_FLEET_CREDENTIALS")
      ->option_text("FILE")
      ->envname("TSOMON_FLEET_CREDENTIALS");
  return fleet;
}

}  // namespace tsomon
