/* Embedding for programs in C, and in whatever calls C: what tsomon/monitor.h is for C++.
 *
 *   static void report(const struct tsomon_monitor_finding* finding, void* user) { puts(finding->text); }
 *
 *   struct tsomon_monitor_options options = TSOMON_MONITOR_OPTIONS;
 *   struct tsomon_monitor* monitor = tsomon_monitor_new(&options, report, user);
 *   // on every thread that takes part:
 *   struct tsomon_monitor_thread* thread = tsomon_monitor_open(monitor, "worker");
 *   tsomon_monitor_begin(thread, "deposit");
 *   tsomon_monitor_read(thread, &balance, sizeof balance, 0);
 *   tsomon_monitor_write(thread, &balance, sizeof balance, 0);
 *   tsomon_monitor_end(thread);
 *   tsomon_monitor_close(thread);
 *   // when all threads are closed:
 *   struct tsomon_monitor_summary summary;
 *   tsomon_monitor_finish(monitor, &summary, sizeof summary);
 *   tsomon_monitor_free(monitor);
 *
 * Meaning, ownership, threads, time and cost are as tsomon/monitor.h has them. Besides:
 *
 * Errors      Nothing is thrown. What can fail returns NULL or an enum tsomon_monitor_status, and tsomon_monitor_error()
 *             says what was wrong. An event that could not be taken makes the summary incomplete, whoever looks at the
 *             status. Without a thread (NULL) an event is refused.
 * Callback    Runs on the monitor's own thread; a finding, and its texts, are there until it returns. It must not leave
 *             by longjmp() or an exception, and not call tsomon_monitor_finish() or tsomon_monitor_free().
 * Growing     New members come last. Structures that a program fills say how large they are, and so does the program
 *             where the library fills one: an older program works with a newer library. Options that an older library does
 *             not know are refused; members of a summary that it does not know are 0.
 * Thread-safety: as tsomon/monitor.h; tsomon_monitor_error() is of the calling thread.
 *
 * C99, or C++. Installed as <tsomon/monitor_c.h>.
 */
#ifndef TSOMON_MONITOR_C_H
#define TSOMON_MONITOR_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum tsomon_monitor_status {
  TSOMON_MONITOR_OK = 0,
  TSOMON_MONITOR_NO_MEMORY = 1,
  TSOMON_MONITOR_BAD_ARGUMENT = 2, /* NULL, a size that is none */
  TSOMON_MONITOR_BUSY = 3,         /* threads are open */
  TSOMON_MONITOR_FINISHED = 4,     /* it takes nothing more */
  TSOMON_MONITOR_FAILED = 5        /* the system refused something, a thread for example */
};

enum tsomon_monitor_verdict {
  TSOMON_MONITOR_CLEAN = 0,       /* no execution that fits the events violates atomicity */
  TSOMON_MONITOR_POSSIBLE = 1,    /* some do, depending on when stores left the store buffers */
  TSOMON_MONITOR_DEFINITE = 2,    /* every one does */
  TSOMON_MONITOR_INCONCLUSIVE = 3 /* nothing was found, and it means nothing */
};

struct tsomon_monitor;        /* a monitor */
struct tsomon_monitor_thread; /* what one thread does; used by one thread at a time */

struct tsomon_monitor_options {
  size_t size;                /* of this structure */
  int store_buffers;          /* 0: every store takes effect at once (sequential consistency) */
  uint32_t store_buffer_size; /* in stores; 0: not known */
  int atomic_sets;            /* atomic-set serializability instead, without store buffers */
  size_t max_blocks;          /* of 512 events on their way to the monitor */
  int drop;                   /* when there is no room: drop and count, instead of waiting */
  int cancels;                /* tsomon_monitor_cancel() may be called */
};
/* What holds without options. */
#define TSOMON_MONITOR_OPTIONS \
  { sizeof(struct tsomon_monitor_options), 1, 0, 0, 2048, 0, 0 }

struct tsomon_monitor_finding {
  uint64_t number; /* from 1 */
  enum tsomon_monitor_verdict verdict;
  const char* text; /* the cycle of units, several lines */
  const char* json; /* the same as one JSON object */
};
typedef void (*tsomon_monitor_callback)(const struct tsomon_monitor_finding* finding, void* user);

struct tsomon_monitor_summary {
  enum tsomon_monitor_verdict verdict; /* of the gravest finding */
  int complete;                        /* 0: events were lost or late, or a bound was hit */
  uint64_t events;
  uint64_t units;
  uint64_t findings;    /* different ones */
  uint64_t occurrences; /* all */
  uint64_t accesses;
  uint64_t larger_units; /* units with two accesses or more */
  const char*
      why; /* of an inconclusive verdict: the reason, and what to do; until the monitor is freed */
  const char* json; /* the same as one JSON object; until the monitor is freed */
};

/* What the last call of this thread that failed found wrong; "" before. Until its next call that fails. */
const char* tsomon_monitor_error(void);
/* Cycles of the time-stamp counter. */
int64_t tsomon_monitor_now(void);

/* `options`: NULL is TSOMON_MONITOR_OPTIONS. `report`: NULL; findings are only counted. NULL on failure. */
struct tsomon_monitor* tsomon_monitor_new(const struct tsomon_monitor_options* options,
                                          tsomon_monitor_callback report, void* user);
/* Judges what is left and takes nothing more. Again: the same summary. `size`: of the summary as the program has it;
 * `summary` may be NULL. */
enum tsomon_monitor_status tsomon_monitor_finish(struct tsomon_monitor* monitor,
                                                 struct tsomon_monitor_summary* summary,
                                                 size_t size);
/* Finishes it if nobody has. Refused, with the monitor as it was, while threads are open. NULL: nothing. */
enum tsomon_monitor_status tsomon_monitor_free(struct tsomon_monitor* monitor);

/* Numbers for texts that are used often, from any thread; a location is never 0. On failure UINT32_MAX and 0. */
uint32_t tsomon_monitor_label(struct tsomon_monitor* monitor, const char* text);
uint32_t tsomon_monitor_location(struct tsomon_monitor* monitor, const char* text);
/* The bytes are part of this atomic set from the beginning. */
enum tsomon_monitor_status tsomon_monitor_atomic_set(struct tsomon_monitor* monitor,
                                                     const char* name, const volatile void* address,
                                                     size_t size);

/* NULL on failure. */
struct tsomon_monitor_thread* tsomon_monitor_open(struct tsomon_monitor* monitor, const char* name);
/* Ends the thread; NULL: nothing. */
void tsomon_monitor_close(struct tsomon_monitor_thread* thread);
/* For tsomon_monitor_join(); UINT32_MAX without a thread. */
uint32_t tsomon_monitor_id(const struct tsomon_monitor_thread* thread);

/* Events, in program order. `location`: of tsomon_monitor_location(), or 0. `size`: 1 to 2^24 - 1 bytes. */
enum tsomon_monitor_status tsomon_monitor_begin(struct tsomon_monitor_thread* thread,
                                                const char* label);
enum tsomon_monitor_status tsomon_monitor_begin_label(struct tsomon_monitor_thread* thread,
                                                      uint32_t label);
enum tsomon_monitor_status tsomon_monitor_end(struct tsomon_monitor_thread* thread);
enum tsomon_monitor_status tsomon_monitor_cancel(struct tsomon_monitor_thread* thread);
enum tsomon_monitor_status tsomon_monitor_read(struct tsomon_monitor_thread* thread,
                                               const volatile void* address, size_t size,
                                               uint32_t location);
enum tsomon_monitor_status tsomon_monitor_write(struct tsomon_monitor_thread* thread,
                                                const volatile void* address, size_t size,
                                                uint32_t location);
enum tsomon_monitor_status tsomon_monitor_update(struct tsomon_monitor_thread* thread,
                                                 const volatile void* address, size_t size,
                                                 uint32_t location);
/* The same, at some time between two calls of tsomon_monitor_now(). */
enum tsomon_monitor_status tsomon_monitor_read_between(struct tsomon_monitor_thread* thread,
                                                       const volatile void* address, size_t size,
                                                       uint32_t location, int64_t from, int64_t to);
enum tsomon_monitor_status tsomon_monitor_write_between(struct tsomon_monitor_thread* thread,
                                                        const volatile void* address, size_t size,
                                                        uint32_t location, int64_t from,
                                                        int64_t to);
enum tsomon_monitor_status tsomon_monitor_update_between(struct tsomon_monitor_thread* thread,
                                                         const volatile void* address, size_t size,
                                                         uint32_t location, int64_t from,
                                                         int64_t to);
enum tsomon_monitor_status tsomon_monitor_fence(struct tsomon_monitor_thread* thread);
/* While the lock is held. */
enum tsomon_monitor_status tsomon_monitor_acquire(struct tsomon_monitor_thread* thread,
                                                  const volatile void* lock, uint32_t location);
enum tsomon_monitor_status tsomon_monitor_release(struct tsomon_monitor_thread* thread,
                                                  const volatile void* lock, uint32_t location);
enum tsomon_monitor_status tsomon_monitor_allocated(struct tsomon_monitor_thread* thread,
                                                    const volatile void* address, size_t size,
                                                    uint32_t location);
enum tsomon_monitor_status tsomon_monitor_freed(struct tsomon_monitor_thread* thread,
                                                const volatile void* address, uint32_t location);
/* Before the other thread's first event, and after its last one. */
enum tsomon_monitor_status tsomon_monitor_fork(struct tsomon_monitor_thread* thread,
                                               const struct tsomon_monitor_thread* started);
enum tsomon_monitor_status tsomon_monitor_join(struct tsomon_monitor_thread* thread,
                                               uint32_t ended);
/* Events are missing here: their number, 0 if it is not known. */
enum tsomon_monitor_status tsomon_monitor_lost(struct tsomon_monitor_thread* thread,
                                               uint64_t events);
/* Of a thread that falls silent. */
enum tsomon_monitor_status tsomon_monitor_pause(struct tsomon_monitor_thread* thread);

#ifdef __cplusplus
}
#endif

#endif
