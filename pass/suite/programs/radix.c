// Radix sort of 32-bit keys, 2048 buckets a pass (as Splash-2's radix).
#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0xc1fb912ca2a6aec7, 0x0a4144cb71efe573};
const unsigned kernel_passes = 20;

enum { MAX_KEYS = 40000, BITS = 11, BUCKETS = 1 << BITS };

static uint32_t keys[MAX_KEYS], one[MAX_KEYS], other[MAX_KEYS];
static size_t count;

void kernel_setup(bool full) {
    uint64_t seed = 12;
    count = full ? MAX_KEYS : 10000;
    for (size_t i = 0; i < count; i++) keys[i] = (uint32_t)suite_random(&seed);
}

static void pass(const uint32_t *from, uint32_t *to, int shift) {
    uint32_t offsets[BUCKETS];
    for (int b = 0; b < BUCKETS; b++) offsets[b] = 0;
    for (size_t i = 0; i < count; i++) offsets[(from[i] >> shift) % BUCKETS]++;
    uint32_t sum = 0;
    for (int b = 0; b < BUCKETS; b++) {
        uint32_t here = offsets[b];
        offsets[b] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++) to[offsets[(from[i] >> shift) % BUCKETS]++] = from[i];
}

void kernel_run(void) {
    pass(keys, one, 0);
    pass(one, other, BITS);
    pass(other, one, 2 * BITS);
}

uint64_t kernel_digest(void) {
    uint64_t digest = 0;
    for (size_t i = 0; i < count; i++) digest = suite_mix(digest, one[i]);
    return digest;
}

// Ascending, and the same keys: their sum and the sum of a hash of each did not change.
bool kernel_valid(void) {
    uint64_t sums[2] = {0, 0}, hashes[2] = {0, 0};
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && one[i - 1] > one[i]) return false;
        sums[0] += keys[i], sums[1] += one[i];
        hashes[0] += suite_mix(1, keys[i]), hashes[1] += suite_mix(1, one[i]);
    }
    return sums[0] == sums[1] && hashes[0] == hashes[1];
}
