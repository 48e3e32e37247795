// The product of two integer matrices by the definition (as Phoenix' matrix_multiply).
#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0xf26921d5e7691aba, 0x34a98f9943c858ee};
const unsigned kernel_passes = 3;

enum { MAX_SIZE = 192 };

static int32_t a[MAX_SIZE][MAX_SIZE], b[MAX_SIZE][MAX_SIZE], product[MAX_SIZE][MAX_SIZE];
static int size;

void kernel_setup(bool full) {
    uint64_t seed = 7;
    size = full ? MAX_SIZE : 40;
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++) {
            a[i][j] = (int32_t)suite_below(&seed, 100) - 50;
            b[i][j] = (int32_t)suite_below(&seed, 100) - 50;
        }
}

void kernel_run(void) {
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++) {
            int32_t sum = 0;
            for (int k = 0; k < size; k++) sum += a[i][k] * b[k][j];
            product[i][j] = sum;
        }
}

uint64_t kernel_digest(void) {
    uint64_t digest = 0;
    for (int i = 0; i < size; i++)
        digest = suite_mix_bytes(digest, product[i], (size_t)size * sizeof(int32_t));
    return digest;
}

// Freivalds: the product times a vector is what the factors make of it.
bool kernel_valid(void) {
    int64_t vector[MAX_SIZE], through_b[MAX_SIZE];
    uint64_t seed = 70;
    for (int j = 0; j < size; j++) vector[j] = (int64_t)suite_below(&seed, 1000);
    for (int i = 0; i < size; i++) {
        through_b[i] = 0;
        for (int j = 0; j < size; j++) through_b[i] += b[i][j] * vector[j];
    }
    for (int i = 0; i < size; i++) {
        int64_t expected = 0, got = 0;
        for (int j = 0; j < size; j++) expected += a[i][j] * through_b[j];
        for (int j = 0; j < size; j++) got += product[i][j] * vector[j];
        if (expected != got) return false;
    }
    return true;
}
