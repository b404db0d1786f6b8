#include "monitor/fleet/credentials.h"

#include <array>
#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/service/toml_parser.h"
#include "monitor/service/trusted_file.h"
#include "tso/support/printable.h"

namespace tsomon::fleet {
namespace {

tl::unexpected<Error> refused(ErrorKind kind, const std::string& file, const std::string& what) {
  return tl::unexpected<Error>(Error{kind, printable(file), {}, what});
}

std::string place_of(const toml::source_position& at) {
  return fmt::format("line {}, column {}", at.line, at.column);
}

}  // namespace

Result<Credentials> read_credentials(const std::string& file) {
  Credentials credentials;
  if (file.empty()) {
    return credentials;
  }
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return refused(ErrorKind::kUnreadable, file, "expected a file");
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return refused(ErrorKind::kEnvironment, file,
                   fmt::format("others may read it: chmod 600 {}", printable(file)));
  }
  if (const auto trusted = service::check_trusted(file, ::geteuid()); !trusted) {
    return tl::unexpected<Error>(trusted.error());
  }
  std::ifstream stream(file, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  if (!stream) {
    return refused(ErrorKind::kUnreadable, file, "cannot be read");
  }
  const std::array<std::pair<const char*, std::string*>, 9> texts = {{
      {"user", &credentials.user},
      {"password", &credentials.password},
      {"token", &credentials.token},
      {"nkey", &credentials.nkey},
      {"nkey_seed", &credentials.nkey_seed},
      {"creds", &credentials.creds},
      {"ca", &credentials.ca},
      {"certificate", &credentials.certificate},
      {"key", &credentials.key},
  }};
  try {
    const toml::table table = toml::parse(text, file);
    for (const auto& [key, node] : table) {
      const std::string_view name = key.str();
      std::string* place = nullptr;
      for (const auto& [known, value] : texts) {
        place = name == known ? value : place;
      }
      const bool is_tls = name == "tls" && node.is_boolean();
      if (!is_tls && (place == nullptr || !node.is_string())) {
        Error error{ErrorKind::kMalformed, printable(file), place_of(node.source().begin),
                    fmt::format("{}: expected user, password, token, nkey, nkey_seed, creds, ca, "
                                "certificate or key with a text, or tls with true or false",
                                printable(std::string(name)))};
        return tl::unexpected<Error>(std::move(error));
      }
      if (is_tls) {
        credentials.tls = node.value_or(false);
      } else {
        *place = node.value_or(std::string());
      }
    }
  } catch (const toml::parse_error& error) {
    return tl::unexpected<Error>(Error{ErrorKind::kMalformed, printable(file),
                                       place_of(error.source().begin),
                                       printable(std::string(error.description()))});
  }
  return credentials;
}

}  // namespace tsomon::fleet
