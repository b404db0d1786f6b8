/* Accesses that a compiler does without a hook of -fsanitize=thread, each in a unit of its own. The program says what each has
 * to read and write of the arena: "NAME r OFFSET SIZE"; hidden_test.cpp compares with the recording. C and C++. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <immintrin.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/time.h>
#include <time.h>
#include <tsomon.h>
#include <wchar.h>

struct Five {
  char c[5];
};
struct Wide {
  long a[3];
};
struct Large {
  char c[20000];
};
struct Bits {
  unsigned a : 3, b : 9, c : 20;
};

struct Arena {
  _Alignas(64) char text[64];
  char other[64];
  long words[16];
  int ints[64];
  struct Five five, fifth;
  struct Wide wide, wider;
  struct Bits bits;
  struct Large large, larger;
  char* place;
  wchar_t wides[16], others[16];
  int whole;
  double fraction;
  struct timeval time;
  struct tm calendar;
  time_t seconds;
};
struct Arena arena;
volatile size_t three = 3, sixteen = 16; /* the compiler does not know them */

struct Wide make_wide(long i) {
  struct Wide wide = {{i, i + 1, i + 2}};
  return wide;
}
struct Five make_five(char c) {
  struct Five five = {{c, c, c, c, c}};
  return five;
}
long sum_wide(struct Wide wide) { return wide.a[0] + wide.a[1] + wide.a[2]; }
int sum_five(struct Five five) { return five.c[0] + five.c[4]; }
__attribute__((weak, noinline)) struct Wide get_wide(long i) { return make_wide(i); }
__attribute__((weak, noinline)) struct Five get_five(char c) { return make_five(c); }
__attribute__((weak, noinline)) long take_wide(struct Wide wide) { return sum_wide(wide); }
__attribute__((weak, noinline)) int take_five(struct Five five) { return sum_five(five); }
__attribute__((weak, noinline)) int print_to(char* to, size_t room, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int size = vsnprintf(to, room, format, arguments);
  va_end(arguments);
  return size;
}
static int by_value(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

volatile long sink;
char* volatile copied;

/* NAME, what it reads and writes: pairs of place and size, what it does. */
#define AT(PLACE) (size_t)((char*)(PLACE) - (char*)&arena)
#define R(PLACE, SIZE) printf(" r %zu %zu", AT(PLACE), (size_t)(SIZE));
#define W(PLACE, SIZE) printf(" w %zu %zu", AT(PLACE), (size_t)(SIZE));
#define COMMON_CASES                                                                             \
  CASE(memset_3, W(arena.text, 3), memset(arena.text, 0, 3))                                     \
  CASE(memset_8, W(arena.text, 8), memset(arena.text, 0, 8))                                     \
  CASE(memset_16, W(arena.text, 16), memset(arena.text, 1, 16))                                  \
  CASE(memset_128, W(arena.words, 128), memset(arena.words, 0, sizeof arena.words))              \
  CASE(memset_unknown, W(arena.text, 16), memset(arena.text, 0, sixteen))                        \
  CASE(bzero_8, W(arena.text, 8), __builtin_bzero(arena.text, 8))                                \
  CASE(memcpy_5, R(arena.other, 5) W(arena.text, 5), memcpy(arena.text, arena.other, 5))         \
  CASE(memcpy_13, R(arena.other, 13) W(arena.text, 13), memcpy(arena.text, arena.other, 13))     \
  CASE(memmove_12, R(arena.other, 12) W(arena.text, 12), memmove(arena.text, arena.other, 12))   \
  CASE(memmove_overlap, R(arena.text, 12) W(arena.text + 3, 12),                                 \
       memmove(arena.text + 3, arena.text, 12))                                                  \
  CASE(mempcpy_7, R(arena.other, 7) W(arena.text, 7),                                            \
       sink = (char*)mempcpy(arena.text, arena.other, 7) - arena.text)                           \
  CASE(bcopy_9, R(arena.other, 9) W(arena.text, 9), bcopy(arena.other, arena.text, 9))           \
  CASE(assign_5, R(&arena.fifth, 5) W(&arena.five, 5), arena.five = arena.fifth)                 \
  CASE(assign_24, R(&arena.wider, 24) W(&arena.wide, 24), arena.wide = arena.wider)              \
  CASE(assign_large, R(&arena.larger, 20000) W(&arena.large, 20000), arena.large = arena.larger) \
  CASE(clear_large, W(&arena.large, 20000), arena.large = (struct Large){{0}})                   \
  CASE(clear_24, W(&arena.wide, 24), arena.wide = (struct Wide){{0}})                            \
  CASE(returned_24, W(&arena.wide, 24), arena.wide = get_wide(3))                                \
  CASE(returned_5, W(&arena.five, 5), arena.five = get_five(3))                                  \
  CASE(argument_24, R(&arena.wide, 24), sink = take_wide(arena.wide))                            \
  CASE(argument_5, R(&arena.five, 5), sink = take_five(arena.five))                              \
  CASE(bit_field, R(&arena.bits, 4) W(&arena.bits, 4), arena.bits.b = (unsigned)three)           \
  CASE(loop_zero, W(arena.text, 64), for (int i = 0; i < 64; ++i) arena.text[i] = 0)             \
  CASE(loop_copy, R(arena.other, 64) W(arena.text, 64),                                          \
       for (int i = 0; i < 64; ++i) arena.text[i] = arena.other[i])                              \
  CASE(loop_add, R(arena.ints, 256) W(arena.ints, 256),                                          \
       for (int i = 0; i < 64; ++i) arena.ints[i] += 3)                                          \
  CASE(add_one, R(&arena.whole, 4) W(&arena.whole, 4), ++arena.whole)                            \
  CASE(strcpy_text, W(arena.text, 8), strcpy(arena.text, "abcdefg"))                             \
  CASE(strcpy_other, R(arena.text, 8) W(arena.other, 8), strcpy(arena.other, arena.text))        \
  CASE(strncpy_text, W(arena.text, 8), strncpy(arena.text, "abc", 8))                            \
  CASE(stpcpy_text, W(arena.text, 8), stpcpy(arena.text, "abcdefg"))                             \
  CASE(strcat_text, R(arena.text, 8) W(arena.text + 7, 3), strcat(arena.text, "hi"))             \
  CASE(strlen_text, R(arena.text, 10), sink = (long)strlen(arena.text))                          \
  CASE(strnlen_text, R(arena.text, 3), sink = (long)strnlen(arena.text, three))                  \
  CASE(strcmp_text, R(arena.text, 2), sink = strcmp(arena.text, "az"))                           \
  CASE(strcmp_equal, R(arena.text, 4), sink = strcmp(arena.text, "abc") == 0)                    \
  CASE(strncmp_text, R(arena.text, 3), sink = strncmp(arena.text, "abcz", 3))                    \
  CASE(strchr_text, R(arena.text, 3), sink = strchr(arena.text, 'c') != NULL)                    \
  CASE(strrchr_text, R(arena.text, 10), sink = strrchr(arena.text, 'c') != NULL)                 \
  CASE(strstr_text, R(arena.text, 10), sink = strstr(arena.text, "cd") != NULL)                  \
  CASE(memchr_text, R(arena.text, 4), sink = memchr(arena.text, 'd', 16) != NULL)                \
  CASE(memcmp_16, R(arena.text, 16) R(arena.other, 16),                                          \
       sink = memcmp(arena.text, arena.other, 16))                                               \
  CASE(memcmp_equal, R(arena.text, 8) R(arena.other, 8),                                         \
       sink = memcmp(arena.text, arena.other, 8) == 0)                                           \
  CASE(sprintf_text, W(arena.text, 3), sprintf(arena.text, "hi"))                                \
  CASE(sprintf_number, R(&arena.whole, 4) W(arena.text, 4),                                      \
       sprintf(arena.text, "=%d.", arena.whole))                                                 \
  CASE(snprintf_string, R(arena.text, 4) W(arena.other, 7),                                      \
       snprintf(arena.other, 64, "<%s> %s", arena.text, ""))                                     \
  CASE(vsnprintf_string, R(arena.text, 2) W(arena.other, 4),                                     \
       print_to(arena.other, 4, "%.2s and more", arena.text))                                    \
  CASE(sscanf_number, R(arena.text, 4) W(&arena.whole, 4),                                       \
       sscanf(arena.text, "=%d", &arena.whole))                                                  \
  CASE(strtol_number, R(arena.text + 1, 2) W(&arena.place, 8),                                   \
       sink = strtol(arena.text + 1, &arena.place, 10))                                          \
  CASE(atoi_number, R(arena.text + 1, 2), sink = atoi(arena.text + 1))                           \
  CASE(strdup_text, R(arena.text, 4), copied = strdup(arena.text))                               \
  CASE(strtok_text, R(arena.text, 3) W(arena.text + 2, 1) W(&arena.place, 8),                    \
       sink = strtok_r(arena.text, ".", &arena.place) != NULL)                                   \
  CASE(qsort_ints, R(arena.ints, 12) W(arena.ints, 12),                                          \
       qsort(arena.ints, three, sizeof(int), by_value))                                          \
  CASE(gettimeofday_time, W(&arena.time, 16), gettimeofday(&arena.time, NULL))                   \
  CASE(time_seconds, W(&arena.seconds, 8), time(&arena.seconds))                                 \
  CASE(localtime_calendar, R(&arena.seconds, 8) W(&arena.calendar, sizeof(struct tm)),           \
       localtime_r(&arena.seconds, &arena.calendar))                                             \
  CASE(modf_fraction, W(&arena.fraction, 8),                                                     \
       sink = (long)modf((double)three + 0.5, &arena.fraction))                                  \
  CASE(frexp_whole, W(&arena.whole, 4), sink = (long)frexp((double)three, &arena.whole))         \
  CASE(wmemset_wides, W(arena.wides, 32), wmemset(arena.wides, L'x', 8))                         \
  CASE(wmemcpy_wides, R(arena.wides, 20) W(arena.others, 20),                                    \
       wmemcpy(arena.others, arena.wides, 5))                                                    \
  CASE(wcslen_wides, R(arena.wides, 36), sink = (long)wcslen(arena.wides))                       \
  CASE(store_vector, W(arena.text, 16),                                                          \
       _mm_storeu_si128((__m128i*)arena.text, _mm_setzero_si128()))                              \
  CASE(load_vector, R(arena.text, 16),                                                           \
       sink = _mm_movemask_epi8(_mm_loadu_si128((__m128i*)arena.text)))                          \
  CASE(stream_vector, W(arena.text, 16),                                                         \
       _mm_stream_si128((__m128i*)arena.text, _mm_setzero_si128()))                              \
  CASE(stream_word, W(arena.text, 8), _mm_stream_si64((long long*)arena.text, 5))                \
  CASE(stream_int, W(arena.text, 4), _mm_stream_si32((int*)arena.text, 5))                       \
  CASE(half_vector, W(arena.text, 8), _mm_storel_pd((double*)arena.text, _mm_setzero_pd()))      \
  CASE(load_unaligned, R(arena.text + 3, 8), sink = *(long*)(arena.text + 3))                    \
  CASE(read_thrice, R(&arena.whole, 4), sink = *(volatile int*)&arena.whole)
