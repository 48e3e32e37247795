// Dense LU factorisation without pivoting, in blocks that are stored one after the other (as
// Splash-2's lu-contiguous).
#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0xc4a5662c15bfc982, 0x2e825df147a740e2};
const unsigned kernel_passes = 5;

enum { BLOCK = 16, MAX_BLOCKS = 14 };

typedef double block[BLOCK][BLOCK];
static block original[MAX_BLOCKS][MAX_BLOCKS], matrix[MAX_BLOCKS][MAX_BLOCKS];
static int blocks, width = BLOCK;

void kernel_setup(bool full) {
    uint64_t seed = 9;
    blocks = full ? MAX_BLOCKS : 4;
    for (int i = 0; i < blocks * BLOCK; i++)
        for (int j = 0; j < blocks * BLOCK; j++)
            original[i / BLOCK][j / BLOCK][i % BLOCK][j % BLOCK] =
                suite_uniform(&seed) + (i == j ? blocks * BLOCK : 0); // dominant diagonal: no pivoting needed
}

static void factor_diagonal(block a) {
    for (int k = 0; k < width; k++)
        for (int i = k + 1; i < width; i++) {
            a[i][k] /= a[k][k];
            for (int j = k + 1; j < width; j++) a[i][j] -= a[i][k] * a[k][j];
        }
}

// Below the diagonal: a := a · U⁻¹.
static void divide_by_upper(block a, block diagonal) {
    for (int i = 0; i < width; i++)
        for (int k = 0; k < width; k++) {
            a[i][k] /= diagonal[k][k];
            for (int j = k + 1; j < width; j++) a[i][j] -= a[i][k] * diagonal[k][j];
        }
}

// Right of the diagonal: a := L⁻¹ · a.
static void divide_by_lower(block a, block diagonal) {
    for (int k = 0; k < width; k++)
        for (int i = k + 1; i < width; i++)
            for (int j = 0; j < width; j++) a[i][j] -= diagonal[i][k] * a[k][j];
}

static void subtract_product(block a, block left, block above) {
    for (int i = 0; i < width; i++)
        for (int k = 0; k < width; k++)
            for (int j = 0; j < width; j++) a[i][j] -= left[i][k] * above[k][j];
}

static void copy_original(void) {
    for (int i = 0; i < blocks; i++)
        for (int j = 0; j < blocks; j++)
            for (int r = 0; r < width; r++)
                for (int c = 0; c < width; c++) matrix[i][j][r][c] = original[i][j][r][c];
}

void kernel_run(void) {
    copy_original();
    for (int k = 0; k < blocks; k++) {
        factor_diagonal(matrix[k][k]);
        for (int i = k + 1; i < blocks; i++) {
            divide_by_upper(matrix[i][k], matrix[k][k]);
            divide_by_lower(matrix[k][i], matrix[k][k]);
        }
        for (int i = k + 1; i < blocks; i++)
            for (int j = k + 1; j < blocks; j++) subtract_product(matrix[i][j], matrix[i][k], matrix[k][j]);
    }
}

static double element(block m[MAX_BLOCKS][MAX_BLOCKS], int i, int j) {
    return m[i / BLOCK][j / BLOCK][i % BLOCK][j % BLOCK];
}

uint64_t kernel_digest(void) {
    uint64_t digest = 0;
    for (int i = 0; i < blocks * BLOCK; i++)
        for (int j = 0; j < blocks * BLOCK; j++) digest = suite_mix_real(digest, element(matrix, i, j));
    return digest;
}

// L · U is the original, looked at in a third of the rows.
bool kernel_valid(void) {
    int n = blocks * BLOCK;
    for (int i = 0; i < n; i += 3)
        for (int j = 0; j < n; j++) {
            double sum = i <= j ? element(matrix, i, j) : 0;
            for (int k = 0; k < i && k <= j; k++) sum += element(matrix, i, k) * element(matrix, k, j);
            if (fabs(sum - element(original, i, j)) > 1e-9) return false;
        }
    return true;
}
