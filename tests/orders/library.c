// A library of others, for check_library: built without the wrapper with -DLIBRARY. It makes its locks when they are used first, and ends
// them with their last user: by words of its own, which no recording has.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct object {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  _Atomic int users;
  int value;
};

struct object* library_make(void);
void library_use(struct object* object);

#ifdef LIBRARY

static _Atomic(struct object*) shared;
static _Atomic int making;

// The first who comes.
struct object* library_make(void) {
  int nobody = 0;
  if (atomic_compare_exchange_strong(&making, &nobody, 1)) {
    struct object* made = malloc(sizeof *made);
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->changed, NULL);
    atomic_init(&made->users, 2);
    atomic_store(&shared, made);
  }
  while (atomic_load(&shared) == NULL) {
  }
  return atomic_load(&shared);
}

void library_use(struct object* object) {
  pthread_mutex_lock(&object->mutex);
  ++object->value;
  pthread_cond_signal(&object->changed);
  pthread_mutex_unlock(&object->mutex);
  if (atomic_fetch_sub(&object->users, 1) == 1) {
    pthread_mutex_destroy(&object->mutex);
    pthread_cond_destroy(&object->changed);
    free(object);
  }
}

#else

static void* work(void* unused) {
  library_use(library_make());
  return unused;
}

int main(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    pthread_create(&threads[i], NULL, work, NULL);
  }
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
  }
}

#endif
