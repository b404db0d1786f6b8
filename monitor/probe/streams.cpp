// Functions of streams that access no memory of the program's (streams.h).
#include "monitor/probe/streams.h"

#include "monitor/probe/real.h"

using namespace tsomon::probe;

namespace {

FILE* opened(FILE* stream, uint64_t pc) {
  if (stream != nullptr && local.thread != nullptr) {
    const int error = errno;
    descriptor_opens(descriptor_of(stream), pc);
    errno = error;
  }
  return stream;
}

template <typename Call>
int writes(FILE* stream, uint64_t pc, Call call) {
  if (local.thread != nullptr) {
    sends_through(descriptor_of(stream), pc);
  }
  return call();
}

// Before it may be closed: whoever uses the stream then has none.
template <typename Call>
int closes(FILE* stream, uint64_t pc, Call call) {
  if (local.thread != nullptr) {
    descriptor_ends(descriptor_of(stream), pc);
  }
  return call();
}

template <typename Call>
int reads(FILE* stream, uint64_t pc, Call call) {
  const int descriptor = local.thread == nullptr ? -1 : descriptor_of(stream);
  return descriptor < 0 ? call() : filling(descriptor, 0, pc, call, [](Transfer&, int) {});
}

}  // namespace

#define TSOMON_STREAM(RESULT, NAME, PARAMETERS, HOW) \
  TSOMON_REAL(NAME)                                  \
  TSOMON_HOOK RESULT NAME PARAMETERS { return HOW; } \
  TSOMON_INTERCEPTOR(NAME)

TSOMON_STREAM(FILE*, fopen, (const char* path, const char* mode),
              opened(real_fopen(path, mode), TSOMON_PC()))
TSOMON_STREAM(FILE*, fopen64, (const char* path, const char* mode),
              opened(real_fopen64(path, mode), TSOMON_PC()))
TSOMON_STREAM(FILE*, tmpfile, (), opened(real_tmpfile(), TSOMON_PC()))
TSOMON_STREAM(FILE*, tmpfile64, (), opened(real_tmpfile64(), TSOMON_PC()))
TSOMON_STREAM(FILE*, popen, (const char* command, const char* type),
              opened(real_popen(command, type), TSOMON_PC()))
TSOMON_STREAM(int, fclose, (FILE * stream),
              closes(stream, TSOMON_PC(), [=] { return real_fclose(stream); }))
TSOMON_STREAM(int, pclose, (FILE * stream),
              closes(stream, TSOMON_PC(), [=] { return real_pclose(stream); }))
TSOMON_STREAM(int, fflush, (FILE * stream),
              writes(stream, TSOMON_PC(), [=] { return real_fflush(stream); }))
TSOMON_STREAM(int, fputc, (int one, FILE* stream),
              writes(stream, TSOMON_PC(), [=] { return real_fputc(one, stream); }))
TSOMON_STREAM(int, putc, (int one, FILE* stream),
              writes(stream, TSOMON_PC(), [=] { return real_putc(one, stream); }))
TSOMON_STREAM(int, putchar, (int one),
              writes(stdout, TSOMON_PC(), [=] { return real_putchar(one); }))
TSOMON_STREAM(int, fgetc, (FILE * stream),
              reads(stream, TSOMON_PC(), [=] { return real_fgetc(stream); }))
TSOMON_STREAM(int, getc, (FILE * stream),
              reads(stream, TSOMON_PC(), [=] { return real_getc(stream); }))
TSOMON_STREAM(int, getchar, (), reads(stdin, TSOMON_PC(), [] { return real_getchar(); }))

// The program's own one may say anything.
TSOMON_HOOK int __interceptor_fileno(FILE* stream) { return fileno_unlocked(stream); }
