/* Runs the cases in a thread, each as a unit, and says what they have to access. */
#define CASE(NAME, EXPECTED, DOES) \
  __attribute__((noinline)) static void run_##NAME(void) { DOES; }
COMMON_CASES
CPP_CASES
#undef CASE

static void* run(void* nothing) {
#define CASE(NAME, EXPECTED, DOES) \
  tsomon_unit_begin(#NAME);        \
  run_##NAME();                    \
  tsomon_unit_end();
  COMMON_CASES
  CPP_CASES
#undef CASE
  return nothing;
}

int main(void) {
  arena.ints[0] = 5;
  pthread_t thread;
  pthread_create(&thread, NULL, run, NULL);
  pthread_join(thread, NULL);
  printf("arena %zu %zu\n", (size_t)&arena, sizeof arena);
#define CASE(NAME, EXPECTED, DOES) \
  printf(#NAME);                   \
  EXPECTED printf("\n");
  COMMON_CASES
  CPP_CASES
  return 0;
}
