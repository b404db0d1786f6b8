// What a fleet's server asks for, from a file that nobody else may write or read.
//
// Form        TOML, all of it optional: `user`, `password`, `token`; `nkey` (the public key) and `nkey_seed` (a file), or `creds`
//             (a file), which NATS has; `ca`, `certificate`, `key` (files), `tls = true`.
// Errors      kMalformed with line and column; kEnvironment: others may read it.
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "tso/support/result.h"

namespace tsomon::fleet {

struct Credentials {
  std::string user;
  std::string password;
  std::string token;
  std::string nkey;
  std::string nkey_seed;
  std::string creds;
  std::string ca;
  std::string certificate;
  std::string key;
  bool tls = false;
};

// "": none.
Result<Credentials> read_credentials(const std::string& file);

}  // namespace tsomon::fleet
