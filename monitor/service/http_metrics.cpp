#include "monitor/service/http_metrics.h"

#include <algorithm>

#include <fmt/format.h>

namespace tsomon::service {
namespace {

constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::string_view kPlainType = "text/plain; charset=utf-8";

std::string http_answer(std::string_view status, std::string_view type, std::string_view body,
                        bool with_body, std::string_view more = {}) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n{}",
      status, type, body.size(), more, with_body ? body : std::string_view());
}

std::string http_refusal(std::string_view status, bool with_body = true,
                         std::string_view more = {}) {
  return http_answer(status, kPlainType, fmt::format("{}\n", status), with_body, more);
}

bool is_method(std::string_view text) {
  constexpr size_t kMostLetters = 16;
  return text.size() <= kMostLetters &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

}  // namespace

std::optional<std::string> http_metrics_answer(std::string_view request, std::string_view metrics,
                                               size_t most) {
  // What is no method need not be waited for.
  if (!is_method(request.substr(0, request.find(' ')))) {
    return http_refusal("400 Bad Request");
  }
  if (request.find("\r\n\r\n") == std::string_view::npos &&
      request.find("\n\n") == std::string_view::npos) {
    return request.size() < most
               ? std::nullopt
               : std::optional(http_refusal("431 Request Header Fields Too Large"));
  }
  std::string_view line = request.substr(0, request.find('\n'));
  line.remove_suffix(line.ends_with('\r') ? 1 : 0);
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last ||
      !line.substr(last + 1).starts_with("HTTP/1.")) {
    return http_refusal("400 Bad Request");
  }
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const bool with_body = method != "HEAD";
  if (target.substr(0, target.find('?')) != "/metrics") {
    return http_refusal("404 Not Found", with_body);
  }
  if (method != "GET" && method != "HEAD") {
    return http_refusal("405 Method Not Allowed", true, "Allow: GET, HEAD\r\n");
  }
  if (metrics.empty()) {
    return http_refusal("503 Service Unavailable", with_body);
  }
  return http_answer("200 OK", kMetricsType, metrics, with_body);
}

}  // namespace tsomon::service
