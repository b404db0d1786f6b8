// The parts of examine_machine(), by what they look at.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "monitor/doctor/doctor.h"

namespace tsomon::doctor {

std::vector<int> usable_processors();  // that this process may run on, ascending
void pin_to(int processor);            // the calling thread; ignores failure

std::vector<MachineFinding> examine_processor();  // cores, SMT, time stamp counter, store buffer
std::vector<MachineFinding> examine_perf();       // perf events, uprobes, breakpoints, Intel PT
std::vector<MachineFinding> examine_kernel();     // version, BTF, BPF, ptrace
std::vector<MachineFinding> examine_hits();  // what a probe or a breakpoint costs when it is hit

// A finding whose remedy is dropped when nothing is missing.
MachineFinding finding(std::string name, bool available, bool required, std::string detail,
                       std::string needed_by, std::string remedy);

// The number in /sys/bus/event_source/devices/NAME/type.
std::optional<uint32_t> device_type(const std::string& name);

// Where code of this program lies in its file: a place for a uprobe.
struct CodePlace {
  std::string file;
  uint64_t offset = 0;
};
std::optional<CodePlace> code_place(uint64_t address);

}  // namespace tsomon::doctor
