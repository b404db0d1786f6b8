#include "monitor/service/local_socket.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tso/support/printable.h"

namespace tsomon::service {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> socket_problem(const std::string& address, const std::string& message,
                                     ErrorKind kind = ErrorKind::kEnvironment) {
  return tl::unexpected<Error>(Error{kind, printable(address), {}, message});
}

// A path in the file system, however long.
class SocketPath {
 public:
  explicit SocketPath(const std::string& path) : path_(path) {
    const fs::path whole(path);
    name_ = whole.filename().string();
    const fs::path folder = whole.has_parent_path() ? whole.parent_path() : fs::path(".");
    folder_ = Descriptor(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    error_ = folder_.is_open() ? 0 : errno;
  }

  // 0, or why there can be none.
  int address(sockaddr_un* address, socklen_t* size) const {
    if (error_ != 0) {
      return error_;
    }
    const std::string text = path_.size() < sizeof address->sun_path
                                 ? path_
                                 : fmt::format("/proc/self/fd/{}/{}", folder_.get(), name_);
    if (text.size() >= sizeof address->sun_path) {
      return ENAMETOOLONG;
    }
    *address = {};
    address->sun_family = AF_UNIX;
    text.copy(address->sun_path, text.size());
    *size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size() + 1);
    return 0;
  }
  const std::string& name() const { return name_; }
  int folder() const { return folder_.get(); }
  Descriptor take_folder() { return std::move(folder_); }

 private:
  std::string path_;
  std::string name_;
  Descriptor folder_;
  int error_ = 0;
};

// 0, or the system's reason. An address that is there already is somebody else's.
int connect_at(const SocketPath& path, Descriptor* connected) {
  sockaddr_un address{};
  socklen_t size = 0;
  if (const int error = path.address(&address, &size); error != 0) {
    return error;
  }
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    return errno;
  }
  *connected = std::move(socket);
  return 0;
}

// Empty: there is room for a new one.
std::string make_room(const SocketPath& path) {
  struct stat status {};
  if (::fstatat(path.folder(), path.name().c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT ? "" : std::strerror(errno);
  }
  if (!S_ISSOCK(status.st_mode)) {
    return "is there, and no socket";
  }
  Descriptor connected;
  const int error = connect_at(path, &connected);
  if (error == 0 || error == EAGAIN) {
    return "somebody else listens there";
  }
  if (error != ECONNREFUSED || ::unlinkat(path.folder(), path.name().c_str(), 0) != 0) {
    return std::strerror(error != ECONNREFUSED ? error : errno);
  }
  return {};
}

}  // namespace

ListeningSocket::ListeningSocket(ListeningSocket&& other) noexcept
    : socket_(std::move(other.socket_)),
      address_(std::move(other.address_)),
      folder_(std::move(other.folder_)),
      device_(other.device_),
      file_(std::exchange(other.file_, 0)) {}

ListeningSocket::~ListeningSocket() {
  if (file_ == 0) {
    return;
  }
  const std::string name = fs::path(address_.path).filename().string();
  struct stat status {};
  if (::fstatat(folder_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      status.st_dev == device_ && status.st_ino == file_) {
    ::unlinkat(folder_.get(), name.c_str(), 0);
  }
}

Result<ListeningSocket> ListeningSocket::open(const ListenAddress& address) {
  return address.is_unix() ? open_file(address) : open_port(address);
}

Result<ListeningSocket> ListeningSocket::open_port(const ListenAddress& address) {
  sockaddr_in four{};
  sockaddr_in6 six{};
  four.sin_family = AF_INET;
  four.sin_port = htons(address.port);
  six.sin6_family = AF_INET6;
  six.sin6_port = four.sin_port;
  const bool is_six = ::inet_pton(AF_INET, address.host.c_str(), &four.sin_addr) != 1;
  if (is_six && ::inet_pton(AF_INET6, address.host.c_str(), &six.sin6_addr) != 1) {
    return socket_problem(listen_text(address), "is no address");
  }
  auto* const bound =
      is_six ? reinterpret_cast<sockaddr*>(&six) : reinterpret_cast<sockaddr*>(&four);
  const socklen_t size = is_six ? sizeof six : sizeof four;
  Descriptor socket(
      ::socket(bound->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  const int again = 1;  // at once after the one before has ended
  if (!socket.is_open() ||
      ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &again, sizeof again) != 0 ||
      ::bind(socket.get(), bound, size) != 0 || ::listen(socket.get(), SOMAXCONN) != 0) {
    return socket_problem(listen_text(address), std::strerror(errno));
  }
  return adopt(std::move(socket), address);
}

Result<ListeningSocket> ListeningSocket::adopt(Descriptor socket, const ListenAddress& address) {
  sockaddr_in6 bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return socket_problem(listen_text(address), std::strerror(errno));
  }
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  ListenAddress got = address;
  got.port = ntohs(bound.sin6_port);
  return ListeningSocket(std::move(socket), std::move(got));
}

Result<ListeningSocket> ListeningSocket::open_file(const ListenAddress& address) {
  SocketPath path(address.path);
  sockaddr_un bound{};
  socklen_t size = 0;
  if (const int error = path.address(&bound, &size); error != 0) {
    return socket_problem(address.path, std::strerror(error));
  }
  if (const std::string problem = make_room(path); !problem.empty()) {
    return socket_problem(address.path, problem);
  }
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  struct stat status {};
  // The file gets the mode that the socket has; the mask of the process belongs to other threads, too.
  if (!socket.is_open() || ::fchmod(socket.get(), S_IRUSR | S_IWUSR) != 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&bound), size) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0 ||
      ::fstatat(path.folder(), path.name().c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return socket_problem(address.path, std::strerror(errno));
  }
  ListeningSocket opened(std::move(socket), address);
  opened.folder_ = path.take_folder();
  opened.device_ = status.st_dev;
  opened.file_ = status.st_ino;
  return opened;
}

Result<Descriptor> connect_to_socket(const std::string& path) {
  Descriptor connected;
  const int error = connect_at(SocketPath(path), &connected);
  if (error == 0) {
    return connected;
  }
  const bool nobody = error == ENOENT || error == ECONNREFUSED || error == ENOTDIR;
  return socket_problem(path, nobody ? "nobody listens there" : std::strerror(error),
                        nobody ? ErrorKind::kUnreadable : ErrorKind::kEnvironment);
}

bool peer_is_trusted(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == 0 || peer.uid == ::geteuid());
}

}  // namespace tsomon::service
