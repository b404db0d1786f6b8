// Schedules as text, for `--replay`.
//
// Format      STEPS[;WORDS[;THREADS[;PARTS]]]. STEPS: comma-separated, in order: the number of the
//             thread that executes, with aN behind it and takes the answer N (Op::kAnswer); with c behind it the
//             thread whose oldest store is committed; with xN behind it N times. WORDS: the shared words of memory,
//             hexadecimal, +N for N more behind it; without them the same places would be no
//             operations. THREADS: NUMBER:PARENT.CHILD of threads that others than the first
//             started. PARTS: WORD.STARTS of words that copies go through in parts,
//             hexadecimal.
// Thread-safety: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/explore/program_process.h"

namespace tsomon::explore {

struct Schedule {
  std::vector<Choice> steps;
  std::vector<uint64_t> words;
  std::vector<ThreadOrigin> origins;
  std::map<uint64_t, uint8_t> parts;
};

std::string schedule_text(const Schedule& schedule);
std::optional<Schedule> parse_schedule(std::string_view text);

}  // namespace tsomon::explore
