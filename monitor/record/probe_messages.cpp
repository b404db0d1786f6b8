#include "monitor/record/probe_messages.h"

#include <array>
#include <cstdlib>

#include <unistd.h>

#include "monitor/probe/messages.h"

namespace tsomon {

ProbeMessages::ProbeMessages() {
  if (pipe_.problem().empty()) {
    setenv(probe::kMessagesVariable, pipe_.path().c_str(), 1);
  }
}

ProbeMessages::~ProbeMessages() { unsetenv(probe::kMessagesVariable); }

ProbeMessages::Said ProbeMessages::take() {
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t size = 0; (size = ::read(pipe_.fd(), buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<size_t>(size));
  }
  Said said;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (text[at] == '!') {
      said.refused = true;
    } else if (text[at] == 'u') {
      said.unsaid.push_back(text.substr(at + 1, end - at - 1));
    }
    at = end + 1;
  }
  return said;
}

}  // namespace tsomon
