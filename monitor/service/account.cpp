#include "monitor/service/account.h"

#include <array>
#include <cerrno>

#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tso/support/printable.h"

namespace tsomon::service {
namespace {

using Words = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

bool read_capabilities(Words* words) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  return ::syscall(SYS_capget, &header, words->data()) == 0;
}

// Files that are executed give none, root's neither. Without CAP_SETPCAP it cannot be, and no_new_privs is enough.
void forget_what_files_give() {
  for (int each = 0; each <= CAP_LAST_CAP; ++each) {
    ::prctl(PR_CAPBSET_DROP, each, 0, 0, 0);
  }
  ::prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED, 0, 0, 0);
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

int set_capabilities(const Words& wanted) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  if (::syscall(SYS_capset, &header, wanted.data()) != 0 ||
      ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return errno;
  }
  return 0;
}

}  // namespace

Result<Account> Account::find(const std::string& name) {
  errno = 0;
  const passwd* const entry = ::getpwnam(name.c_str());
  if (entry == nullptr) {
    return fail(ErrorKind::kUsage,
                fmt::format("there is no user {}; `adduser --system --group {}` makes one",
                            printable(name), printable(name)));
  }
  Account account{entry->pw_uid, entry->pw_gid, {}, name, entry->pw_dir};
  int count = 64;
  account.groups.resize(static_cast<size_t>(count));
  if (::getgrouplist(name.c_str(), account.group, account.groups.data(), &count) < 0) {
    account.groups.resize(static_cast<size_t>(count));
    ::getgrouplist(name.c_str(), account.group, account.groups.data(), &count);
  }
  account.groups.resize(static_cast<size_t>(count));
  return account;
}

Account Account::current() {
  Account account{::geteuid(), ::getegid(), {}, {}, {}};
  account.groups.resize(static_cast<size_t>(::getgroups(0, nullptr)));
  ::getgroups(static_cast<int>(account.groups.size()), account.groups.data());
  return account;
}

int Account::become() const {
  forget_what_files_give();
  // Who is no other user needs no permission to stay as it is.
  const bool other = user != ::geteuid() || user != ::getuid();
  if (other && (::setgroups(groups.size(), groups.data()) != 0 ||
                ::setresgid(group, group, group) != 0 || ::setresuid(user, user, user) != 0)) {
    return errno;
  }
  if (const int error = set_capabilities({}); error != 0) {
    return error;
  }
  // There is no way back.
  return other && ::setresuid(0, 0, 0) == 0 ? EPERM : 0;
}

int keep_capabilities(const std::vector<int>& kept) {
  Words words{};
  if (!read_capabilities(&words)) {
    return errno;
  }
  forget_what_files_give();
  Words wanted{};
  for (const int each : kept) {
    const auto word = static_cast<size_t>(CAP_TO_INDEX(each));
    wanted[word].permitted |= words[word].permitted & CAP_TO_MASK(each);
    wanted[word].effective = wanted[word].permitted;
  }
  return set_capabilities(wanted);
}

bool has_capability(int capability) {
  Words words{};
  return read_capabilities(&words) &&
         (words[static_cast<size_t>(CAP_TO_INDEX(capability))].effective &
          CAP_TO_MASK(capability)) != 0;
}

}  // namespace tsomon::service
