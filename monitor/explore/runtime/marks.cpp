// What a run tells beside its steps: its end, marks, labels, outcomes.
#include <csignal>
#include <cstring>

#include <sys/syscall.h>
#include <unistd.h>

#include "monitor/explore/runtime/in_place.h"
#include "monitor/explore/runtime/plain.h"
#include "monitor/explore/runtime/scheduler.h"

namespace tsomon::explore {

void had_effect() {
  leaves_loop();
  threads[self].wakes = 0;
}
void leaves_loop() { threads[self].recent_count = 0; }
// Before there are threads nothing is said.
void note_unsaid() { channel->unsaid += concurrent ? 1 : 0; }

void not_understood(const char* text) {
  if (concurrent && channel->not_understood[0] == 0) {
    const size_t room = sizeof channel->not_understood - 1;
    size_t at = 0;
    for (; at < room && text[at] != 0; ++at) {
      channel->not_understood[at] = text[at];
    }
    channel->not_understood[at] = 0;
  }
  had_effect();
}

void finish(End end, int status) {
  channel->end = end;
  channel->status = status;
  publish();
  if (in_place::is_on()) {
    in_place::end();
  }
  syscall(SYS_exit_group, 0);
  __builtin_unreachable();
}

void end_run(End end, const char* why) {
  const size_t size = std::strlen(why);
  probe::copy(channel->detail, why,
              size < sizeof channel->detail ? size + 1 : sizeof channel->detail);
  channel->detail[sizeof channel->detail - 1] = 0;
  finish(end, 0);
}

void make_stores() {
  if (concurrent) {
    settle(threads[self]);
  }
}

void end_by_abort() {
  make_stores();
  if (in_place::is_on()) {
    in_place::end_by_signal(SIGABRT);
  }
}

void refuse(const char* function) { end_run(End::kRefused, function); }

void mark(MarkKind kind, uint32_t value) {
  make_stores();
  if (kind == MarkKind::kUnitCancel && threads[self].units != 0) {
    --threads[self].units;
  }
  threads[self].unit_marks += is_unit_mark(kind) ? 1 : 0;
  if (!concurrent && is_unit_mark(kind)) {
    return;
  }
  const uint32_t count = at_most(channel->mark_count, kMaxMarks);
  if (count == kMaxMarks) {
    finish(End::kBound, 0);
  }
  channel->marks[count] = {
      kind, static_cast<uint16_t>(self), steps, value, threads[self].operations, 0, 0};
  channel->mark_count = count + 1;
}

void mark_freed(uint64_t address, size_t size) {
  const uint32_t count = at_most(channel->mark_count, kMaxMarks);
  mark(MarkKind::kFree, 0);
  Mark& freed = channel->marks[count];
  freed.address = address;
  freed.size = size;
}

uint32_t label(const char* name, size_t size) {
  char text[kLabelSize] = {};
  probe::copy(text, name, size < kLabelSize - 1 ? size : kLabelSize - 1);
  const uint32_t count = at_most(channel->label_count, kMaxLabels);
  for (uint32_t i = 0; i < count; ++i) {
    if (std::strncmp(channel->labels[i], text, kLabelSize) == 0) {
      return i;
    }
  }
  if (count == kMaxLabels) {
    return kMaxLabels - 1;
  }
  probe::copy(channel->labels[count], text, kLabelSize);
  channel->label_count = count + 1;
  return count;
}

unsigned enter_unit(const char* name) {
  mark(MarkKind::kUnitBegin, label(name, std::strlen(name)));
  return ++threads[self].units;
}

// One that was cancelled ended then.
void leave_unit(unsigned unit) {
  if (threads[self].units >= unit) {
    mark(MarkKind::kUnitEnd, 0);
    threads[self].units = unit - 1;
  }
}

namespace {

void mark_call(MarkKind kind, const char* text) {
  had_effect();
  const size_t size = std::strlen(text);
  const uint32_t number = label(text, size);
  if (size >= kLabelSize || number == kMaxLabels - 1) {
    end_run(End::kFailed, size >= kLabelSize
                              ? "a call or a result of more than 63 bytes (tsomon_call)"
                              : "more than 4094 different calls and results (tsomon_call)");
  }
  mark(kind, number);
}

}  // namespace

void say_call(const char* text, uint64_t pc) {
  if (concurrent) {
    Operation operation;
    operation.op = Op::kCall;
    operation.pc = pc;
    step(operation);
  }
  mark_call(MarkKind::kCall, text);
}

void say_return(const char* text) { mark_call(MarkKind::kReturn, text); }

void say_outcome(const char* text) {
  had_effect();
  const size_t size = std::strlen(text) + 1;
  const uint32_t used = at_most(channel->outcome_bytes, kOutcomeBytes);
  if (size <= kOutcomeBytes - used) {
    probe::copy(channel->outcomes + used, text, size);
    channel->outcome_bytes = used + static_cast<uint32_t>(size);
  }
}

}  // namespace tsomon::explore
