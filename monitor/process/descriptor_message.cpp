#include "monitor/process/descriptor_message.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>

namespace tsomon {

bool send_message(int socket, const void* data, size_t size, int descriptor) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  iovec part{const_cast<void*>(data), size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

ReceivedMessage receive_message(int socket, void* data, size_t size) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  iovec part{data, size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ReceivedMessage received;
  do {
    received.size = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (received.size < 0 && errno == EINTR);
  if (const cmsghdr* const header = received.size > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
      header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    int sent = -1;
    std::memcpy(&sent, CMSG_DATA(header), sizeof sent);
    received.descriptor = Descriptor(sent);
  }
  received.whole = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  return received;
}

}  // namespace tsomon
