#include "monitor/attach/choose_uprobes.h"

#include <utility>

#include "monitor/attach/bpf_uprobes.h"
#include "monitor/attach/perf_uprobes.h"

namespace tsomon::attach {

Result<ChosenUprobes> choose_uprobes(pid_t pid) {
  auto bpf = BpfUprobes::create();
  if (bpf) {
    return ChosenUprobes{std::move(*bpf), {}};
  }
  auto perf = create_perf_uprobes(pid);
  if (!perf) {
    return tl::unexpected<Error>(bpf.error());
  }
  return ChosenUprobes{std::move(*perf), bpf.error().to_string()};
}

}  // namespace tsomon::attach
