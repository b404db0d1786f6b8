// The module map: which file's code lies where, for symbolisation after the run.
//
// Loading     The writer thread looks in each of its rounds, which takes the loader's lock. The
//             program holds that lock while dl_iterate_phdr calls its functions, whose hooks may
//             wait for the writer thread: then it does not look, and such calls wait while it does.
// Unloading   dlclose is interposed: what is there is noted before.
// Misses      What is loaded and unloaded otherwise than by dlclose between two rounds. Where
//             modules lay at the same addresses one after the other, all code there is the last's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tsomon::probe {

// Notes the modules that are loaded. Not for signal handlers.
void note_modules();

// Payload of a kModules chunk for what was noted since byte `*from` of it all, or nullptr. Its
// memory stays.
const char* noted_modules(size_t* from, size_t* size);

// In a child of fork. What was noted stays.
void reset_modules_after_fork();

}  // namespace tsomon::probe
