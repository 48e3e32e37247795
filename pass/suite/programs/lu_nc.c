// Dense LU factorisation without pivoting, in blocks of an ordinary row-major matrix (as Splash-2's
// lu-noncontiguous): rows of a block lie a whole matrix row apart.
#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0x3345d8181c021ddf, 0xb455b64cea521e00};
const unsigned kernel_passes = 6;

enum { MAX_SIZE = 224, BLOCK = 16 };

static double original[MAX_SIZE * MAX_SIZE], matrix[MAX_SIZE * MAX_SIZE];
static int size;

void kernel_setup(bool full) {
    uint64_t seed = 10;
    size = full ? MAX_SIZE : 60;
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++) original[i * size + j] = suite_uniform(&seed) + (i == j ? size : 0);
}

static int smaller(int a, int b) { return a < b ? a : b; }

// Eliminates the panel of columns [from, to), rows below it included.
static void factor_panel(int from, int to) {
    for (int k = from; k < to; k++) {
        const double *pivot = matrix + k * size;
        for (int i = k + 1; i < size; i++) {
            double *row = matrix + i * size;
            double factor = row[k] /= pivot[k];
            for (int j = k + 1; j < to; j++) row[j] -= factor * pivot[j];
        }
    }
}

// Applies the panel's own rows to what is right of it.
static void solve_above(int from, int to) {
    for (int k = from; k < to; k++)
        for (int i = k + 1; i < to; i++) {
            double factor = matrix[i * size + k];
            for (int j = to; j < size; j++) matrix[i * size + j] -= factor * matrix[k * size + j];
        }
}

// Subtracts the product of the panel below and the rows to its right, block by block.
static void update_rest(int from, int to) {
    for (int ib = to; ib < size; ib += BLOCK)
        for (int jb = to; jb < size; jb += BLOCK)
            for (int i = ib; i < smaller(ib + BLOCK, size); i++)
                for (int k = from; k < to; k++) {
                    double factor = matrix[i * size + k];
                    const double *above = matrix + k * size;
                    double *row = matrix + i * size;
                    for (int j = jb; j < smaller(jb + BLOCK, size); j++) row[j] -= factor * above[j];
                }
}

void kernel_run(void) {
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++) matrix[i * size + j] = original[i * size + j];
    for (int from = 0; from < size; from += BLOCK) {
        int to = smaller(from + BLOCK, size);
        factor_panel(from, to);
        solve_above(from, to);
        update_rest(from, to);
    }
}

uint64_t kernel_digest(void) {
    uint64_t digest = 0;
    for (int i = 0; i < size * size; i++) digest = suite_mix_real(digest, matrix[i]);
    return digest;
}

// L · U is the original, looked at in a third of the rows.
bool kernel_valid(void) {
    for (int i = 0; i < size; i += 3)
        for (int j = 0; j < size; j++) {
            double sum = i <= j ? matrix[i * size + j] : 0;
            for (int k = 0; k < i && k <= j; k++) sum += matrix[i * size + k] * matrix[k * size + j];
            if (fabs(sum - original[i * size + j]) > 1e-9) return false;
        }
    return true;
}
