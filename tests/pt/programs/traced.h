// The part of a program that is stepped through lies between two breakpoints. TRACE_VALUE puts a
// value into the trace where the program is built with WITH_PTWRITE; the stepper carries the
// instruction out itself, so that it needs no processor that has it.
#pragma once

#include <cstdint>

inline void begin_trace() { asm volatile("int3" ::: "memory"); }
inline void end_trace() { asm volatile("int3" ::: "memory"); }

#ifdef WITH_PTWRITE
#define TRACE_VALUE(value) asm volatile("ptwrite %0" ::"r"(value) : "memory")
#else
#define TRACE_VALUE(value) static_cast<void>(value)
#endif
