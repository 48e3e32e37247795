// Compiled with the pass at every level of optimisation. Nothing here knows of probes.
#include "loops.h"

#include <stddef.h>
#include <stdlib.h>

enum { FLOATS = 1 << 14, LIST = 1 << 12 };

static float a[FLOATS], b[FLOATS];
static struct node {
    struct node *next;
    uint64_t value;
} nodes[LIST];
static char text[FLOATS];

void loops_setup(void) {
    for (int i = 0; i < FLOATS; i++) {
        a[i] = (float)i;
        b[i] = 1.0f / (float)(i + 1);
        text[i] = 'x';
    }
    text[FLOATS - 1] = 0;
    for (int i = 0; i < LIST; i++) {
        nodes[i].next = &nodes[(i * 7 + 1) % LIST];
        nodes[i].value = (uint64_t)i;
    }
}

// No call, no memory: what a hoisted probe never leaves.
static uint64_t call_free(uint64_t n) {
    uint64_t x = 1;
    for (uint64_t i = 0; i < n; i++) x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

static uint64_t vectorisable(uint64_t n) {
    float sum = 0;
    for (uint64_t done = 0; done < n; done += FLOATS)
        for (int i = 0; i < FLOATS; i++) a[i] = a[i] * 0.5f + b[i];
    for (int i = 0; i < 8; i++) sum += a[i];
    return (uint64_t)sum;
}

// One long vectorised loop: the inner loop above is where the time goes, here there is no other.
static uint64_t one_long_vector_loop(uint64_t n) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < (uint32_t)n; i++) sum += i ^ (i >> 3);
    return sum;
}

// Inner trips too short for a probe: the outer loop has to have it.
static uint64_t small_trips(uint64_t n) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++)
        for (int j = 0; j < 6; j++) sum += (i >> j) * 3;
    return sum;
}

static uint64_t short_unknown_trips(uint64_t n) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t j = 0; j < (i & 7); j++) sum = sum * 31 + j;
    return sum;
}

static uint64_t nested(uint64_t n) {
    uint64_t sum = 0, side = 1;
    while (side * side * side < n) side++;
    for (uint64_t i = 0; i < side; i++)
        for (uint64_t j = 0; j < side; j++)
            for (uint64_t k = 0; k < side; k++) sum = sum * 3 + (i ^ j ^ k);
    return sum;
}

static uint64_t fibonacci(uint64_t n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

static uint64_t recursive(uint64_t n) {
    uint64_t sum = 0;
    for (uint64_t done = 0; done < n; done += 21891) sum += fibonacci(20 + (sum & 1));
    return sum;
}

static uint64_t odd(uint64_t n, uint64_t x);
static uint64_t even(uint64_t n, uint64_t x) { return n == 0 ? x : odd(n - 1, x * 3) + 1; }
static uint64_t odd(uint64_t n, uint64_t x) { return n == 0 ? x : even(n - 1, x ^ n) + 2; }

static uint64_t mutually_recursive(uint64_t n) {
    uint64_t sum = 0;
    for (uint64_t done = 0; done < n; done += 1000) sum += even(1000, done);
    return sum;
}

static uint64_t list(uint64_t n) {
    uint64_t sum = 0;
    const struct node *at = nodes;
    for (uint64_t i = 0; at && i < n; at = at->next, i++) sum += at->value;
    return sum;
}

// While loops without a count.
static uint64_t collatz(uint64_t n) {
    uint64_t steps = 0;
    for (uint64_t i = 1; steps < n; i++)
        for (uint64_t x = i; x != 1; steps++) x = x & 1 ? 3 * x + 1 : x >> 1;
    return steps;
}

static uint64_t string(uint64_t n) {
    uint64_t found = 0;
    for (uint64_t done = 0; done < n; done += FLOATS)
        for (const char *at = text; *at; at++) found += *at == 'x';
    return found;
}

static uint64_t outside_calls(uint64_t n) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) sum += outside(i);
    return sum;
}

static int compare(const void *x, const void *y) {
    return (*(const uint32_t *)x > *(const uint32_t *)y) - (*(const uint32_t *)x < *(const uint32_t *)y);
}

// The loop is in the C library, which is not instrumented; what it calls back is too short to have
// a probe, so the probe has to stand around the call.
static uint64_t called_back(uint64_t n) {
    uint32_t some[64];
    uint64_t sum = 0;
    for (uint64_t done = 0; done < n; done += 64) {
        for (uint32_t i = 0; i < 64; i++) some[i] = (uint32_t)done * 2654435761u ^ i * 40503u;
        qsort(some, 64, sizeof *some, compare);
        sum += some[3];
    }
    return sum;
}

#define STEP(x) (x) = ((x) ^ ((x) >> 7)) * 0x9e3779b97f4a7c15u + ((x) << 9)
#define STEPS8(x) STEP(x); STEP(x); STEP(x); STEP(x); STEP(x); STEP(x); STEP(x); STEP(x)
#define STEPS64(x) STEPS8(x); STEPS8(x); STEPS8(x); STEPS8(x); STEPS8(x); STEPS8(x); STEPS8(x); STEPS8(x)

static uint64_t straight_line(uint64_t n) {
    uint64_t x = n;
    for (uint64_t done = 0; done < n; done += 1024) {
        STEPS64(x); STEPS64(x); STEPS64(x); STEPS64(x); STEPS64(x); STEPS64(x); STEPS64(x); STEPS64(x);
        STEPS64(x); STEPS64(x); STEPS64(x); STEPS64(x); STEPS64(x); STEPS64(x); STEPS64(x); STEPS64(x);
    }
    return x;
}

// Two ways into one cycle: no natural loop.
static uint64_t irreducible(uint64_t n) {
    uint64_t x = n;
    volatile int way = (int)(n & 1);
    if (way) goto second;
first:
    x = x * 5 + 1;
second:
    x ^= x >> 3;
    if (n-- > 1) goto first;
    return x;
}

static uint64_t switched(uint64_t n) {
    uint64_t x = 1;
    for (uint64_t i = 0; i < n; i++) switch (x % 5) {
        case 0: x += 7; break;
        case 1: x = x * 3 + 1; break;
        case 2: x ^= i; break;
        case 3: x -= 2; continue;
        default: x = (x >> 1) + 11;
        }
    return x;
}

// A light way round, and one that calls and jumps ahead: taken each `period` times, or never if that is beyond the end.
static uint64_t light_and_heavy(uint64_t n, uint64_t period) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        if ((sum ^ i) % period != period - 1) {
            sum += i & 3;
            continue;
        }
        sum = outside(sum) + i;
        i += sum & 3;
    }
    return sum;
}

static uint64_t rarely_heavy(uint64_t n) { return light_and_heavy(n, 1009); }
static uint64_t always_heavy(uint64_t n) { return light_and_heavy(n, 1); }
static uint64_t never_heavy(uint64_t n) { return light_and_heavy(n, UINT64_MAX); }

// A computed goto enters a loop, which so has no block of its own in front of it.
static uint64_t entered_by_goto(uint64_t n) {
    static void *const table[] = {&&loop, &&end};
    volatile unsigned char code[] = {0, 0, 1};
    uint64_t x = n, left = n;
    const volatile unsigned char *at = code;
    goto *table[*at++];
loop:
    x = outside(x);
    if (left-- > 1) goto loop;
    goto *table[*at++];
end:
    return x;
}

// An interpreter that jumps from each instruction to the next one, some of which are loops.
static uint64_t threaded(uint64_t n) {
    static void *const table[] = {&&add, &&mix, &&again, &&halt};
    static const unsigned char code[] = {0, 1, 0, 2, 1, 1, 2, 0};
    uint64_t x = 1, at = 0;
    goto *table[code[0]];
add:
    x += at;
    goto *table[at++ < n ? code[at & 7] : 3];
mix:
    x = (x ^ (x >> 5)) * 3;
    if (x & 1) goto mix;
    goto *table[at++ < n ? code[at & 7] : 3];
again:
    x++;
    if (x & 3) goto again;
    goto *table[at++ < n ? code[at & 7] : 3];
halt:
    return x;
}

// Two functions in two files, each of which calls the other last: jumps, but where nothing is optimised.
#ifdef __OPTIMIZE__
enum { CALLS_ARE_JUMPS = 1 };
#else
enum { CALLS_ARE_JUMPS = 0 };
#endif
uint64_t ping(uint64_t n, uint64_t x) {
    if (n == 0) return x;
    return pong(n - 1, x * 3);
}

static uint64_t calls_last(uint64_t n) {
    const uint64_t rounds = CALLS_ARE_JUMPS ? n : 1000;
    uint64_t sum = 0;
    for (uint64_t done = 0; done < n; done += rounds) sum += ping(rounds, done);
    return sum;
}

uint64_t must_ping(uint64_t n, uint64_t x) {
    if (n == 0) return x;
    __attribute__((musttail)) return must_pong(n - 1, x * 3);
}

static uint64_t must_call_last(uint64_t n) { return must_ping(n, 1); }

// An interpreter whose handlers end in an indirect call.
struct machine {
    uint64_t (*const *code)(struct machine *, uint64_t);
    uint64_t left;
};

static uint64_t handle_add(struct machine *m, uint64_t x) {
    if (m->left-- == 0) return x;
    __attribute__((musttail)) return m->code[m->left & 3](m, x + 1);
}

static uint64_t handle_mix(struct machine *m, uint64_t x) {
    if (m->left-- == 0) return x;
    __attribute__((musttail)) return m->code[m->left & 3](m, x ^ (x >> 3));
}

static uint64_t handlers_call_last(uint64_t n) {
    static uint64_t (*const code[])(struct machine *, uint64_t) = {handle_add, handle_mix, handle_mix, handle_add};
    struct machine m = {code, n};
    return handle_add(&m, n);
}

const struct loop loops[] = {
    {"call_free", call_free},
    {"vectorisable", vectorisable},
    {"one_long_vector_loop", one_long_vector_loop},
    {"small_trips", small_trips},
    {"short_unknown_trips", short_unknown_trips},
    {"nested", nested},
    {"recursive", recursive},
    {"mutually_recursive", mutually_recursive},
    {"list", list},
    {"collatz", collatz},
    {"string", string},
    {"outside_calls", outside_calls},
    {"called_back", called_back},
    {"straight_line", straight_line},
    {"irreducible", irreducible},
    {"switched", switched},
    {"rarely_heavy", rarely_heavy},
    {"always_heavy", always_heavy},
    {"never_heavy", never_heavy},
    {"entered_by_goto", entered_by_goto},
    {"threaded", threaded},
    {"calls_last", calls_last},
    {"must_call_last", must_call_last},
    {"handlers_call_last", handlers_call_last},
};
const int loop_count = sizeof loops / sizeof *loops;
