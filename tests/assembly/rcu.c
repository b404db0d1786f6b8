/* Read-copy-update by the inline parts of liburcu, whose atomics are asm statements: rcu CASE [TIMES]. RCU_MB, RCU_MEMB
   or RCU_QSBR chooses the flavour. The library itself has no hooks: `grace` waits as its synchronize_rcu() does. */
#define _LGPL_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef RCU_QSBR
#include <urcu-qsbr.h>
#else
#include <urcu.h>
#endif
#include <urcu/lfstack.h>
#include <urcu/wfcqueue.h>

static int times = 1;

static struct node {
  int dead;
} nodes[2];
static struct node* current = &nodes[0];
static unsigned long* reader; /* its counter, when it has begun */

static void run(void* (*first)(void*), void* (*second)(void*)) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, first, (void*)0);
  pthread_create(&threads[1], NULL, second, (void*)1);
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
}

static void begin_reading(void) {
#ifdef RCU_QSBR
  URCU_TLS(urcu_qsbr_reader).registered = 1;
  CMM_STORE_SHARED(reader, &URCU_TLS(urcu_qsbr_reader).ctr);
  cmm_smp_mb();
  rcu_thread_online();
#else
#ifdef RCU_MB
  URCU_TLS(urcu_mb_reader).registered = 1;
  CMM_STORE_SHARED(reader, &URCU_TLS(urcu_mb_reader).ctr);
#else
  URCU_TLS(urcu_memb_reader).registered = 1;
  CMM_STORE_SHARED(reader, &URCU_TLS(urcu_memb_reader).ctr);
#endif
  cmm_smp_mb();
#endif
}

static void end_reading(void) {
#ifdef RCU_QSBR
  rcu_thread_offline();
#endif
}

static void wait_for_reader(void) {
  unsigned long* counter = CMM_LOAD_SHARED(reader);
#ifdef RCU_QSBR
  while (counter != NULL && urcu_qsbr_reader_state(counter) == URCU_READER_ACTIVE_OLD) {
#elif defined(RCU_MB)
  while (counter != NULL && urcu_common_reader_state(&urcu_mb_gp, counter) == URCU_READER_ACTIVE_OLD) {
#else
  while (counter != NULL && urcu_common_reader_state(&urcu_memb_gp, counter) == URCU_READER_ACTIVE_OLD) {
#endif
    caa_cpu_relax();
  }
}

static void grace(void) {
  cmm_smp_mb();
#ifdef RCU_QSBR
  CMM_STORE_SHARED(urcu_qsbr_gp.ctr, urcu_qsbr_gp.ctr + URCU_QSBR_GP_CTR);
#else
#ifdef RCU_MB
  struct urcu_gp* gp = &urcu_mb_gp;
#else
  struct urcu_gp* gp = &urcu_memb_gp;
#endif
  wait_for_reader();
  cmm_smp_mb();
  CMM_STORE_SHARED(gp->ctr, gp->ctr ^ URCU_GP_CTR_PHASE);
#endif
  cmm_smp_mb();
  wait_for_reader();
  cmm_smp_mb();
}

static void* read_nodes(void* unused) {
  begin_reading();
  for (int i = 0; i < times; ++i) {
    rcu_read_lock();
    struct node* node = rcu_dereference(current);
    assert(!CMM_LOAD_SHARED(node->dead));
    rcu_read_unlock();
#ifdef RCU_QSBR
    rcu_quiescent_state();
#endif
  }
  end_reading();
  return unused;
}
static void* replace_nodes(void* unused) {
  for (int i = 0; i < times; ++i) {
    struct node* next = &nodes[(i + 1) & 1];
    CMM_STORE_SHARED(next->dead, 0);
    struct node* old = rcu_xchg_pointer(&current, next);
    grace();
    CMM_STORE_SHARED(old->dead, 1);
  }
  return unused;
}
static void* replace_at_once(void* unused) {
  struct node* old = rcu_xchg_pointer(&current, &nodes[1]);
  CMM_STORE_SHARED(old->dead, 1);
  return unused;
}
static void replaced(void) { run(read_nodes, replace_nodes); }
static void no_grace(void) { run(read_nodes, replace_at_once); }

static int added;
static void* add(void* unused) {
  for (int i = 0; i < times; ++i) {
    uatomic_inc(&added);
    uatomic_add(&added, 2);
    uatomic_add_return(&added, 3);
    uatomic_or(&added, 0);
    uatomic_and(&added, -1);
    while (1) {
      int old = uatomic_read(&added);
      if (uatomic_cmpxchg(&added, old, old + 4) == old) {
        break;
      }
    }
  }
  return unused;
}
static void* add_once(void* unused) {
  uatomic_inc(&added);
  uatomic_add_return(&added, 9);
  return unused;
}
static void counted(void) {
  run(add, add_once);
  assert(uatomic_read(&added) == 10 * (times + 1));
}

static struct cds_lfs_stack stack;
static struct cds_lfs_node stacked[2];
static void* push(void* which) {
  cds_lfs_push(&stack, &stacked[(long)which]);
  return NULL;
}
static void pushed(void) {
  cds_lfs_init(&stack);
  run(push, push);
  assert(__cds_lfs_pop(&stack) != NULL && __cds_lfs_pop(&stack) != NULL && __cds_lfs_pop(&stack) == NULL);
}

static struct cds_wfcq_head queue_head;
static struct cds_wfcq_tail queue_tail;
static struct cds_wfcq_node queued[2];
static void* enqueue(void* which) {
  cds_wfcq_enqueue(&queue_head, &queue_tail, &queued[(long)which]);
  return NULL;
}
static void* dequeue(void* unused) {
  for (int taken = 0; taken < 1;) {
    struct cds_wfcq_node* node = __cds_wfcq_dequeue_nonblocking(&queue_head, &queue_tail);
    taken += node != NULL && node != CDS_WFCQ_WOULDBLOCK;
  }
  return unused;
}
static void enqueued(void) {
  cds_wfcq_init(&queue_head, &queue_tail);
  cds_wfcq_node_init(&queued[0]);
  run(enqueue, dequeue);
  assert(cds_wfcq_empty(&queue_head, &queue_tail));
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*body)(void);
  } cases[] = {{"replaced", replaced}, {"no_grace", no_grace}, {"counted", counted}, {"pushed", pushed},
               {"enqueued", enqueued}};
  times = argc > 2 ? atoi(argv[2]) : 1;
#ifdef RCU_MEMB
  urcu_memb_has_sys_membarrier = 0;
#endif
  for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; ++i) {
    if (strcmp(cases[i].name, argv[1]) == 0) {
      cases[i].body();
      return 0;
    }
  }
  fprintf(stderr, "no such case\n");
  return 2;
}
