// The solver of Splash-2's ocean: a red-black Gauss-Seidel multigrid for Poisson's equation on a
// square basin, grids stored as contiguous arrays. V-cycles, three grids deep or more.
#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0x4cbb12018370c2e9, 0x8e84132d5da38056};
const unsigned kernel_passes = 2;

enum { LEVELS = 7, MAX_SIDE = 257, CELLS = MAX_SIDE * MAX_SIDE * 3 / 2 };

struct grid {
    int side; // with the boundary on either end
    double *value, *source;
};

static double values[CELLS], sources[CELLS];
static struct grid grids[LEVELS];
static int levels, cycles;
static double residual_first, residual_last;

void kernel_setup(bool full) {
    uint64_t seed = 14;
    cycles = full ? 8 : 2;
    levels = full ? LEVELS : 4;
    size_t used = 0;
    for (int level = 0; level < levels; level++) {
        int side = ((full ? 256 : 32) >> level) + 1;
        grids[level] = (struct grid){side, values + used, sources + used};
        used += (size_t)(side * side);
    }
    struct grid *fine = &grids[0];
    for (int i = 0; i < fine->side * fine->side; i++) fine->source[i] = suite_uniform(&seed) - 0.5;
}

// One sweep over the cells of either colour: each becomes what its neighbours and its source ask for.
static void relax(struct grid *grid) {
    int side = grid->side;
    for (int colour = 0; colour < 2; colour++)
        for (int i = 1; i < side - 1; i++) {
            double *row = grid->value + i * side;
            const double *source = grid->source + i * side;
            for (int j = 1 + ((i + colour) & 1); j < side - 1; j += 2)
                row[j] = 0.25 * (row[j - 1] + row[j + 1] + row[j - side] + row[j + side] - source[j]);
        }
}

static double residual(const struct grid *grid, int i, int j) {
    const double *at = grid->value + i * grid->side + j;
    return grid->source[i * grid->side + j] - (at[-1] + at[1] + at[-grid->side] + at[grid->side] - 4 * at[0]);
}

// The residual, weighted with its neighbours', becomes the source of the coarser grid, whose cells are twice
// as wide (hence the factor 4); its solution starts at zero.
static void restrict_residual(const struct grid *fine, struct grid *coarse) {
    for (int i = 0; i < coarse->side; i++)
        for (int j = 0; j < coarse->side; j++) coarse->value[i * coarse->side + j] = 0;
    for (int i = 1; i < coarse->side - 1; i++)
        for (int j = 1; j < coarse->side - 1; j++) {
            double around = residual(fine, 2 * i - 1, 2 * j) + residual(fine, 2 * i + 1, 2 * j) +
                            residual(fine, 2 * i, 2 * j - 1) + residual(fine, 2 * i, 2 * j + 1);
            coarse->source[i * coarse->side + j] = 4 * (residual(fine, 2 * i, 2 * j) / 2 + around / 8);
        }
}

// Bilinear between the coarser grid's points.
static void add_correction(const struct grid *coarse, struct grid *fine) {
    for (int i = 1; i < fine->side - 1; i++) {
        const double *above = coarse->value + i / 2 * coarse->side,
                     *below = coarse->value + (i + 1) / 2 * coarse->side;
        double *row = fine->value + i * fine->side;
        for (int j = 1; j < fine->side - 1; j++) {
            int left = j / 2, right = (j + 1) / 2;
            row[j] += 0.25 * (above[left] + above[right] + below[left] + below[right]);
        }
    }
}

static double sum_of_squares(const struct grid *grid) {
    double sum = 0;
    for (int i = 1; i < grid->side - 1; i++)
        for (int j = 1; j < grid->side - 1; j++) {
            double off = residual(grid, i, j);
            sum += off * off;
        }
    return sum;
}

static void cycle(int level) {
    relax(&grids[level]);
    relax(&grids[level]);
    if (level + 1 < levels) {
        restrict_residual(&grids[level], &grids[level + 1]);
        cycle(level + 1);
        add_correction(&grids[level + 1], &grids[level]);
    }
    relax(&grids[level]);
}

void kernel_run(void) {
    struct grid *fine = &grids[0];
    for (int i = 0; i < fine->side; i++)
        for (int j = 0; j < fine->side; j++) fine->value[i * fine->side + j] = 0;
    residual_first = sum_of_squares(fine);
    for (int i = 0; i < cycles; i++) cycle(0);
    residual_last = sum_of_squares(fine);
}

uint64_t kernel_digest(void) {
    uint64_t digest = suite_mix_real(suite_mix_real(0, residual_first), residual_last);
    for (int i = 0; i < grids[0].side * grids[0].side; i++)
        digest = suite_mix_real(digest, grids[0].value[i]);
    return digest;
}

bool kernel_valid(void) { return residual_last < residual_first * 1e-2 && residual_first > 1; }
