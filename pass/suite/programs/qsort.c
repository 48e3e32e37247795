// Quicksort of records through a comparison function, as the C library's: median of three, the smaller part
// by recursion, insertion sort at the end.
#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0x434b2f59aa921d88, 0x7fb077356ba7c50d};
const unsigned kernel_passes = 5;

enum { MAX_RECORDS = 20000, SMALL = 16 };

struct record {
    uint32_t key, payload;
};
typedef int (*comparison)(const struct record *, const struct record *);

static struct record input[MAX_RECORDS], records[MAX_RECORDS];
static size_t count;

static int by_key(const struct record *a, const struct record *b) {
    return (a->key > b->key) - (a->key < b->key);
}
static int by_payload(const struct record *a, const struct record *b) {
    return (a->payload > b->payload) - (a->payload < b->payload);
}
static comparison order = by_key;

void kernel_setup(bool full) {
    uint64_t seed = 30;
    count = full ? MAX_RECORDS : 5000;
    for (size_t i = 0; i < count; i++) input[i] = (struct record){(uint32_t)suite_random(&seed), (uint32_t)i};
    if (count == 0) order = by_payload; // never: but the compiler cannot know which order it is
}

static void swap(struct record *a, struct record *b) {
    struct record kept = *a;
    *a = *b;
    *b = kept;
}

static void insertion_sort(struct record *from, size_t size) {
    for (size_t i = 1; i < size; i++) {
        struct record moving = from[i];
        size_t at = i;
        for (; at > 0 && order(&moving, &from[at - 1]) < 0; at--) from[at] = from[at - 1];
        from[at] = moving;
    }
}

static struct record median_of_three(struct record *from, size_t size) {
    struct record *middle = from + size / 2, *last = from + size - 1;
    if (order(middle, from) < 0) swap(middle, from);
    if (order(last, middle) < 0) swap(last, middle);
    if (order(middle, from) < 0) swap(middle, from);
    return *middle;
}

static void quicksort(struct record *from, size_t size) {
    while (size > SMALL) {
        struct record pivot = median_of_three(from, size);
        size_t low = 0, high = size - 1;
        for (;;) {
            while (order(&from[low], &pivot) < 0) low++;
            while (order(&pivot, &from[high]) < 0) high--;
            if (low >= high) break;
            swap(&from[low++], &from[high--]);
        }
        size_t left = low == high ? low + 1 : low; // [0, left) is not above, the rest not below the pivot
        if (left == size) left--;
        if (left < size - left) {
            quicksort(from, left);
            from += left;
            size -= left;
        } else {
            quicksort(from + left, size - left);
            size = left;
        }
    }
    insertion_sort(from, size);
}

void kernel_run(void) {
    for (size_t i = 0; i < count; i++) records[i] = (struct record){input[i].key, (uint32_t)i};
    quicksort(records, count);
}

uint64_t kernel_digest(void) {
    uint64_t digest = 0;
    for (size_t i = 0; i < count; i++)
        digest = suite_mix(digest, (uint64_t)records[i].key << 32 | records[i].payload);
    return digest;
}

// Ascending, and each record is the one it was.
bool kernel_valid(void) {
    uint64_t payloads = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && records[i - 1].key > records[i].key) return false;
        if (input[records[i].payload].key != records[i].key) return false;
        payloads += records[i].payload;
    }
    return payloads == (uint64_t)count * (count - 1) / 2;
}
