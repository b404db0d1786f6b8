#include "monitor/fleet/digest.h"

#include <algorithm>
#include <array>

#include <openssl/evp.h>

#include "tso/support/result.h"

namespace tsomon::fleet {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";
constexpr size_t kBytes = 32;

}  // namespace

std::string digest_of(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const int done =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  TSOMON_CHECK(done == 1 && size == kBytes, "SHA-256");
  std::string text;
  text.reserve(2 * kBytes);
  for (size_t i = 0; i < kBytes; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

bool is_digest(std::string_view text) {
  return text.size() == 2 * kBytes && text.find_first_not_of(kDigits) == std::string_view::npos;
}

}  // namespace tsomon::fleet
