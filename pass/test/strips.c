// However a loop counts, short trips meet no probe, and long ones meet one each strip; a limit that wraps is a long trip.
#include "headway_probes.h"

#include <stdbool.h>
#include <stdio.h>

enum { MOST = 20000, LONGEST_STRIP = 700, UNLIMITED = 1 << 20 };

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

KEPT static uint64_t by_fours(size_t n) {
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

// Nothing here is wider than the count.
KEPT static uint32_t narrow_sum(uint32_t n) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i != n; i++) sum = (sum ^ i) * 2654435761u;
    return sum;
}
KEPT static uint64_t narrow(size_t n) { return narrow_sum((uint32_t)n); }

KEPT static uint64_t down_to_zero(size_t n) {
    uint64_t sum = 0;
    const struct wide *at = elements;
    if (n > 0)
        do sum = MIX(sum, at++->value);
        while (--n);
    return sum;
}

// Two ways out, the limit only looked at after it was counted down: 0 means none.
KEPT static uint64_t up_to_a_limit(const unsigned char *at, uint64_t limit) {
    const unsigned char *const begin = at;
    for (;;) {
        if (*at == 0) break;
        at++;
        if (--limit == 0) break;
    }
    return (uint64_t)(at - begin);
}

KEPT static uint64_t spin(const volatile unsigned char *at, uint64_t spins) {
    uint64_t rounds = 0;
    do rounds++;
    while (at[rounds] != 0 && --spins);
    return rounds;
}

KEPT static uint64_t until_zero(const unsigned char *at, uint64_t limit) {
    uint64_t i;
    for (i = 1; i != limit; i++)
        if (at[i] == 0) break;
    return i;
}

static unsigned char text[UNLIMITED + 1];

HEADWAY_NO_PROBES static bool without_limit(const char *name, uint64_t rounds, uint64_t limit) {
    const bool enough = probes >= UNLIMITED / LONGEST_STRIP && rounds == UNLIMITED;
    printf("%-22s limit %lld: %lu probes in %llu rounds%s\n", name, (long long)limit, probes, (unsigned long long)rounds, enough ? "" : "  <-- WRONG");
    probes = 0;
    return enough;
}

HEADWAY_NO_PROBES static bool wrapping(void) {
    bool good = true;
    for (size_t i = 0; i < UNLIMITED; i++) text[i] = 'x';
    probes = 0;
    for (uint64_t limit = 0; limit + 1 <= 1; limit--) { // 0, -1
        good &= without_limit("up_to_a_limit", up_to_a_limit(text, limit), limit);
        good &= without_limit("spin", spin(text, limit), limit);
        good &= without_limit("until_zero", until_zero(text, limit), limit);
    }
    return good;
}

static const struct {
    const char *name;
    uint64_t (*run)(size_t n);
} loops[] = {
    {"by_index", by_index},
    {"by_pointer", by_pointer},
    {"by_fours", by_fours},
    {"from_below_zero", from_below_zero},
    {"narrow", narrow},
    {"down_to_zero", down_to_zero},
};

// What loops are to compute, one trip more with each call.
HEADWAY_NO_PROBES static uint64_t wide_due(size_t n) {
    static uint64_t sum;
    return sum = n == 0 ? 0 : MIX(sum, elements[n - 1].value);
}
HEADWAY_NO_PROBES static uint64_t narrow_due(size_t n) {
    static uint32_t sum;
    return sum = n == 0 ? 0 : (sum ^ (uint32_t)(n - 1)) * 2654435761u;
}

HEADWAY_NO_PROBES static bool counted(const char *name, uint64_t (*run)(size_t n)) {
    size_t strip = 0; // the least trips that meet a probe
    for (size_t n = 0; n <= MOST; n++) {
        probes = 0;
        const uint64_t sum = run(n);
        const uint64_t due = run == narrow ? narrow_due(n) : wide_due(n);
        if (strip == 0 && probes > 0) strip = n;
        const bool enough = strip == 0 ? n < LONGEST_STRIP : strip > 16 && probes + 1 >= n / strip;
        if (sum != due || !enough) {
            printf("%s: %zu trips meet %lu probes, the least that meet one are %zu%s\n", name, n, probes, strip, sum == due ? "" : "; the sum is wrong");
            return false;
        }
    }
    printf("%-22s first probe at %zu trips, %lu at %d\n", name, strip, probes, MOST);
    return true;
}

HEADWAY_NO_PROBES int main(void) {
    bool good = true;
    for (size_t i = 0; i < MOST; i++) elements[i].value = i * 7 + (i >> 8);
    __headway_preempt.asked = 1;
    for (size_t l = 0; l < sizeof loops / sizeof *loops; l++) good &= counted(loops[l].name, loops[l].run);
    return !(wrapping() & good);
}
