// Two threads that do everything under a lock, and rest a little in between:
// plain_locks inside|around|waiting|shared
//
// Units are the functions guarded_*. They take the lock themselves (inside), are called with it
// (around), are called by threads that take turns through a condition (waiting), or read and write
// under a lock of readers and writers that their callers take (shared). Ends when it is killed.

#include <string>
#include <thread>

#include <pthread.h>
#include <time.h>

volatile long left = 0;
volatile long right = 0;
volatile long turn = 0;
volatile long sum = 0;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
pthread_rwlock_t shared_lock = PTHREAD_RWLOCK_INITIALIZER;

static void rest() {
  const timespec time{0, 50'000};
  nanosleep(&time, nullptr);
}

__attribute__((noinline)) void guarded_move() {
  left = left - 1;
  right = right + 1;
}

__attribute__((noinline)) long guarded_sum() { return left + right; }

__attribute__((noinline)) void guarded_move_inside() {
  pthread_mutex_lock(&lock);
  left = left - 1;
  right = right + 1;
  pthread_mutex_unlock(&lock);
}

static void inside(long /*thread*/) { guarded_move_inside(); }

static void around(long /*thread*/) {
  pthread_mutex_lock(&lock);
  guarded_move();
  pthread_mutex_unlock(&lock);
}

static void waiting(long thread) {
  pthread_mutex_lock(&lock);
  while (turn != thread) {
    pthread_cond_wait(&changed, &lock);
  }
  guarded_move();
  turn = 1 - thread;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

static void shared(long thread) {
  if (thread == 0) {
    pthread_rwlock_wrlock(&shared_lock);
    guarded_move();
  } else {
    pthread_rwlock_rdlock(&shared_lock);
    sum = guarded_sum();
  }
  pthread_rwlock_unlock(&shared_lock);
}

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  void (*const work)(long) = mode == "around"    ? around
                             : mode == "waiting" ? waiting
                             : mode == "shared"  ? shared
                                                 : inside;
  const auto repeat = [&](long thread) {
    for (;;) {
      work(thread);
      rest();
    }
  };
  std::thread other(repeat, 1);
  repeat(0);
}
