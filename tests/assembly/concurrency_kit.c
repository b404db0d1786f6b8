/* Clients of ConcurrencyKit, whose atomics are asm statements: concurrency_kit CASE [TIMES]. Correct: the assertions
   hold in every execution. */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ck_fifo.h>
#include <ck_ring.h>
#include <ck_rwlock.h>
#include <ck_sequence.h>
#include <ck_spinlock.h>
#include <ck_stack.h>

static int times = 1;
static int count;

typedef void* thread_body(void* which);

static void run(thread_body* first, thread_body* second) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, first, (void*)0);
  pthread_create(&threads[1], NULL, second, (void*)1);
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
}

#define LOCK(NAME, VARIABLE, TAKE, GIVE)       \
  VARIABLE;                                    \
  static void* NAME##_body(void* which) {      \
    (void)which;                               \
    for (int i = 0; i < times; ++i) {          \
      TAKE;                                    \
      ++count;                                 \
      GIVE;                                    \
    }                                          \
    return NULL;                               \
  }                                            \
  static void NAME(void) {                     \
    run(NAME##_body, NAME##_body);             \
    assert(count == 2 * times);                \
  }

LOCK(fas, static ck_spinlock_fas_t fas_lock = CK_SPINLOCK_FAS_INITIALIZER, ck_spinlock_fas_lock(&fas_lock),
     ck_spinlock_fas_unlock(&fas_lock))
LOCK(cas, static ck_spinlock_cas_t cas_lock = CK_SPINLOCK_CAS_INITIALIZER, ck_spinlock_cas_lock(&cas_lock),
     ck_spinlock_cas_unlock(&cas_lock))
LOCK(dec, static ck_spinlock_dec_t dec_lock = CK_SPINLOCK_DEC_INITIALIZER, ck_spinlock_dec_lock(&dec_lock),
     ck_spinlock_dec_unlock(&dec_lock))
LOCK(ticket, static ck_spinlock_ticket_t ticket_lock = CK_SPINLOCK_TICKET_INITIALIZER,
     ck_spinlock_ticket_lock(&ticket_lock), ck_spinlock_ticket_unlock(&ticket_lock))
LOCK(mcs, static ck_spinlock_mcs_t mcs_lock = CK_SPINLOCK_MCS_INITIALIZER,
     ck_spinlock_mcs_context_t mine; ck_spinlock_mcs_lock(&mcs_lock, &mine), ck_spinlock_mcs_unlock(&mcs_lock, &mine))
LOCK(rwlock_write, static ck_rwlock_t write_lock = CK_RWLOCK_INITIALIZER, ck_rwlock_write_lock(&write_lock),
     ck_rwlock_write_unlock(&write_lock))

static ck_spinlock_clh_t clh_first;
static ck_spinlock_clh_t* clh_lock;
static ck_spinlock_clh_t clh_own[2];
static void* clh_body(void* which) {
  ck_spinlock_clh_t* mine = &clh_own[(long)which];
  for (int i = 0; i < times; ++i) {
    ck_spinlock_clh_lock(&clh_lock, mine);
    ++count;
    ck_spinlock_clh_unlock(&mine);
  }
  return NULL;
}
static void clh(void) {
  ck_spinlock_clh_init(&clh_lock, &clh_first);
  run(clh_body, clh_body);
  assert(count == 2 * times);
}

static ck_spinlock_anderson_t anderson_lock;
static ck_spinlock_anderson_thread_t anderson_slots[2];
static void* anderson_body(void* which) {
  (void)which;
  for (int i = 0; i < times; ++i) {
    ck_spinlock_anderson_thread_t* slot = NULL;
    ck_spinlock_anderson_lock(&anderson_lock, &slot);
    ++count;
    ck_spinlock_anderson_unlock(&anderson_lock, slot);
  }
  return NULL;
}
static void anderson(void) {
  ck_spinlock_anderson_init(&anderson_lock, anderson_slots, 2);
  run(anderson_body, anderson_body);
  assert(count == 2 * times);
}

/* Without the lock, to see that something is found. */
static void* unlocked_body(void* which) {
  (void)which;
  for (int i = 0; i < times; ++i) {
    ck_pr_store_int(&count, ck_pr_load_int(&count) + 1);
  }
  return NULL;
}
static void unlocked(void) {
  run(unlocked_body, unlocked_body);
  assert(count == 2 * times);
}

/* Store buffering: a store, and a load of the other one. */
static int flags[2];
static int seen[2];
static bool fenced;
static void* buffering_body(void* which) {
  ck_pr_store_int(&flags[(long)which], 1);
  if (fenced) {
    ck_pr_fence_strict_memory();
  }
  seen[(long)which] = ck_pr_load_int(&flags[1 - (long)which]);
  return NULL;
}
static void buffering(void) {
  run(buffering_body, buffering_body);
  assert(seen[0] + seen[1] != 0);
}
static void buffering_fenced(void) {
  fenced = true;
  buffering();
}

static ck_rwlock_t read_lock = CK_RWLOCK_INITIALIZER;
static int pair[2];
static void* rwlock_writer(void* unused) {
  for (int i = 0; i < times; ++i) {
    ck_rwlock_write_lock(&read_lock);
    ++pair[0];
    ++pair[1];
    ck_rwlock_write_unlock(&read_lock);
  }
  return unused;
}
static void* rwlock_reader(void* which) {
  (void)which;
  for (int i = 0; i < times; ++i) {
    ck_rwlock_read_lock(&read_lock);
    assert(pair[0] == pair[1]);
    ck_rwlock_read_unlock(&read_lock);
  }
  return NULL;
}
static void rwlock(void) { run(rwlock_writer, rwlock_reader); }

static ck_sequence_t sequence = CK_SEQUENCE_INITIALIZER;
static void* sequence_writer(void* unused) {
  for (int i = 0; i < times; ++i) {
    ck_sequence_write_begin(&sequence);
    ck_pr_store_int(&pair[0], pair[0] + 1);
    ck_pr_store_int(&pair[1], pair[1] + 1);
    ck_sequence_write_end(&sequence);
  }
  return unused;
}
static void* sequence_reader(void* which) {
  (void)which;
  for (int i = 0; i < times; ++i) {
    unsigned version;
    int a, b;
    do {
      version = ck_sequence_read_begin(&sequence);
      a = ck_pr_load_int(&pair[0]);
      b = ck_pr_load_int(&pair[1]);
    } while (ck_sequence_read_retry(&sequence, version));
    assert(a == b);
  }
  return NULL;
}
static void seqlock(void) { run(sequence_writer, sequence_reader); }

static ck_ring_t ring;
static ck_ring_buffer_t ring_buffer[4];
static int items[2] = {1, 2};
static void* ring_put_one(void* which) {
  for (int i = 0; i < times; ++i) {
    while (!ck_ring_enqueue_spsc(&ring, ring_buffer, &items[i & 1])) {
    }
  }
  return which;
}
static void* ring_take_one(void* which) {
  (void)which;
  for (int i = 0; i < times; ++i) {
    void* item = NULL;
    while (!ck_ring_dequeue_spsc(&ring, ring_buffer, &item)) {
    }
    assert(*(int*)item == 1 + (i & 1));
  }
  return NULL;
}
static void ring_spsc(void) {
  ck_ring_init(&ring, 4);
  run(ring_put_one, ring_take_one);
}
static void* ring_put_any(void* which) {
  for (int i = 0; i < times; ++i) {
    while (!ck_ring_enqueue_mpmc(&ring, ring_buffer, &items[(long)which])) {
      void* item = NULL;
      ck_ring_dequeue_mpmc(&ring, ring_buffer, &item);
    }
  }
  return NULL;
}
static void ring_mpmc(void) {
  ck_ring_init(&ring, 4);
  run(ring_put_any, ring_put_any);
  void* item = NULL;
  int sum = 0;
  while (ck_ring_dequeue_mpmc(&ring, ring_buffer, &item)) {
    sum += *(int*)item;
  }
  assert(times > 1 || sum == 3);
}

static ck_stack_t stack = CK_STACK_INITIALIZER;
static ck_stack_entry_t entries[2];
static void* stack_body(void* which) {
  for (int i = 0; i < times; ++i) {
    ck_stack_push_mpmc(&stack, &entries[(long)which]);
    assert(ck_stack_pop_mpmc(&stack) != NULL);
    if (times > 1) {
      break; /* the other thread may have taken the entry */
    }
  }
  return NULL;
}
static void stack_mpmc(void) {
  run(stack_body, stack_body);
  assert(CK_STACK_ISEMPTY(&stack));
}
static void* stack_push(void* which) {
  ck_stack_push_upmc(&stack, &entries[(long)which]);
  return NULL;
}
static void stack_upmc(void) {
  run(stack_push, stack_push);
  assert(ck_stack_pop_upmc(&stack) != NULL && ck_stack_pop_upmc(&stack) != NULL && CK_STACK_ISEMPTY(&stack));
}

static ck_fifo_spsc_t fifo;
static ck_fifo_spsc_entry_t fifo_entries[2];
static void* fifo_put(void* which) {
  ck_fifo_spsc_enqueue(&fifo, &fifo_entries[1], &items[0]);
  return which;
}
static void* fifo_take(void* which) {
  (void)which;
  int* item = NULL;
  while (!ck_fifo_spsc_dequeue(&fifo, &item)) {
  }
  assert(*item == 1);
  return NULL;
}
static void fifo_spsc(void) {
  ck_fifo_spsc_init(&fifo, &fifo_entries[0]);
  run(fifo_put, fifo_take);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*body)(void);
  } cases[] = {{"fas", fas}, {"cas", cas}, {"dec", dec}, {"ticket", ticket}, {"mcs", mcs}, {"clh", clh},
               {"anderson", anderson}, {"rwlock_write", rwlock_write}, {"rwlock", rwlock}, {"seqlock", seqlock},
               {"ring_spsc", ring_spsc}, {"ring_mpmc", ring_mpmc}, {"stack_mpmc", stack_mpmc},
               {"stack_upmc", stack_upmc}, {"fifo_spsc", fifo_spsc}, {"unlocked", unlocked},
               {"buffering", buffering}, {"buffering_fenced", buffering_fenced}};
  times = argc > 2 ? atoi(argv[2]) : 1;
  for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; ++i) {
    if (strcmp(cases[i].name, argv[1]) == 0) {
      cases[i].body();
      return 0;
    }
  }
  fprintf(stderr, "no such case\n");
  return 2;
}
