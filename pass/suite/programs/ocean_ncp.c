// Currents driven by wind in a square basin, on grids that are arrays of row pointers (as Splash-2's
// ocean-noncontiguous): steps of the barotropic vorticity equation with Arakawa's Jacobian, and a
// successive over-relaxation for the stream function.
#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0x571b68df0cbf4444, 0x1ef70b7b47f31d1e};
const unsigned kernel_passes = 1;

enum { MAX_SIDE = 130 };

typedef double *grid[MAX_SIDE];
static double cells[5][MAX_SIDE][MAX_SIDE];
static grid stream, vorticity, change, wind, start;
static int side, steps, sweeps;
static double largest_residual;

static void attach(grid rows, int which) {
    for (int i = 0; i < MAX_SIDE; i++) rows[i] = cells[which][i];
}

void kernel_setup(bool full) {
    uint64_t seed = 15;
    side = full ? MAX_SIDE : 34;
    steps = full ? 6 : 2;
    sweeps = full ? 10 : 6;
    attach(stream, 0), attach(vorticity, 1), attach(change, 2), attach(wind, 3), attach(start, 4);
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++) {
            wind[i][j] = -sin(3.14159265358979323846 * i / (side - 1));
            start[i][j] = suite_uniform(&seed) - 0.5;
        }
}

// Arakawa's form, which conserves energy and enstrophy: the mean of three ways to write it.
static double jacobian(int i, int j) {
    double *const *p = stream, *const *z = vorticity;
    double plain = (p[i + 1][j] - p[i - 1][j]) * (z[i][j + 1] - z[i][j - 1]) -
                   (p[i][j + 1] - p[i][j - 1]) * (z[i + 1][j] - z[i - 1][j]);
    double by_stream = p[i + 1][j] * (z[i + 1][j + 1] - z[i + 1][j - 1]) -
                       p[i - 1][j] * (z[i - 1][j + 1] - z[i - 1][j - 1]) -
                       p[i][j + 1] * (z[i + 1][j + 1] - z[i - 1][j + 1]) +
                       p[i][j - 1] * (z[i + 1][j - 1] - z[i - 1][j - 1]);
    double by_vorticity = z[i][j + 1] * (p[i + 1][j + 1] - p[i - 1][j + 1]) -
                          z[i][j - 1] * (p[i + 1][j - 1] - p[i - 1][j - 1]) -
                          z[i + 1][j] * (p[i + 1][j + 1] - p[i + 1][j - 1]) +
                          z[i - 1][j] * (p[i - 1][j + 1] - p[i - 1][j - 1]);
    return (plain + by_stream + by_vorticity) / 12;
}

static void compute_change(void) {
    const double beta = 0.2, friction = 0.05, viscosity = 0.1;
    for (int i = 1; i < side - 1; i++)
        for (int j = 1; j < side - 1; j++) {
            double laplacian = vorticity[i - 1][j] + vorticity[i + 1][j] + vorticity[i][j - 1] +
                               vorticity[i][j + 1] - 4 * vorticity[i][j];
            double planetary = beta * (stream[i][j + 1] - stream[i][j - 1]) / 2;
            change[i][j] = 0.05 * wind[i][j] - jacobian(i, j) - planetary - friction * vorticity[i][j] +
                           viscosity * laplacian;
        }
}

// One sweep towards a stream function whose Laplacian is the vorticity; the largest correction.
static double over_relax(void) {
    double largest = 0;
    for (int i = 1; i < side - 1; i++)
        for (int j = 1; j < side - 1; j++) {
            double off = stream[i - 1][j] + stream[i + 1][j] + stream[i][j - 1] + stream[i][j + 1] -
                         4 * stream[i][j] - vorticity[i][j];
            stream[i][j] += 1.7 * off / 4;
            if (fabs(off) > largest) largest = fabs(off);
        }
    return largest;
}

void kernel_run(void) {
    const double dt = 0.1;
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++) {
            stream[i][j] = 0;
            vorticity[i][j] = start[i][j];
        }
    for (int step = 0; step < steps; step++) {
        for (int sweep = 0; sweep < sweeps; sweep++) largest_residual = over_relax();
        compute_change();
        for (int i = 1; i < side - 1; i++)
            for (int j = 1; j < side - 1; j++) vorticity[i][j] += dt * change[i][j];
    }
}

uint64_t kernel_digest(void) {
    uint64_t digest = suite_mix_real(0, largest_residual);
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++)
            digest = suite_mix_real(suite_mix_real(digest, stream[i][j]), vorticity[i][j]);
    return digest;
}

// The stream function stays zero on the coast, and answers to the vorticity.
bool kernel_valid(void) {
    for (int i = 0; i < side; i++)
        if (stream[i][0] != 0 || stream[0][i] != 0 || stream[side - 1][i] != 0) return false;
    return largest_residual < 0.3 && largest_residual > 0;
}
