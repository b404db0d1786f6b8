// The file that a capture is appended to, in the process of somebody else's program.
//
// Purpose     The program may close descriptors that it did not open, and put files of its own in
//             their place. Nothing of the capture may get into those, and little of it be lost.
// Own table   keep_apart() gives the calling thread a descriptor table of its own with the capture
//             alone in it: closefrom, close_range, dup2 and loops over close do not reach it, and
//             the program gets the descriptor numbers that it gets without a recorder. Another
//             thread that appends opens the file for the time of that.
// Shared      Where the kernel refuses that (close_range(2) since 5.11, seccomp): a high
//             descriptor, closed on exec. Before every write its device and inode are compared with
//             those of the file that was opened. If they differ, the file is opened again by its
//             path; if that is not the same file either, writing ends with EBADF. Misses: a
//             program that closes the descriptor and opens a file between check and write.
// Old files   What is not empty and not a capture is not overwritten.
// Errors      errno values, 0 for success, or kNotACapture.
// Thread-safety: append() from any thread and from signal handlers: no lock, no allocation.
#pragma once

#include <atomic>
#include <cstddef>

#include <sys/types.h>
#include <sys/uio.h>

namespace tsomon::capture {

inline constexpr int kNotACapture = -1;

class OutputFile {
 public:
  OutputFile() = default;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile() { close(); }

  // Creates or empties the file. `must_be_new`: EEXIST when there is one.
  int open(const char* path, bool must_be_new);
  // A regular file without contents, in the calling thread's own table: that thread alone will write, and closes it.
  int take(int descriptor);
  // By the thread that will write, once. False: the table stays shared.
  bool keep_apart();
  // By a thread of the program, when keep_apart() has succeeded: the descriptor there is closed.
  void leave_program();
  // Back to the program's table, while the thread that keeps it apart does not write: open_for_program() first, what it
  // gave to come_back() once that thread has ended. -1: it cannot be opened.
  int open_for_program();
  void come_back(int fd);
  // In a child of fork: closes what the child inherited of the parent's.
  void close_inherited();
  // Twice is fine.
  void close();
  bool is_open() const { return fd_.load(std::memory_order_relaxed) >= 0; }

  // All of it, after what is there. `parts` are changed. Adds to `written`.
  int append(iovec* parts, int count, std::atomic<uint64_t>* written);

 private:
  static constexpr size_t kMaxPath = 4096;
  int put_high(int fd);
  void keep_path(const char* path);
  bool is_it(int fd) const;
  int open_again() const;
  int open_as_it(const char* path) const;

  std::atomic<int> fd_{-1};
  std::atomic<pid_t> owner_{0};  // whose table it is in; 0: the program's
  std::atomic<bool> gone_{false};
  dev_t device_ = 0;
  ino_t inode_ = 0;
  char path_[kMaxPath] = {};  // absolute; empty: too long to be kept
};

}  // namespace tsomon::capture
