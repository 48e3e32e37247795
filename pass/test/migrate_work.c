// Instrumented. Each loop is long enough for several probes between two looks at thread-local state.
#include "migrate.h"
#include "loops.h"
#include "thread_facts.h"

#include <errno.h>

static _Thread_local uint64_t mine;
static _Thread_local uint64_t table[4];

static uint64_t churn(uint64_t x, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) x = x * 6364136223846793005u + (x >> 7);
    return x;
}

// errno is a function call that the C library declares const.
static uint64_t errno_address(uint64_t n) {
    uint64_t stale = 0, x = 1;
    for (uint64_t i = 0; i < n; i++) {
        errno = 0;
        x = churn(x, 4000);
        stale += !is_errno(&errno);
        errno = (int)x;
        x = churn(x, 4000);
        stale += !is_errno(&errno);
    }
    return stale;
}

// The address of a thread-local object of this file, of another file, of an element.
static uint64_t object_addresses(uint64_t n) {
    uint64_t stale = 0, x = 1;
    for (uint64_t i = 0; i < n; i++) {
        work_done = x;
        mine = x;
        table[i & 3] = x;
        x = churn(x, 4000);
        stale += !is_work_done(&work_done);
        x = churn(x, 4000);
        stale += !is_work_done(&work_done);
        // Objects of one file keep their distance in every thread.
        table[x & 3] ^= mine;
    }
    return stale;
}

// The value: a counter that is kept in a register over the loop is added to one thread at the end.
static uint64_t values(uint64_t n) {
    uint64_t x = 1;
    for (uint64_t i = 0; i < n * 8000; i++) {
        x = x * 6364136223846793005u + (x >> 7);
        work_done++;
    }
    return x == 0;
}

// The left side's address may be computed before the right side yields. Nothing yields between the
// store and the look at the running thread's table: a probe has just been passed.
static uint64_t element_of_long_index(uint64_t n) {
    uint64_t stale = 0, x = 1;
    for (uint64_t i = 0; i < n; i++) {
        shared_table[(x = outside(churn(x, 8000))) & 3] = 1000 + i;
        stale += !is_in_table(1000 + i);
    }
    return stale;
}

const struct computation computations[] = {
    {"errno_address", errno_address},
    {"object_addresses", object_addresses},
    {"values", values},
    {"element_of_long_index", element_of_long_index},
};
const int computation_count = sizeof computations / sizeof *computations;
