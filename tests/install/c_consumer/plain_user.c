/* A lost update, fed into a monitor by one thread under two names. */
#include <stdio.h>
#include <time.h>

#include <tsomon/monitor_c.h>

static void report(const struct tsomon_monitor_finding* finding, void* user) {
  *(int*)user += 1;
  printf("%s\n", finding->text);
}

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, tsomon_monitor_error());
  return 2;
}

int main(void) {
  /* Longer than any clock's margin: of events closer together than it, nobody knows which came first. */
  const struct timespec millisecond = {0, 1000000};
  struct tsomon_monitor_options options = TSOMON_MONITOR_OPTIONS;
  struct tsomon_monitor_summary summary;
  struct tsomon_monitor_thread* threads[2];
  int reports = 0;
  int value = 0;
  int i;
  struct tsomon_monitor* monitor = tsomon_monitor_new(&options, report, &reports);
  if (monitor == NULL) {
    return fail("new");
  }
  for (i = 0; i < 2; ++i) {
    threads[i] = tsomon_monitor_open(monitor, i == 0 ? "first" : "second");
    if (threads[i] == NULL || tsomon_monitor_begin(threads[i], "add") != TSOMON_MONITOR_OK ||
        tsomon_monitor_read(threads[i], &value, sizeof value, 0) != TSOMON_MONITOR_OK) {
      return fail("begin");
    }
  }
  nanosleep(&millisecond, NULL);
  for (i = 0; i < 2; ++i) {
    if (tsomon_monitor_write(threads[i], &value, sizeof value, 0) != TSOMON_MONITOR_OK ||
        tsomon_monitor_end(threads[i]) != TSOMON_MONITOR_OK) {
      return fail("end");
    }
    tsomon_monitor_close(threads[i]);
  }
  if (tsomon_monitor_finish(monitor, &summary, sizeof summary) != TSOMON_MONITOR_OK) {
    return fail("finish");
  }
  if (summary.findings != (uint64_t)reports || summary.verdict != TSOMON_MONITOR_DEFINITE) {
    return 3;
  }
  if (tsomon_monitor_free(monitor) != TSOMON_MONITOR_OK) {
    return fail("free");
  }
  return reports == 0 ? 0 : 1;
}
