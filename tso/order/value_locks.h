// Locks that a program has made of atomic operations, as the recorded values show them.
//
// Purpose     A word that is free or held, which threads take with a locked operation and give back
//             themselves, excludes like a lock of the library, in whatever order its accesses are.
// Which       Free are the values 0, or 1, or those with a lowest bit that is not set: the first of
//             the three with which all of this holds. Of every store and locked operation on the word
//             the value that it wrote is known, and of locked ones what it read. What makes a free
//             word held is a locked operation, and then its thread holds the word. Only
//             that thread writes a free value until then, which ends the section, or a plain store
//             another held one. Others' locked operations leave free what is free, and held what
//             is held. A store of a free value before all other threads' accesses is the
//             word's making.
// Soundness   Take the stores in the order in which they take effect, those of one thread being
//             in program order. By induction the word is held iff one thread holds it, and no
//             two do: what takes it has read a free value, so nobody held it.
// Slices      What is known of the input before (Trace::lock_words) says that a thread gives back in a
//             slice what it took before. What it has not given back where the trace ends excludes all
//             the same: everything of its thread comes before it is given back.
// Misses      Semaphores of more than one, locks that another thread gives back, ticket locks and
//             queues (their values differ, which says enough), words that are accessed with several
//             sizes, sections that are under way when a slice begins.
// Complexity  O(stores to words with locked operations), three times.
// Thread-safety: a pure function.
#pragma once

#include <vector>

#include "tso/order/values.h"

namespace tsomon {

// From what took the word to what gave it back, or to the last access of the thread.
struct ValueSection {
  ThreadId thread = 0;
  LocationId word = 0;
  uint32_t acquisition = 0;
  uint32_t release = 0;
  bool given_back = true;
};

// In program order for each thread and word.
std::vector<ValueSection> find_value_sections(const Relation& relation, const AccessIndex& accesses,
                                              const RecordedValues& values);

}  // namespace tsomon
