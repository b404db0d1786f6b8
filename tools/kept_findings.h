// What `tsomon findings` and `tsomon show` say of a store.
//
// Errors      Told on standard error; the exit status of command.h says which. Thread-safety: none.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/service/store.h"
#include "tools/output_option.h"

namespace tsomon {

// Of each what it is in the list, or `whole`; `hidden`: by what, where it is suppressed.
void put_kept(const std::vector<service::KeptFinding>& findings,
              const std::function<std::string(const service::KeptFinding&)>& hidden, bool whole,
              OutputFormat output, std::string_view tool);
// `id`: one, whole; without it all, the last one first.
int show_findings(service::Store& store, const std::optional<std::string>& id, OutputFormat output,
                  std::string_view tool);

}  // namespace tsomon
