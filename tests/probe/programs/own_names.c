/* Functions of its own with names of the C library's: they are the program's. */
#include <pthread.h>

int send(int value) { return value + 1; }
int dup(int value) { return 2 * value; }
long recv(long value) { return value - 1; }
int flock(void) { return 3; }
double accept(double value) { return value / 2; }
unsigned sem_post(unsigned count) { return count + 1; }
unsigned epoll_wait(void) { return 4; }
int open(void) { return 6; }
int read(int a, int b) { return a * b; }
int close(int value) { return value + 9; }
int usleep_calls;
int usleep(unsigned time) { return usleep_calls += (int)time; }

static int sum;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* add(void* nothing) {
  pthread_mutex_lock(&mutex);
  sum += send(1) + dup(1);
  pthread_mutex_unlock(&mutex);
  return nothing;
}

int main(void) {
  pthread_t other;
  if (pthread_create(&other, 0, add, 0) != 0) {
    return 1;
  }
  add(0);
  pthread_join(other, 0);
  return !(sum == 8 && recv(1) == 0 && flock() == 3 && accept(4.0) == 2.0 && sem_post(1) == 2 &&
           epoll_wait() == 4 && open() == 6 && read(2, 3) == 6 && close(1) == 10 && usleep(5) == 5 && usleep_calls == 5);
}
