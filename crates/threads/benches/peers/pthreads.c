/* The thread operations of `make bench-threads` by POSIX threads. Each line of standard input names an operation; the answer is its ns. The parent
 * has pinned the process to one core. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static bool turn;
static long count;

static void *yields(void *nothing) {
    for (long i = 0; i < count / 2; i++) sched_yield();
    return nothing;
}

static void *plays(void *mine) {
    pthread_mutex_lock(&mutex);
    for (long i = 0; i < count / 2; i++) {
        while (turn != (mine != NULL)) pthread_cond_wait(&turned, &mutex);
        turn = mine == NULL;
        pthread_cond_signal(&turned);
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void *nothing(void *argument) { return argument; }

/* A second thread takes part in what this one does. */
static void both(void *(*body)(void *)) {
    pthread_t other;
    pthread_create(&other, NULL, body, NULL);
    body(&count);
    pthread_join(other, NULL);
}

static void operate(const char *name) {
    if (!strcmp(name, "mutex")) {
        for (long i = 0; i < count; i++) {
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
        }
    } else if (!strcmp(name, "yield")) {
        both(yields);
    } else if (!strcmp(name, "condvar")) {
        turn = true;
        both(plays);
    } else {
        for (long i = 0; i < count; i++) {
            pthread_t other;
            pthread_create(&other, NULL, nothing, NULL);
            pthread_join(other, NULL);
        }
    }
}

int main(void) {
    char name[32];
    while (scanf("%31s", name) == 1) {
        struct timespec start, end;
        count = !strcmp(name, "mutex") ? 200000 : !strcmp(name, "spawn") ? 2000 : 10000;
        clock_gettime(CLOCK_MONOTONIC, &start);
        operate(name);
        clock_gettime(CLOCK_MONOTONIC, &end);
        printf("%f\n", ((end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / (double)count);
        fflush(stdout);
    }
}
