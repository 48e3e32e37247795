// Molecular dynamics of rigid-ish water, every pair of molecules (as Splash-2's water-nsquared):
// three charged sites a molecule, springs inside, Lennard-Jones between oxygens, periodic box,
// velocity Verlet. Units: ångström, picosecond, atomic mass, energies accordingly.
#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0xe76d5d7b65fc0dd5, 0x5d89ba9db0f57d46};
const unsigned kernel_passes = 2;

enum { SITES = 3, MAX_MOLECULES = 216 };

typedef double vector[3];
static vector start[MAX_MOLECULES][SITES], position[MAX_MOLECULES][SITES], velocity[MAX_MOLECULES][SITES],
    force[MAX_MOLECULES][SITES];
static int molecules, steps;
static double box, potential;

static const double mass[SITES] = {16, 1, 1};
static const double charge[SITES] = {-0.82, 0.41, 0.41};
static const double COULOMB = 138935.5 / 100, SPRING = 30000, BOND = 1.0, ANGLE_BOND = 1.633, CUTOFF = 8;
static const double LJ_EPSILON = 65, LJ_SIGMA = 3.166, DT = 0.0002;

void kernel_setup(bool full) {
    uint64_t seed = 16;
    int side = full ? 6 : 3;
    molecules = side * side * side;
    steps = full ? 5 : 2;
    box = 3.1 * side;
    for (int m = 0; m < molecules; m++) {
        int place[3] = {m % side, m / side % side, m / side / side};
        for (int axis = 0; axis < 3; axis++) {
            double at = 3.1 * place[axis] + 0.2 * suite_uniform(&seed);
            for (int s = 0; s < SITES; s++) start[m][s][axis] = at;
        }
        start[m][1][0] += 0.8165, start[m][1][1] += 0.5774;
        start[m][2][0] -= 0.8165, start[m][2][1] += 0.5774;
    }
}

static void spring(vector *at, vector *force_on, int a, int b, double rest) {
    double way[3], square = 0;
    for (int axis = 0; axis < 3; axis++) {
        way[axis] = at[b][axis] - at[a][axis];
        square += way[axis] * way[axis];
    }
    double length = sqrt(square), pull = SPRING * (length - rest) / length;
    potential += 0.5 * SPRING * (length - rest) * (length - rest);
    for (int axis = 0; axis < 3; axis++) {
        force_on[a][axis] += pull * way[axis];
        force_on[b][axis] -= pull * way[axis];
    }
}

static double nearest_image(double way) {
    if (way > box / 2) return way - box;
    if (way < -box / 2) return way + box;
    return way;
}

// The shift that brings the oxygen of `b` next to that of `a` holds for all their sites.
static void attract(int a, int b) {
    double shift[3], square = 0;
    for (int axis = 0; axis < 3; axis++) {
        double way = position[b][0][axis] - position[a][0][axis], nearest = nearest_image(way);
        shift[axis] = nearest - way;
        square += nearest * nearest;
    }
    if (square > CUTOFF * CUTOFF) return;
    for (int s = 0; s < SITES; s++)
        for (int t = 0; t < SITES; t++) {
            double way[3], distance = 0;
            for (int axis = 0; axis < 3; axis++) {
                way[axis] = position[b][t][axis] + shift[axis] - position[a][s][axis];
                distance += way[axis] * way[axis];
            }
            double inverse = 1 / distance, energy = COULOMB * charge[s] * charge[t] * sqrt(inverse),
                   push = energy * inverse;
            if (s == 0 && t == 0) {
                double ratio = LJ_SIGMA * LJ_SIGMA * inverse, sixth = ratio * ratio * ratio;
                energy += 4 * LJ_EPSILON * (sixth * sixth - sixth);
                push += 24 * LJ_EPSILON * (2 * sixth * sixth - sixth) * inverse;
            }
            potential += energy;
            for (int axis = 0; axis < 3; axis++) {
                force[a][s][axis] -= push * way[axis];
                force[b][t][axis] += push * way[axis];
            }
        }
}

static void compute_forces(void) {
    potential = 0;
    for (int m = 0; m < molecules; m++)
        for (int s = 0; s < SITES; s++) force[m][s][0] = force[m][s][1] = force[m][s][2] = 0;
    for (int m = 0; m < molecules; m++) {
        spring(position[m], force[m], 0, 1, BOND);
        spring(position[m], force[m], 0, 2, BOND);
        spring(position[m], force[m], 1, 2, ANGLE_BOND);
    }
    for (int a = 0; a < molecules; a++)
        for (int b = a + 1; b < molecules; b++) attract(a, b);
}

static void kick(double dt) {
    for (int m = 0; m < molecules; m++)
        for (int s = 0; s < SITES; s++)
            for (int axis = 0; axis < 3; axis++) velocity[m][s][axis] += force[m][s][axis] / mass[s] * dt;
}

void kernel_run(void) {
    for (int m = 0; m < molecules; m++)
        for (int s = 0; s < SITES; s++)
            for (int axis = 0; axis < 3; axis++) {
                position[m][s][axis] = start[m][s][axis];
                velocity[m][s][axis] = 0;
            }
    compute_forces();
    for (int step = 0; step < steps; step++) {
        kick(DT / 2);
        for (int m = 0; m < molecules; m++)
            for (int s = 0; s < SITES; s++)
                for (int axis = 0; axis < 3; axis++) position[m][s][axis] += velocity[m][s][axis] * DT;
        compute_forces();
        kick(DT / 2);
    }
}

uint64_t kernel_digest(void) {
    uint64_t digest = suite_mix_real(0, potential);
    for (int m = 0; m < molecules; m++)
        for (int s = 0; s < SITES; s++)
            for (int axis = 0; axis < 3; axis++) digest = suite_mix_real(digest, position[m][s][axis]);
    return digest;
}

// Action and reaction: the momentum, zero at first, stays zero. The molecules hold together.
bool kernel_valid(void) {
    double momentum[3] = {0, 0, 0};
    for (int m = 0; m < molecules; m++)
        for (int s = 0; s < SITES; s++)
            for (int axis = 0; axis < 3; axis++) {
                momentum[axis] += mass[s] * velocity[m][s][axis];
                if (fabs(position[m][s][axis] - position[m][0][axis]) > 1.3) return false;
            }
    return fabs(momentum[0]) + fabs(momentum[1]) + fabs(momentum[2]) < 1e-6;
}
