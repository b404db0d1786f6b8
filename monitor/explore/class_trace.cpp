#include "monitor/explore/class_trace.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>

#include <fmt/format.h>

#include "decoders/std/writer.h"

namespace tsomon::explore {
namespace {

std::string value_text(Value value) { return std::to_string(static_cast<uint64_t>(value)); }

// The part of the line between the bars; empty: the operation is no event.
std::string operation_text(const Step& step) {
  const std::string cell = fmt::format("{:#x}+{}", step.address, step.size);
  const bool values = step.size <= 8;
  switch (step.op) {
    case Op::kLoad:
      return values ? fmt::format("r({}={})", cell, value_text(step.read))
                    : fmt::format("r({})", cell);
    case Op::kStore:
      return values ? fmt::format("w({}={})", cell, value_text(step.written))
                    : fmt::format("w({})", cell);
    case Op::kFence:
      return "fence";
    case Op::kCreate:
      return fmt::format("fork(T{})", value_text(step.a));
    case Op::kJoin:
      return fmt::format("join(T{})", value_text(step.a));
    case Op::kBegin:
    case Op::kEnd:
    case Op::kCall:
      return {};
    case Op::kLock:
    case Op::kWriteLock:
      return fmt::format("acq(lock{:x})", step.address);
    case Op::kTryLock:
    case Op::kTryWriteLock:
      return step.read == 0 ? fmt::format("acq(lock{:x})", step.address) : std::string("fence");
    case Op::kUnlock:
      return fmt::format("rel(lock{:x})", step.address);
    default:
      break;
  }
  if (is_object(step.op)) {
    return fmt::format("rmw(object{:x})", step.address);
  }
  return values
             ? fmt::format("rmw({}={},{})", cell, value_text(step.read), value_text(step.written))
             : fmt::format("rmw({})", cell);
}

}  // namespace

std::string trace_text(const Graph&, const Run& run,
                       const std::function<std::string(uint32_t)>& label,
                       const std::function<std::string(uint64_t)>& place) {
  std::string text;
  std::map<uint16_t, uint32_t> open;
  size_t mark = 0;
  const auto put_marks = [&](size_t step) {
    for (; mark < run.marks.size() && run.marks[mark].step <= step; ++mark) {
      const Mark& at = run.marks[mark];
      if (at.kind == MarkKind::kCall || at.kind == MarkKind::kReturn) {
        text += fmt::format("T{}|{}({})|\n", at.thread, at.kind == MarkKind::kCall ? "call" : "ret",
                            label(at.value));
      } else if (at.kind == MarkKind::kUnitBegin) {
        text += fmt::format("T{}|begin({})|\n", at.thread, label(at.value));
        ++open[at.thread];
      } else if (is_unit_mark(at.kind) && open[at.thread] > 0) {
        text += fmt::format("T{}|{}|\n", at.thread,
                            at.kind == MarkKind::kUnitCancel ? "cancel" : "end");
        --open[at.thread];
      }
    }
  };
  for (size_t i = 0; i < run.steps.size(); ++i) {
    put_marks(i);
    const Step& step = run.steps[i];
    if (step.choice.commit != 0 || step.waits) {
      continue;
    }
    const std::string operation = operation_text(step);
    if (!operation.empty()) {
      std::string where = step.pc == 0 ? std::string() : place(step.pc);
      std::replace(where.begin(), where.end(), '|', '/');
      text += fmt::format("T{}|{}|{}\n", step.choice.thread, operation, where);
    }
  }
  put_marks(run.steps.size());
  return text;
}

std::string ClassTraces::write(const Graph& graph, const Run& run, Model, bool bad,
                               ProgramProcess* process,
                               const std::function<std::string(uint64_t)>& place) {
  if (folder_.empty()) {
    return {};
  }
  const std::string path = fmt::format("{}/{}-{}.std", folder_, bad ? "bad" : "good", written_ + 1);
  std::string text;
  StdWriter::write_until_whole(text);
  text += trace_text(
      graph, run, [&](uint32_t number) { return process->label(number); }, place);
  StdWriter::write_whole(text);
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) {
    folder_.clear();
    return fmt::format("{}: cannot be written: {}", path, std::strerror(errno));
  }
  ++written_;
  return {};
}

}  // namespace tsomon::explore
