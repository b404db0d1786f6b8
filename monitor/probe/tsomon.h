/* Marks units of work for tsomon, from C and C++.
 *
 * A unit is a piece of one thread's work that is meant to be atomic: tsomon decides whether the
 * recorded units can be put in an order that explains what every thread saw. Units may nest.
 *
 *   C++   { TSOMON_UNIT("take"); ... }          ends with the scope, also by an exception
 *         TSOMON_UNIT("take;head,tail");         declared on the atomic sets head and tail
 *   C     tsomon_unit_begin("take"); ... tsomon_unit_end();
 *
 * A failed attempt is no unit: what an optimistic reader saw is thrown away when it finds that
 * another thread was at work meanwhile.
 *
 *         for (;;) {
 *           TSOMON_UNIT("read");
 *           ...
 *           if (nobody wrote) break;
 *           TSOMON_UNIT_CANCEL();
 *         }
 *
 * ends the innermost unit as if its accesses had been events of their own, or of the unit around
 * it; the end of its scope then ends nothing. From C tsomon_unit_cancel() in the place of
 * tsomon_unit_end().
 *
 * Atomic sets are groups of locations that belong together (`tsomon check --property atomic-sets`):
 *
 *         TSOMON_ATOMIC_SET("head", &head, sizeof head);     the bytes of head are part of the set
 *
 * holds for the whole recording, whenever it is said, also for other objects at the same place.
 * With the option accesses=sets no other memory is watched: declare data before another thread
 * accesses it.
 * At most 4096 different ranges of at most 1 GiB; what belongs to one set lies best in one object
 * or array. A unit that names no set is declared on all of them.
 *
 * Without the runtime in the program the calls do nothing: the symbols are weak and every call is
 * a test of an address. Names are copied at their first use; at most 4096 different ones, of at
 * most 255 bytes each.
 *
 * longjmp out of a scope does not run destructors: a unit left that way stays open until the
 * unit around it ends (tsomon_unit_end ends the innermost one).
 */
#ifndef TSOMON_H
#define TSOMON_H

#ifdef __cplusplus
extern "C" {
#endif

__attribute__((weak)) void tsomon_runtime_unit_begin(const char* name);
__attribute__((weak)) void tsomon_runtime_unit_end(void);
__attribute__((weak)) void tsomon_runtime_unit_cancel(void);
__attribute__((weak)) unsigned tsomon_runtime_unit_enter(const char* name);
__attribute__((weak)) void tsomon_runtime_unit_leave(unsigned unit);
__attribute__((weak)) void tsomon_runtime_outcome(const char* text);
__attribute__((weak)) void tsomon_runtime_call(const char* text, const void* caller);
__attribute__((weak)) void tsomon_runtime_return(const char* text);
__attribute__((weak)) void tsomon_runtime_atomic_set(const char* name, const volatile void* address,
                                                     unsigned long size);

static __inline__ void tsomon_unit_begin(const char* name) {
  if (tsomon_runtime_unit_begin) {
    tsomon_runtime_unit_begin(name);
  }
}

static __inline__ void tsomon_unit_end(void) {
  if (tsomon_runtime_unit_end) {
    tsomon_runtime_unit_end();
  }
}

/* Code that calls it defines a symbol by which the runtime knows from the start that units may be
 * cancelled. Libraries that are loaded later it does not see: TSOMON_OPTIONS=cancels=1. */
static __inline__ void tsomon_unit_cancel(void) {
  __asm__(
      ".ifndef tsomon_units_may_be_cancelled\n\t"
      ".pushsection .rodata\n\t"
      ".weak tsomon_units_may_be_cancelled\n\t"
      ".type tsomon_units_may_be_cancelled, @object\n\t"
      ".size tsomon_units_may_be_cancelled, 1\n"
      "tsomon_units_may_be_cancelled:\n\t"
      ".byte 1\n\t"
      ".popsection\n\t"
      ".endif");
  if (tsomon_runtime_unit_cancel) {
    tsomon_runtime_unit_cancel();
  }
}
#define TSOMON_UNIT_CANCEL() tsomon_unit_cancel()

static __inline__ void tsomon_atomic_set(const char* name, const volatile void* address,
                                         unsigned long size) {
  if (tsomon_runtime_atomic_set) {
    tsomon_runtime_atomic_set(name, address, size);
  }
}

/* tsomon_outcome("x=%d", x): what an execution of an explored program comes to (`tsomon explore`
 * counts the executions of each outcome); elsewhere nothing. At most 255 bytes count. */
__attribute__((format(printf, 1, 2))) static __inline__ void tsomon_outcome(const char* format,
                                                                            ...) {
  if (tsomon_runtime_outcome) {
    char text[256];
    __builtin_va_list arguments;
    __builtin_va_start(arguments, format);
    __builtin_vsnprintf(text, sizeof text, format, arguments);
    __builtin_va_end(arguments);
    tsomon_runtime_outcome(text);
  }
}

/* tsomon_call("push,%d", value) ... tsomon_return("%d", result): an operation of a concurrent
 * object begins and ends, for `tsomon explore --property linearizability`; elsewhere nothing. The
 * name of the operation and its arguments; what it returned, nothing ("") or nil. Of several
 * objects: "name.push,%d". At most 63 bytes each. They may nest. */
__attribute__((format(printf, 1, 2), noinline, unused)) static void tsomon_call(const char* format,
                                                                                ...) {
  if (tsomon_runtime_call) {
    char text[256];
    __builtin_va_list arguments;
    __builtin_va_start(arguments, format);
    __builtin_vsnprintf(text, sizeof text, format, arguments);
    __builtin_va_end(arguments);
    tsomon_runtime_call(text, __builtin_return_address(0));
  }
}
__attribute__((format(printf, 1, 2))) static __inline__ void tsomon_return(const char* format,
                                                                           ...) {
  if (tsomon_runtime_return) {
    char text[256];
    __builtin_va_list arguments;
    __builtin_va_start(arguments, format);
    __builtin_vsnprintf(text, sizeof text, format, arguments);
    __builtin_va_end(arguments);
    tsomon_runtime_return(text);
  }
}

#define TSOMON_ATOMIC_SET(name, address, size) tsomon_atomic_set(name, address, size)

#ifdef __cplusplus
} /* extern "C" */

namespace tsomon {
/* Inlined everywhere: a store to it would be an access of the unit. */
class [[maybe_unused]] ScopedUnit {
 public:
  __attribute__((always_inline)) explicit ScopedUnit(const char* name)
      : unit_(tsomon_runtime_unit_enter ? tsomon_runtime_unit_enter(name) : 0) {}
  __attribute__((always_inline)) ~ScopedUnit() {
    if (unit_ != 0) {
      tsomon_runtime_unit_leave(unit_);
    }
  }
  ScopedUnit(const ScopedUnit&) = delete;
  ScopedUnit& operator=(const ScopedUnit&) = delete;

 private:
  const unsigned unit_;
};
}  // namespace tsomon

#define TSOMON_JOIN_(a, b) a##b
#define TSOMON_JOIN(a, b) TSOMON_JOIN_(a, b)
#define TSOMON_UNIT(name) const ::tsomon::ScopedUnit TSOMON_JOIN(tsomon_unit_, __LINE__)(name)
#endif

#endif /* TSOMON_H */
