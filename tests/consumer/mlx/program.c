/* Uses the binding as another language's runtime does: handles are freed as soon as they are not needed, by whichever thread. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"

#define CHECK(condition)                                                                    \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      fprintf(stderr, "%s:%d: not true: %s (%s)\n", __FILE__, __LINE__, #condition, binding_error()); \
      exit(1);                                                                              \
    }                                                                                       \
  } while (0)

enum { threads = 32, calls = 64, at_once = 4, size = 4096 };

static int square_sum(binding_array* result, const binding_array* inputs, int count, void* payload) {
  if (count != 1) return 1;
  ++*(int*)payload;
  binding_array square = binding_multiply(inputs[0], inputs[0]);
  *result = binding_sum(square);
  binding_free(square);
  return 0;
}

static int rule(binding_array* result, const binding_array* inputs, int count, void* payload) {
  (void)payload;
  if (count != 3) return 1;
  *result = binding_multiply(inputs[0], inputs[1]);
  return 0;
}

static int destroyed = 0;
static void destroy(void* payload) {
  ++destroyed;
  free(payload);
}

static void closures(void) {
  float data[3] = {1, 2, 3}, got[3];
  binding_array x = binding_new(data, 3);
  binding_closure function = binding_closure_new(square_sum, calloc(1, sizeof(int)), destroy);
  binding_closure gradient = binding_grad(function);
  binding_closure by_rule = binding_closure_new(rule, calloc(1, sizeof(int)), destroy);
  binding_closure custom = binding_custom_vjp(function, by_rule);
  binding_closure custom_gradient = binding_grad(custom);
  /* The closures that these were made of are not needed any more. */
  binding_closure_free(by_rule);
  binding_closure_free(function);
  binding_array value = binding_closure_apply(custom, x);
  CHECK(value && binding_read(value, got, 1) && got[0] == 14);
  binding_free(value);
  value = binding_closure_apply(gradient, x);
  CHECK(value && binding_read(value, got, 3) && got[0] == 2 && got[2] == 6);
  binding_free(value);
  value = binding_closure_apply(custom_gradient, x);
  CHECK(value && binding_read(value, got, 3) && got[0] == 1 && got[2] == 3);
  binding_free(value);
  binding_closure_free(gradient);
  binding_closure_free(custom);
  binding_closure_free(custom_gradient);
  CHECK(destroyed == 2);
  binding_free(x);
}

static void imported(void) {
  float data[3] = {1, 2, 3}, got[3], two = 2;
  char file[] = "/tmp/consumer-XXXXXX";
  int made = mkstemp(file);
  CHECK(made >= 0 && binding_export(file));
  binding_array x = binding_new(data, 3), vector = binding_new(&two, 1), scale = binding_sum(vector);
  binding_array result = binding_call_imported(file, "scale", x, scale);
  CHECK(result && binding_read(result, got, 3) && got[2] == 6);
  CHECK(!binding_call_imported(file, "other", x, scale) && strlen(binding_error()) > 0);
  binding_free(result);
  binding_free(x);
  binding_free(vector);
  binding_free(scale);
  remove(file);
}

/* Handles on their way to the thread that frees them. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static binding_array waiting[threads * calls * 2];
static int waiting_count = 0, ended = 0;

static void free_elsewhere(binding_array a) {
  pthread_mutex_lock(&mutex);
  waiting[waiting_count++] = a;
  pthread_mutex_unlock(&mutex);
}

static void* collect(void* unused) {
  (void)unused;
  while (1) {
    pthread_mutex_lock(&mutex);
    binding_array a = waiting_count ? waiting[--waiting_count] : NULL;
    int is_over = !a && ended == threads;
    pthread_mutex_unlock(&mutex);
    if (is_over) return NULL;
    if (a) binding_free(a);
  }
}

/* Each call's input is freed when its kernel has been started, and the next one may get its memory. */
static void* call_kernels(void* number) {
  float data[size], got[size];
  binding_array started[at_once];
  for (int call = 0; call < calls; ++call) {
    int times = 2 + call % 3;
    for (int i = 0; i < size; ++i) data[i] = (float)(call + i);
    binding_array x = binding_new(data, size);
    started[call % at_once] = binding_custom_kernel(x, times);
    CHECK(started[call % at_once] && binding_start(started[call % at_once]));
    free_elsewhere(x);
    if (call % at_once < at_once - 1) continue;
    for (int k = 0; k < at_once; ++k) {
      int first = call - at_once + 1 + k;
      CHECK(binding_read(started[k], got, size));
      free_elsewhere(started[k]);
      for (int i = 0; i < size; ++i) {
        if (got[i] == (float)((first + i) * (2 + first % 3))) continue;
        fprintf(stderr, "call %d, element %d: %g\n", first, i, got[i]);
        _Exit(3);
      }
    }
  }
  pthread_mutex_lock(&mutex);
  ++ended;
  pthread_mutex_unlock(&mutex);
  return number;
}

static void kernels(const char* folder) {
  float data[3] = {1, 2, 3}, got[3];
  binding_array x = binding_new(data, 3);
  binding_array y = binding_file_kernel(folder, x);
  binding_free(x);
  CHECK(y && binding_read(y, got, 3) && got[0] == 4 && got[2] == 12);
  binding_free(y);
  pthread_t workers[threads], collector;
  CHECK(pthread_create(&collector, NULL, collect, NULL) == 0);
  for (int i = 0; i < threads; ++i) CHECK(pthread_create(&workers[i], NULL, call_kernels, NULL) == 0);
  for (int i = 0; i < threads; ++i) pthread_join(workers[i], NULL);
  pthread_join(collector, NULL);
}

int main(int count, char** arguments) {
  closures();
  imported();
  if (count > 1) kernels(arguments[1]);
  puts("done");
  return 0;
}
