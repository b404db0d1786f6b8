/* Marks units of work for tsomon, from C and C++.
 *
 * A unit is a piece of one thread's work that is meant to be atomic: tsomon decides whether the
 * recorded units can be put in an order that explains what every thread saw. Units may nest.
 *
 *   C++   { TSOMON_UNIT("take"); ... }          ends with the scope, also by an exception
 *         TSOMON_UNIT("take;head,tail");         declared on the atomic sets head and tail
 *   C     tsomon_unit_begin("take"); ... tsomon_unit_end();
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

static __inline__ void tsomon_atomic_set(const char* name, const volatile void* address,
                                         unsigned long size) {
  if (tsomon_runtime_atomic_set) {
    tsomon_runtime_atomic_set(name, address, size);
  }
}

#define TSOMON_ATOMIC_SET(name, address, size) tsomon_atomic_set(name, address, size)

#ifdef __cplusplus
} /* extern "C" */

namespace tsomon {
class [[maybe_unused]] ScopedUnit {
 public:
  explicit ScopedUnit(const char* name) { tsomon_unit_begin(name); }
  ~ScopedUnit() { tsomon_unit_end(); }
  ScopedUnit(const ScopedUnit&) = delete;
  ScopedUnit& operator=(const ScopedUnit&) = delete;
};
}  // namespace tsomon

#define TSOMON_JOIN_(a, b) a##b
#define TSOMON_JOIN(a, b) TSOMON_JOIN_(a, b)
#define TSOMON_UNIT(name) const ::tsomon::ScopedUnit TSOMON_JOIN(tsomon_unit_, __LINE__)(name)
#endif

#endif /* TSOMON_H */
