// Sockets of this machine: to listen on, and to ask at.
//
// Files       A Unix socket is its owner's alone (0600) from the moment that it is there. One that nobody listens at any more is
//             replaced; what is no socket, or is answered, is not. It is removed with the object, if it is still that one.
// Long paths  sun_path has 108 bytes: a longer path goes through a descriptor of its folder (/proc/self/fd), so that
//             only the name has to fit.
// Errors      kEnvironment: the address and the system's reason. kUnreadable: connecting, nobody listens there.
// Thread-safety: different objects.
#pragma once

#include <cstdint>
#include <string>

#include <sys/types.h>

#include "monitor/process/descriptor.h"
#include "monitor/service/listen_address.h"
#include "tso/support/result.h"

namespace tsomon::service {

class ListeningSocket {
 public:
  static Result<ListeningSocket> open(const ListenAddress& address);
  // One that listens at the port of the address already, which another process has opened.
  static Result<ListeningSocket> adopt(Descriptor socket, const ListenAddress& address);
  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

  int get() const { return socket_.get(); }
  // With the port that it got.
  const ListenAddress& address() const { return address_; }

 private:
  ListeningSocket(Descriptor socket, ListenAddress address)
      : socket_(std::move(socket)), address_(std::move(address)) {}
  static Result<ListeningSocket> open_port(const ListenAddress& address);
  static Result<ListeningSocket> open_file(const ListenAddress& address);

  Descriptor socket_;
  ListenAddress address_;
  Descriptor folder_;  // of the file
  dev_t device_ = 0;
  ino_t file_ = 0;
};

// Does not block, now or later.
Result<Descriptor> connect_to_socket(const std::string& path);

// Whether the other end of a Unix socket was made by this user, or by root. As the kernel says.
bool peer_is_trusted(int socket);

}  // namespace tsomon::service
