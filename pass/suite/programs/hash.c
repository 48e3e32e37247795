// A hash table with open addressing: inserts, looks up (half of it in vain), erases by shifting back.
#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0x5db9155160be56e1, 0x1b37164984c1b102};
const unsigned kernel_passes = 16;

enum { MAX_SLOTS = 1 << 14, FREE = 0 };

struct slot {
    uint64_t key, value;
};

static struct slot slots[MAX_SLOTS];
static uint64_t mask, keys, found, sum;

void kernel_setup(bool full) {
    mask = full ? MAX_SLOTS - 1 : 1023;
    keys = (mask + 1) * 7 / 10;
}

static uint64_t key_of(uint64_t i) { return i * 0x9e3779b97f4a7c15u | 1; }

static uint64_t home(uint64_t key) {
    key ^= key >> 32;
    key *= 0xd6e8feb86659fd93u;
    return (key ^ key >> 32) & mask;
}

static uint64_t find(uint64_t key) {
    uint64_t at = home(key);
    while (slots[at].key != FREE && slots[at].key != key) at = (at + 1) & mask;
    return at;
}

static void insert(uint64_t key, uint64_t value) {
    uint64_t at = find(key);
    slots[at] = (struct slot){key, value};
}

// What follows moves into the hole, unless its home lies behind the hole.
static void erase(uint64_t key) {
    uint64_t hole = find(key);
    if (slots[hole].key == FREE) return;
    for (uint64_t at = (hole + 1) & mask; slots[at].key != FREE; at = (at + 1) & mask) {
        if (((at - home(slots[at].key)) & mask) < ((at - hole) & mask)) continue;
        slots[hole] = slots[at];
        hole = at;
    }
    slots[hole].key = FREE;
}

void kernel_run(void) {
    for (uint64_t i = 0; i <= mask; i++) slots[i].key = FREE;
    for (uint64_t i = 0; i < keys; i++) insert(key_of(i), i);
    for (uint64_t i = 0; i < keys; i += 3) erase(key_of(i));
    found = sum = 0;
    for (uint64_t i = 0; i < 2 * keys; i++) {
        uint64_t at = find(key_of(i));
        if (slots[at].key == FREE) continue;
        found++;
        sum += slots[at].value;
    }
}

uint64_t kernel_digest(void) {
    uint64_t digest = suite_mix(suite_mix(0, found), sum);
    for (uint64_t i = 0; i <= mask; i++) digest = suite_mix(digest, slots[i].key);
    return digest;
}

// What was inserted and not erased is found, and nothing else.
bool kernel_valid(void) {
    uint64_t expected = 0, expected_sum = 0;
    for (uint64_t i = 0; i < keys; i++)
        if (i % 3 != 0) expected++, expected_sum += i;
    return found == expected && sum == expected_sum;
}
