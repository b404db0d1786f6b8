// System calls by number, for code that lies in somebody's program.
//
// Purpose     A program may have a function of its own called open or close. The linker gives it to
//             all that is linked into the program, so what the runtime needs must not go by name.
// Errors      As the C library's: -1, and errno.
// Thread-safety: that of the calls.
#pragma once

#include <cerrno>
#include <cstddef>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>

namespace tsomon::kernel {

inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0) {
  long result = number;
  register long fourth __asm__("r10") = d;
  register long fifth __asm__("r8") = e;
  register long sixth __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                   : "rcx", "r11", "memory");
  if (result < 0 && result > -4096) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return result;
}

inline int open(const char* path, int flags, mode_t mode = 0) {
  return static_cast<int>(call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), flags, mode));
}
inline int close(int file) { return static_cast<int>(call(SYS_close, file)); }
inline int dup2(int file, int number) { return static_cast<int>(call(SYS_dup2, file, number)); }
inline ssize_t read(int file, void* to, size_t size) {
  return call(SYS_read, file, reinterpret_cast<long>(to), static_cast<long>(size));
}
inline ssize_t pread(int file, void* to, size_t size, off_t at) {
  return call(SYS_pread64, file, reinterpret_cast<long>(to), static_cast<long>(size), at);
}
inline int stat(const char* path, struct stat* status) {
  return static_cast<int>(
      call(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(path), reinterpret_cast<long>(status)));
}
inline int fstat(int file, struct stat* status) {
  return static_cast<int>(call(SYS_newfstatat, file, reinterpret_cast<long>(""),
                               reinterpret_cast<long>(status), AT_EMPTY_PATH));
}
// Anywhere, from the beginning of the file. MAP_FAILED: there is none.
inline void* mmap(size_t size, int protection, int flags, int file) {
  return reinterpret_cast<void*>(
      call(SYS_mmap, 0, static_cast<long>(size), protection, flags, file, 0));
}
inline int munmap(void* begin, size_t size) {
  return static_cast<int>(call(SYS_munmap, reinterpret_cast<long>(begin), static_cast<long>(size)));
}

}  // namespace tsomon::kernel
