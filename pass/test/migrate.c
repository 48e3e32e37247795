// Runs each computation on a stack of its own that goes to the other of two threads at every probe.
// Only the running thread's flag is up, so a probe that reads the flag of a thread it has left sees
// nothing and the migrations stop: their number has to be the number of probes.
//
// usage: migrate [ROUNDS]
#define _GNU_SOURCE
#include "migrate.h"
#include "thread_facts.h"
#include "headway_probes.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { STACK = 1 << 18 };

static uint64_t rounds = 200; // the first argument

_Thread_local struct headway_preempt __headway_preempt;
_Thread_local struct headway_self __headway_self;
_Thread_local uint64_t work_done, shared_table[4];
static _Thread_local int thread_number;
static _Thread_local ucontext_t scheduler;

static ucontext_t fiber;
static const struct computation *current;
static sem_t turn[2], all_done;
static bool finished, moving;
static uint64_t stale, probes, unseen, seen_by[2];

bool is_errno(const int *address) { return address == &errno; }
bool is_work_done(const uint64_t *address) { return address == &work_done; }
bool is_in_table(uint64_t value) {
    return shared_table[0] == value || shared_table[1] == value || shared_table[2] == value || shared_table[3] == value;
}

// What must not be kept over a switch is asked for behind a call that the compiler cannot see into.
__attribute__((noinline)) static ucontext_t *this_scheduler(void) {
    __asm__ volatile("" ::: "memory");
    return &scheduler;
}
__attribute__((noinline)) static uint64_t this_work(void) {
    __asm__ volatile("" ::: "memory");
    return work_done;
}
__attribute__((noinline)) static void raise_flag(bool up) {
    __asm__ volatile("" ::: "memory");
    __headway_preempt.asked = up;
}

void test_probe_taken(void) {
    probes++;
    if (!moving) return;
    if (__headway_preempt.asked == 0) unseen++; // a flag that is not up was seen: some other thread's
    seen_by[thread_number] = this_work();
    raise_flag(false);
    swapcontext(&fiber, this_scheduler());
    raise_flag(true);
}

static void body(void) {
    stale = current->run(rounds);
    finished = true;
    setcontext(this_scheduler());
}

static void *worker(void *number) {
    thread_number = (int)(intptr_t)number;
    for (;;) {
        sem_wait(&turn[thread_number]);
        if (!current) return NULL;
        raise_flag(true);
        swapcontext(this_scheduler(), &fiber);
        raise_flag(false);
        if (finished)
            sem_post(&all_done);
        else
            sem_post(&turn[1 - thread_number]);
    }
}

// The computation on this thread alone, its flag always up: how many probes there are.
static uint64_t count_probes(const struct computation *c) {
    moving = false;
    probes = 0;
    raise_flag(true);
    volatile uint64_t sink = c->run(rounds);
    (void)sink;
    raise_flag(false);
    return probes;
}

static bool migrate(const struct computation *c, void *stack) {
    const uint64_t due = count_probes(c);
    getcontext(&fiber);
    fiber.uc_stack = (stack_t){.ss_sp = stack, .ss_size = STACK};
    makecontext(&fiber, body, 0);
    current = c;
    finished = false;
    moving = true;
    probes = unseen = seen_by[0] = seen_by[1] = 0;
    sem_post(&turn[0]);
    sem_wait(&all_done);
    // Both threads have to have counted about half of what was counted.
    const uint64_t counted[2] = {seen_by[0], seen_by[1]};
    const bool shared = c->name[0] != 'v' || (counted[0] > rounds * 3000 && counted[1] > rounds * 3000);
    const bool good = due > rounds && probes == due && stale == 0 && unseen == 0 && shared;
    printf("%-22s migrated %6llu times, %6llu due, %llu stale, %llu unseen%s\n", c->name, (unsigned long long)probes,
           (unsigned long long)due, (unsigned long long)stale, (unsigned long long)unseen, good ? "" : "  <-- WRONG");
    if (!shared)
        printf("  counted by the threads: %llu, %llu\n", (unsigned long long)counted[0], (unsigned long long)counted[1]);
    return good;
}

int main(int argc, char **argv) {
    if (argc > 1) rounds = strtoull(argv[1], NULL, 10);
    pthread_t threads[2];
    sem_init(&all_done, 0, 0);
    for (int i = 0; i < 2; i++) {
        sem_init(&turn[i], 0, 0);
        if (pthread_create(&threads[i], NULL, worker, (void *)(intptr_t)i) != 0) return 2;
    }
    void *stack = malloc(STACK);
    int wrong = 0;
    for (int i = 0; i < computation_count; i++) wrong += !migrate(&computations[i], stack);
    current = NULL;
    for (int i = 0; i < 2; i++) sem_post(&turn[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return wrong != 0;
}
