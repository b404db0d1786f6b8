// The configuration of the service: whatever the bytes, there is a configuration that can be used, or errors that say where.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "monitor/service/config.h"
#include "tso/support/printable.h"
#include "tso/support/result.h"

using namespace tsomon;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto reading =
      service::parse_config({reinterpret_cast<const char*>(data), size}, "config.toml");
  for (const Error& error : reading.errors) {
    const std::string text = error.to_string();
    TSOMON_CHECK(text.starts_with("config.toml:"), "an error without its place");
    TSOMON_CHECK(text == printable(text), "an error that no line should hold");
  }
  if (reading.errors.empty()) {
    TSOMON_CHECK(!reading.config.store.empty() && !reading.config.targets.empty(),
                 "a configuration without a store or a target");
    for (const service::TargetConfig& target : reading.config.targets) {
      TSOMON_CHECK(!target.name.empty() && !target.properties.empty() && target.sample > 0 &&
                       target.sample <= 1 && target.slice.count() > 0,
                   "a target that cannot be watched");
      TSOMON_CHECK((target.pid != 0) + !target.program.empty() + !target.command.empty() == 1,
                   "a target that is found in no way, or in two");
    }
  }
  return 0;
}
