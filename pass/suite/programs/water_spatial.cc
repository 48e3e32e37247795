// Molecular dynamics in cells (as Splash-2's water-spatial): only molecules of neighbouring cells
// meet, and they move from list to list. One Lennard-Jones site a molecule, reduced units.
#include <array>
#include <vector>

#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0xbc365231467805c6, 0xa473384814401ced};
const unsigned kernel_passes = 1;

namespace {

struct Vector {
    double x = 0, y = 0, z = 0;
    Vector operator+(const Vector &o) const { return {x + o.x, y + o.y, z + o.z}; }
    Vector operator-(const Vector &o) const { return {x - o.x, y - o.y, z - o.z}; }
    Vector operator*(double f) const { return {x * f, y * f, z * f}; }
    double square() const { return x * x + y * y + z * z; }
};

struct Molecule {
    Vector position, velocity, force;
    Molecule *next = nullptr; // in its cell's list
};

constexpr double CUTOFF = 2.5, DT = 0.002;
constexpr int MAX_CELLS = 8;

std::vector<Molecule> start, molecules;
std::array<Molecule *, MAX_CELLS * MAX_CELLS * MAX_CELLS> cells;
int cells_a_side, steps;
double box;

int wrapped(int index) { return (index + cells_a_side) % cells_a_side; }
int cell_index(int i, int j, int k) {
    return (wrapped(i) * cells_a_side + wrapped(j)) * cells_a_side + wrapped(k);
}
int along(double at) { return static_cast<int>(at / box * cells_a_side) % cells_a_side; }

double inside(double at) { return at < 0 ? at + box : at >= box ? at - box : at; }
double nearest(double way) { return way > box / 2 ? way - box : way < -box / 2 ? way + box : way; }

void sort_into_cells() {
    cells.fill(nullptr);
    for (Molecule &molecule : molecules) {
        Molecule *&head = cells[cell_index(along(molecule.position.x), along(molecule.position.y),
                                           along(molecule.position.z))];
        molecule.next = head;
        head = &molecule;
    }
}

void push_apart(Molecule &a, Molecule &b) {
    Vector way = b.position - a.position;
    way = {nearest(way.x), nearest(way.y), nearest(way.z)};
    const double square = way.square();
    if (square > CUTOFF * CUTOFF) return;
    const double inverse = 1 / square, sixth = inverse * inverse * inverse;
    const Vector force = way * (24 * inverse * sixth * (2 * sixth - 1));
    a.force = a.force - force;
    b.force = b.force + force;
}

// Pairs within a cell, and with each of the 13 neighbours that come after it: every pair once.
void meet_neighbours(int i, int j, int k) {
    Molecule *const head = cells[cell_index(i, j, k)];
    for (Molecule *a = head; a != nullptr; a = a->next)
        for (Molecule *b = a->next; b != nullptr; b = b->next) push_apart(*a, *b);
    for (int di = 0; di <= 1; di++)
        for (int dj = di == 0 ? 0 : -1; dj <= 1; dj++)
            for (int dk = di == 0 && dj == 0 ? 1 : -1; dk <= 1; dk++)
                for (Molecule *b = cells[cell_index(i + di, j + dj, k + dk)]; b != nullptr; b = b->next)
                    for (Molecule *a = head; a != nullptr; a = a->next) push_apart(*a, *b);
}

void compute_forces() {
    sort_into_cells();
    for (Molecule &molecule : molecules) molecule.force = {};
    for (int i = 0; i < cells_a_side; i++)
        for (int j = 0; j < cells_a_side; j++)
            for (int k = 0; k < cells_a_side; k++) meet_neighbours(i, j, k);
}

void kick() {
    for (Molecule &molecule : molecules) molecule.velocity = molecule.velocity + molecule.force * (DT / 2);
}

} // namespace

void kernel_setup(bool full) {
    uint64_t seed = 17;
    const int side = full ? 10 : 7;
    cells_a_side = full ? 4 : 3;
    steps = full ? 6 : 1;
    box = 1.1 * side;
    Vector drift;
    for (int m = 0; m < side * side * side; m++) {
        Molecule molecule;
        molecule.position =
            Vector{m % side + 0.2 * suite_uniform(&seed), m / side % side + 0.2 * suite_uniform(&seed),
                   m / side / side + 0.2 * suite_uniform(&seed)} *
            1.1;
        molecule.velocity = {suite_uniform(&seed) - 0.5, suite_uniform(&seed) - 0.5,
                             suite_uniform(&seed) - 0.5};
        drift = drift + molecule.velocity;
        start.push_back(molecule);
    }
    for (Molecule &molecule : start)
        molecule.velocity = molecule.velocity - drift * (1.0 / static_cast<double>(start.size()));
    molecules = start;
}

void kernel_run(void) {
    for (size_t i = 0; i < molecules.size(); i++) {
        molecules[i].position = start[i].position;
        molecules[i].velocity = start[i].velocity;
    }
    compute_forces();
    for (int step = 0; step < steps; step++) {
        kick();
        for (Molecule &molecule : molecules) {
            const Vector moved = molecule.position + molecule.velocity * DT;
            molecule.position = {inside(moved.x), inside(moved.y), inside(moved.z)};
        }
        compute_forces();
        kick();
    }
}

uint64_t kernel_digest(void) {
    uint64_t digest = 0;
    for (const Molecule &molecule : molecules) {
        digest = suite_mix_real(suite_mix_real(digest, molecule.position.x), molecule.position.y);
        digest = suite_mix_real(suite_mix_real(digest, molecule.position.z), molecule.velocity.x);
    }
    return digest;
}

// Momentum stays zero; the forces are those of all pairs, looked at for some molecules.
bool kernel_valid(void) {
    Vector momentum;
    for (const Molecule &molecule : molecules) momentum = momentum + molecule.velocity;
    if (momentum.square() > 1e-12) return false;
    for (size_t i = 0; i < molecules.size(); i += 100) {
        Vector force;
        for (const Molecule &other : molecules) {
            if (&other == &molecules[i]) continue;
            Molecule here = molecules[i], there = other;
            here.force = {};
            push_apart(here, there);
            force = force + here.force;
        }
        if ((force - molecules[i].force).square() > 1e-9) return false;
    }
    return true;
}
