// What the program said before recording began and recordings begin with: bytes whose races are benign
// (annotations.cpp), semaphores and their counts.
//
// Bounds      256 ranges, 1,024 semaphores; what comes after them is forgotten: more races are
//             reported, and the count of a semaphore is not known.
// Thread-safety: only while nothing is recorded, which is while the process has one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include <semaphore.h>

namespace tsomon::probe {

void keep_benign(uint64_t address, size_t size);
void keep_semaphore(sem_t* semaphore);
void forget_semaphore(sem_t* semaphore);
// When recording begins.
void put_kept();
void put_kept_ranges();  // which stay kept

}  // namespace tsomon::probe
