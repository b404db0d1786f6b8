#include "decoders/std/scan.h"

namespace tsomon::std_trace {

LineKind split_any(const char* line, Fields& fields) {
  const char* bars[4];
  unsigned count = 0;
  const char* end = nullptr;
  bool nul = false;
  for (const char* at = line; end == nullptr; at += 32) {
    Masks masks = masks32(at);
    for (uint32_t controls = masks.controls; controls != 0; controls &= controls - 1) {
      const uint32_t bit = controls & (~controls + 1);
      const char* found = at + __builtin_ctz(controls);
      if (*found == '\n') {
        end = found;
        masks.bars &= bit - 1;
        break;
      }
      nul = nul || *found == '\0';
    }
    for (; masks.bars != 0 && count < 4; masks.bars &= masks.bars - 1) {
      bars[count++] = at + __builtin_ctz(masks.bars);
    }
  }
  fields.next = end + 1;
  if (end != line && end[-1] == '\r') {
    --end;
  }
  fields.begin = line;
  fields.end = end;
  const char* text = line;
  while (text != end && (*text == ' ' || *text == '\t' || *text == '\r')) {
    ++text;
  }
  if (text == end || *text == '#') {
    return LineKind::kNothing;
  }
  if (nul) {
    return LineKind::kNul;
  }
  if (count == 0) {
    return LineKind::kNoBar;
  }
  fields.thread_end = bars[0];
  fields.op_end = count > 1 ? bars[1] : end;
  fields.location_end = count > 2 ? bars[2] : end;
  return count < 4 ? LineKind::kFields : LineKind::kTooManyFields;
}

const char* wrong_line(LineKind kind) {
  switch (kind) {
    case LineKind::kNul:
      return "text, not a line with NUL bytes";
    case LineKind::kTooManyFields:
      return "at most four fields THREAD|OP|LOCATION|LO..HI";
    default:
      return "THREAD|OP|LOCATION";
  }
}

}  // namespace tsomon::std_trace
