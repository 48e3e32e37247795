// However a loop counts, short trips meet no probe, and long ones meet one each strip.
#include "headway_probes.h"

#include <stdbool.h>
#include <stdio.h>

enum { MOST = 20000, LONGEST_STRIP = 4000 };

_Thread_local struct headway_preempt __headway_preempt;
_Thread_local struct headway_self __headway_self;
static volatile unsigned long probes; // or the compiler concludes that a loop that only reads leaves it alone
void test_probe_taken(void) { probes++; }

struct wide {
    uint64_t value, unused[2];
};
static struct wide elements[MOST];

#define KEPT __attribute__((noinline))
#define MIX(sum, x) ((sum) * 6364136223846793005u ^ (x))

KEPT static uint64_t by_index(size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum = MIX(sum, elements[i].value);
    return sum;
}

KEPT static uint64_t to_the_end(const struct wide *at, const struct wide *end) {
    uint64_t sum = 0;
    for (; at != end; at++) sum = MIX(sum, at->value);
    return sum;
}
KEPT static uint64_t by_pointer(size_t n) { return to_the_end(elements, elements + n); }

KEPT static uint64_t while_more_than_four(size_t n) {
    uint64_t sum = 0;
    size_t i = 0;
    for (; n - i >= 4; i += 4) sum = MIX(MIX(MIX(MIX(sum, elements[i].value), elements[i + 1].value), elements[i + 2].value), elements[i + 3].value);
    while (i < n) sum = MIX(sum, elements[i++].value);
    return sum;
}

KEPT static uint64_t between(int from, int to) {
    const struct wide *middle = elements + MOST / 2;
    uint64_t sum = 0;
    for (int i = from; i < to; i++) sum = MIX(sum, middle[i].value);
    return sum;
}
KEPT static uint64_t from_below_zero(size_t n) { return between(-MOST / 2, (int)n - MOST / 2); }

KEPT static uint64_t down_to_zero(size_t n) {
    uint64_t sum = 0;
    const struct wide *at = elements;
    if (n > 0)
        do sum = MIX(sum, at++->value);
        while (--n);
    return sum;
}

static const struct {
    const char *name;
    uint64_t (*run)(size_t n);
} loops[] = {
    {"by_index", by_index},
    {"by_pointer", by_pointer},
    {"while_more_than_four", while_more_than_four},
    {"from_below_zero", from_below_zero},
    {"down_to_zero", down_to_zero},
};

HEADWAY_NO_PROBES int main(void) {
    bool good = true;
    for (size_t i = 0; i < MOST; i++) elements[i].value = i * 7 + (i >> 8);
    __headway_preempt.asked = 1;
    for (size_t l = 0; l < sizeof loops / sizeof *loops; l++) {
        size_t strip = 0; // the least trips that meet a probe
        uint64_t due = 0;
        for (size_t n = 0; n <= MOST; n++) {
            probes = 0;
            const uint64_t sum = loops[l].run(n);
            if (strip == 0 && probes > 0) strip = n;
            const bool enough = strip == 0 ? n < LONGEST_STRIP : strip > 16 && probes + 1 >= n / strip;
            if (sum != due || !enough) {
                printf("%s: %zu trips meet %lu probes, the least that meet one are %zu%s\n", loops[l].name, n, probes, strip,
                       sum == due ? "" : "; the sum is wrong");
                good = false;
                break;
            }
            due = MIX(due, elements[n < MOST ? n : 0].value);
        }
        printf("%-22s first probe at %zu trips, %lu at %d\n", loops[l].name, strip, probes, MOST);
    }
    return !good;
}
