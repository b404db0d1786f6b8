// The parts of examine_machine(), by what they look at.
#pragma once

#include <vector>

#include "monitor/doctor.h"

namespace tsomon::doctor {

std::vector<int> usable_processors();  // that this process may run on, ascending
void pin_to(int processor);            // the calling thread; ignores failure

std::vector<MachineFinding> examine_processor();  // cores, SMT, time stamp counter, store buffer
std::vector<MachineFinding> examine_perf();       // perf events, uprobes, breakpoints, Intel PT
std::vector<MachineFinding> examine_kernel();     // version, BTF, BPF, ptrace

// A finding whose remedy is dropped when nothing is missing.
MachineFinding finding(std::string name, bool available, bool required, std::string detail,
                       std::string needed_by, std::string remedy);

}  // namespace tsomon::doctor
