// OpenMP: a correct program, and with an argument one whose threads add up without a reduction.
#include <omp.h>
#include <stdio.h>

static int table[256], histogram[16], order[32], at, sum;
static omp_lock_t lock;
static char name[4];

static int fibonacci(int n) {
  int a, b;
  if (n < 2) return n;
#pragma omp task shared(a) firstprivate(n)
  a = fibonacci(n - 1);
#pragma omp task shared(b)
  b = fibonacci(n - 2);
#pragma omp taskwait
  return a + b;
}

static void race(void) {
#pragma omp parallel for
  for (int i = 0; i < 64; ++i) sum += i;
}

static void share(void) {
  int factor = 0;
#pragma omp parallel
  {
#pragma omp single
    factor = fibonacci(6);
#pragma omp for schedule(dynamic, 8)
    for (int i = 0; i < 256; ++i) table[i] = i * factor;
#pragma omp for schedule(guided) nowait
    for (int i = 0; i < 256; ++i) {
      omp_set_lock(&lock);
      histogram[table[255 - i] % 16]++;
      omp_unset_lock(&lock);
    }
#pragma omp barrier
#pragma omp for ordered schedule(static, 1)
    for (int i = 0; i < 32; ++i) {
#pragma omp ordered
      order[at++] = histogram[i % 16];
    }
#pragma omp sections
    {
#pragma omp section
      name[0] = order[0] ? 'a' : 'b';
#pragma omp section
      name[1] = 'c';
    }
#pragma omp master
    name[2] = name[0] + name[1];
  }
}

static double add(void) {
  long total = 0;
#pragma omp parallel for reduction(+ : total) schedule(runtime)
  for (int i = 0; i < 256; ++i) total += table[i];
  double half = 0;
#pragma omp parallel for
  for (int i = 0; i < 64; ++i) {
#pragma omp atomic
    half += 0.5;
  }
#pragma omp parallel
  {
    int mine;
#pragma omp single copyprivate(mine)
    mine = (int)half;
#pragma omp critical(named)
    table[0] += mine;
#pragma omp critical
    sum += mine;
  }
  return half + total;
}

int main(int count, char** arguments) {
  (void)arguments;
  omp_set_num_threads(2);
  omp_init_lock(&lock);
  if (count > 1) {
    race();
    return 0;
  }
  share();
  const double total = add();
  return total == 32 + 8 * 255 * 128 && at == 32 && sum == 64 ? 0 : 1;
}
