// Sparse Cholesky factorisation of a grid's Laplacian (the kind of Splash-2's cholesky): elimination
// tree, then row by row a sparse triangular solve over the part of the tree that the row reaches.
#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0xe5bb7bc14adec342, 0x9152aeba9830ba97};
const unsigned kernel_passes = 6;

enum { MAX_SIDE = 44, MAX_ROWS = MAX_SIDE * MAX_SIDE, MAX_FILL = MAX_ROWS * (MAX_SIDE + 2) };

// The matrix: for each row the entries left of the diagonal, at most two, and the diagonal.
static int left[MAX_ROWS][2];
static double left_value[MAX_ROWS][2], diagonal[MAX_ROWS];

// The factor by columns, its diagonal apart.
static int column_begin[MAX_ROWS + 1], column_end[MAX_ROWS], row_of[MAX_FILL], parent[MAX_ROWS];
static double value[MAX_FILL], factor_diagonal[MAX_ROWS];
static int rows, reached_by[MAX_ROWS];
static double scratch[MAX_ROWS];

void kernel_setup(bool full) {
    uint64_t seed = 11;
    int side = full ? MAX_SIDE : 12;
    rows = side * side;
    for (int i = 0; i < rows; i++) {
        left[i][0] = i >= side ? i - side : -1;
        left[i][1] = i % side > 0 ? i - 1 : -1;
        diagonal[i] = 4 + suite_uniform(&seed);
        for (int e = 0; e < 2; e++) left_value[i][e] = -0.5 - 0.5 * suite_uniform(&seed);
    }
}

// Liu's elimination tree, with path compression through `ancestor`.
static void build_tree(void) {
    static int ancestor[MAX_ROWS];
    for (int i = 0; i < rows; i++) {
        parent[i] = ancestor[i] = -1;
        for (int e = 0; e < 2; e++)
            for (int j = left[i][e]; j != -1 && j < i;) {
                int next = ancestor[j];
                ancestor[j] = i;
                if (next == -1) parent[j] = i;
                j = next;
            }
    }
}

// The columns in which row i of the factor has entries, children before parents, at the end of `stack`.
static int reach(int i, int *stack) {
    static int path[MAX_ROWS];
    int top = rows;
    reached_by[i] = i;
    for (int e = 0; e < 2; e++) {
        int length = 0;
        for (int j = left[i][e]; j != -1 && reached_by[j] != i; j = parent[j]) {
            path[length++] = j;
            reached_by[j] = i;
        }
        while (length > 0) stack[--top] = path[--length];
    }
    return top;
}

static void lay_out_columns(int *stack) {
    for (int i = 0; i < rows; i++) reached_by[i] = -1, column_end[i] = 0;
    for (int i = 0; i < rows; i++)
        for (int top = reach(i, stack); top < rows; top++) column_end[stack[top]]++;
    column_begin[0] = 0;
    for (int i = 0; i < rows; i++) {
        column_begin[i + 1] = column_begin[i] + column_end[i];
        column_end[i] = column_begin[i];
    }
}

static void factor_row(int i, int *stack) {
    for (int e = 0; e < 2; e++)
        if (left[i][e] != -1) scratch[left[i][e]] = left_value[i][e];
    double pivot = diagonal[i];
    for (int top = reach(i, stack); top < rows; top++) {
        int j = stack[top];
        double entry = scratch[j] / factor_diagonal[j];
        scratch[j] = 0;
        for (int at = column_begin[j]; at < column_end[j]; at++) scratch[row_of[at]] -= value[at] * entry;
        pivot -= entry * entry;
        row_of[column_end[j]] = i;
        value[column_end[j]++] = entry;
    }
    factor_diagonal[i] = sqrt(pivot);
    scratch[i] = 0;
}

void kernel_run(void) {
    static int stack[MAX_ROWS];
    build_tree();
    lay_out_columns(stack);
    for (int i = 0; i < rows; i++) reached_by[i] = -1;
    for (int i = 0; i < rows; i++) factor_row(i, stack);
}

uint64_t kernel_digest(void) {
    uint64_t digest = 0;
    for (int i = 0; i < rows; i++) digest = suite_mix_real(digest, factor_diagonal[i]);
    for (int at = 0; at < column_begin[rows]; at++)
        digest = suite_mix_real(suite_mix(digest, (uint64_t)row_of[at]), value[at]);
    return digest;
}

// L · Lᵀ · x = A · x for a vector x.
bool kernel_valid(void) {
    static double x[MAX_ROWS], through[MAX_ROWS], expected[MAX_ROWS];
    uint64_t seed = 110;
    for (int i = 0; i < rows; i++) x[i] = suite_uniform(&seed), expected[i] = 0;
    for (int i = 0; i < rows; i++) {
        expected[i] += diagonal[i] * x[i];
        for (int e = 0; e < 2; e++)
            if (left[i][e] != -1) {
                expected[i] += left_value[i][e] * x[left[i][e]];
                expected[left[i][e]] += left_value[i][e] * x[i];
            }
    }
    for (int j = 0; j < rows; j++) {
        through[j] = factor_diagonal[j] * x[j];
        for (int at = column_begin[j]; at < column_end[j]; at++) through[j] += value[at] * x[row_of[at]];
    }
    for (int j = 0; j < rows; j++) {
        expected[j] -= factor_diagonal[j] * through[j];
        for (int at = column_begin[j]; at < column_end[j]; at++)
            expected[row_of[at]] -= value[at] * through[j];
    }
    for (int i = 0; i < rows; i++)
        if (fabs(expected[i]) > 1e-9) return false;
    return true;
}
