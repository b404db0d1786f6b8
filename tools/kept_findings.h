// What `tsomon findings` and `tsomon show` say of a store.
//
// Errors      Told on standard error; the exit status of command.h says which. Thread-safety: none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "monitor/service/store.h"
#include "tools/output_option.h"

namespace tsomon {

int refuse_store(std::string_view tool, const Error& error);

// `id`: one, whole; without it all, the last one first.
int show_findings(service::Store& store, const std::optional<std::string>& id, OutputFormat output,
                  std::string_view tool);

}  // namespace tsomon
