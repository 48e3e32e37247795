// Means of rows and the covariance matrix (as Phoenix' pca), integers throughout.
#include <stdlib.h>

#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0x816bdb4b948945d3, 0xba24e086a4946b74};
const unsigned kernel_passes = 2;

enum { MAX_ROWS = 192, MAX_COLUMNS = 500 };

static int32_t matrix[MAX_ROWS][MAX_COLUMNS];
static int32_t mean[MAX_ROWS];
static int64_t covariance[MAX_ROWS][MAX_ROWS];
static int rows, columns;

void kernel_setup(bool full) {
    uint64_t seed = 4;
    rows = full ? MAX_ROWS : 24;
    columns = full ? MAX_COLUMNS : 100;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) matrix[r][c] = (int32_t)suite_below(&seed, 1000);
}

static void compute_means(void) {
    for (int r = 0; r < rows; r++) {
        int64_t sum = 0;
        for (int c = 0; c < columns; c++) sum += matrix[r][c];
        mean[r] = (int32_t)(sum / columns);
    }
}

static int64_t covariance_of(int a, int b) {
    int64_t sum = 0;
    for (int c = 0; c < columns; c++) sum += (matrix[a][c] - mean[a]) * (matrix[b][c] - mean[b]);
    return sum / (columns - 1);
}

void kernel_run(void) {
    compute_means();
    for (int a = 0; a < rows; a++)
        for (int b = a; b < rows; b++) covariance[a][b] = covariance[b][a] = covariance_of(a, b);
}

uint64_t kernel_digest(void) {
    uint64_t digest = 0;
    for (int a = 0; a < rows; a++)
        for (int b = 0; b < rows; b++) digest = suite_mix(digest, (uint64_t)covariance[a][b]);
    return digest;
}

// Independent rows: variances near 1000² / 12, covariances far below (Cauchy and Schwarz allow no more).
bool kernel_valid(void) {
    for (int a = 0; a < rows; a++) {
        if (covariance[a][a] < 50000 || covariance[a][a] > 120000) return false;
        for (int b = 0; b < a; b++)
            if (llabs(covariance[a][b]) > 45000) return false;
    }
    return true;
}
