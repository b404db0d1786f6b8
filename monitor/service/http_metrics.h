// Metrics by HTTP, as Prometheus asks for them: what an AnsweringServer needs to know of it.
//
// Form        HTTP/1.0 or 1.1: GET or HEAD of /metrics; the answer has its length, and the connection ends with it. All else is
//             answered with the status that says what was wrong, what is no request with 400, a long one with 431.
// Misses      Whatever of HTTP nobody who scrapes needs: compression, bodies, connections that stay.
// Complexity  O(length). Thread-safety: pure function.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tsomon::service {

// Nothing: the request is not whole, and shorter than `most` bytes. `metrics`: empty: there are none yet.
std::optional<std::string> http_metrics_answer(std::string_view request, std::string_view metrics,
                                               size_t most);

}  // namespace tsomon::service
