/* Calls functions of own_strings_more.c, which have names of functions of the C library. */
#include <pthread.h>

int printf(const char *format, ...);
int getline(char line[], int limit);
int strtok(int a, int b, int c, int d);
char room[8];
volatile int number;

static void *run(void *nothing) {
  number = getline(room, 8) + strtok(1, 2, 3, 4);
  return nothing;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, run, 0);
  pthread_join(thread, 0);
  printf("room %lu\n", (unsigned long)room);
  return number != 18;
}
