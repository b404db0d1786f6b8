// What churn.cpp loads again and again.
static long cells[64];

extern "C" __attribute__((noinline)) long twice(long value) {
  for (long& cell : cells) {
    cell += value;
  }
  const long result = cells[7] - cells[8] + 2 * value;
  return result;
}
