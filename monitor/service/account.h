// A user of the system, with all that a process takes from it.
//
// Errors      kUsage: there is no such user. kEnvironment: this process may not become one.
// Thread-safety: find() none (it asks the system's databases); become() as long as there is one thread.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "tso/support/result.h"

namespace tsomon::service {

struct Account {
  uid_t user = 0;
  gid_t group = 0;
  std::vector<gid_t> groups;
  std::string name;
  std::string home;

  static Result<Account> find(const std::string& name);
  static Account current();
  // For good, without any capability, and without a way to get one by executing a file. Safe after fork(): it allocates nothing.
  // 0, or an errno value.
  int become() const;
};

// This process keeps these of its capabilities, and no others, for good. 0, or an errno value.
int keep_capabilities(const std::vector<int>& kept);
bool has_capability(int capability);

}  // namespace tsomon::service
