#include "monitor/service/idle_launcher.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "monitor/events/read_input.h"
#include "monitor/process/descriptor_message.h"
#include "monitor/service/sent_error.h"

namespace tsomon::service {
namespace {

// Anything shorter asks for the end of what runs. The words are one behind the other, each with its NUL.
struct Request {
  IdleBounds bounds;
  std::array<char, 32768> words;
};
constexpr size_t kLeastRequest = offsetof(Request, words);

struct Answer {
  SentError error;
  IdleEnd::Why why{};
  int wait_status = 0;
  std::chrono::microseconds used{0};
  uint64_t most_bytes = 0;
};

std::vector<std::string> words_of(const Request& request, size_t size) {
  std::vector<std::string> words;
  const char* const end = request.words.data() + size;
  for (const char* at = request.words.data(); at < end;) {
    words.emplace_back(at, ::strnlen(at, static_cast<size_t>(end - at)));
    at += words.back().size() + 1;
  }
  return words;
}

bool is_readable(int socket, int milliseconds) {
  pollfd one{socket, POLLIN, 0};
  return ::poll(&one, 1, milliseconds) == 1;
}

// A descriptor of a file in memory with the text; none: there is no room for it.
Descriptor file_with(const std::string& text) {
  Descriptor file(::memfd_create("tsomon-output", MFD_CLOEXEC));
  return file.is_open() && write_at(file, text.data(), text.size(), 0) ? std::move(file)
                                                                       : Descriptor();
}

tl::unexpected<Error> problem(std::string why) {
  return tl::unexpected<Error>(
      Error{ErrorKind::kEnvironment, "analyses of kept slices", {}, std::move(why)});
}

}  // namespace

void serve_as_launcher(const Descriptor& socket) {
  IdleProcess process;
  const auto request = std::make_unique<Request>();
  for (;;) {
    const ReceivedMessage received = receive_message(socket.get(), request.get(), sizeof *request);
    if (received.size <= 0) {
      return;
    }
    if (static_cast<size_t>(received.size) <= kLeastRequest) {
      continue;  // what was to be stopped has ended by itself
    }
    process.set_bounds(request->bounds);
    // What comes meanwhile asks for its end, and so does the end of who asks.
    const auto end =
        process.run(words_of(*request, static_cast<size_t>(received.size) - kLeastRequest),
                    [&] { return is_readable(socket.get(), 0); });
    Answer answer;
    Descriptor output;
    if (end) {
      answer.why = end->why;
      answer.wait_status = end->wait_status;
      answer.used = end->used;
      answer.most_bytes = end->most_bytes;
      output = file_with(end->output);
    } else {
      answer.error = SentError(end.error());
    }
    if (!send_message(socket.get(), &answer, sizeof answer, output.get())) {
      return;
    }
  }
}

Result<IdleEnd> run_by_launcher(const Descriptor& socket, const IdleBounds& bounds,
                                const std::vector<std::string>& command,
                                const std::function<bool()>& stopped) {
  constexpr int kLook = 20;  // milliseconds
  const auto request = std::make_unique<Request>();
  request->bounds = bounds;
  size_t size = 0;
  for (const std::string& word : command) {
    if (size + word.size() >= request->words.size()) {
      return problem("the command is too long");
    }
    std::memcpy(request->words.data() + size, word.c_str(), word.size() + 1);
    size += word.size() + 1;
  }
  if (!send_message(socket.get(), request.get(), kLeastRequest + size)) {
    return problem("the launcher has ended");
  }
  for (bool told = false; !is_readable(socket.get(), kLook);) {
    if (!told && stopped()) {
      told = true;
      const char stop = 0;
      (void)send_message(socket.get(), &stop, sizeof stop);
    }
  }
  Answer answer;
  ReceivedMessage received = receive_message(socket.get(), &answer, sizeof answer);
  if (received.size != static_cast<ptrdiff_t>(sizeof answer)) {
    return problem("the launcher has ended");
  }
  if (auto error = answer.error.error()) {
    return tl::unexpected<Error>(std::move(*error));
  }
  IdleEnd end;
  end.why = answer.why;
  end.wait_status = answer.wait_status;
  end.used = answer.used;
  end.most_bytes = answer.most_bytes;
  auto output = received.descriptor.is_open()
                    ? read_input(fmt::format("/proc/self/fd/{}", received.descriptor.get()))
                    : problem("there is no memory for what it wrote");
  if (!output) {
    return tl::unexpected<Error>(std::move(output.error()));
  }
  end.output = std::move(*output);
  return end;
}

}  // namespace tsomon::service
