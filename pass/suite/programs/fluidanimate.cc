// A fluid of smoothed particles (as Parsec's fluidanimate): cells, densities, pressure and viscosity
// between neighbours, walls, explicit steps.
#include <cmath>
#include <vector>

#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0x748faca4af7efd50, 0x2a6fb61ef27c3d93};
const unsigned kernel_passes = 1;

namespace {

constexpr double H = 0.05, REST = 1000, STIFFNESS = 3, VISCOSITY = 0.4, DT = 0.002,
                 PI = 3.14159265358979323846;
constexpr int PER_CELL = 24;

struct Vec {
    double x = 0, y = 0, z = 0;
    Vec operator+(const Vec &o) const { return {x + o.x, y + o.y, z + o.z}; }
    Vec operator-(const Vec &o) const { return {x - o.x, y - o.y, z - o.z}; }
    Vec operator*(double f) const { return {x * f, y * f, z * f}; }
    double square() const { return x * x + y * y + z * z; }
};

struct Particle {
    Vec position, velocity, acceleration;
    double density = 0;
};

struct Cell {
    int count = 0;
    int members[PER_CELL];
};

std::vector<Particle> start, particles;
std::vector<Cell> cells;
int side, steps;
double mass, size_of_box;

Cell &cell(int i, int j, int k) { return cells[static_cast<size_t>((i * side + j) * side + k)]; }
int clamp(int i) { return i < 0 ? 0 : i >= side ? side - 1 : i; }
Cell &cell_of(const Vec &at) {
    return cell(clamp(static_cast<int>(at.x / H)), clamp(static_cast<int>(at.y / H)),
                clamp(static_cast<int>(at.z / H)));
}

void fill_cells() {
    for (Cell &each : cells) each.count = 0;
    for (size_t i = 0; i < particles.size(); i++) {
        Cell &home = cell_of(particles[i].position);
        if (home.count < PER_CELL) home.members[home.count++] = static_cast<int>(i);
    }
}

template <typename Visit> void for_pairs(Visit visit) {
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++)
            for (int k = 0; k < side; k++) {
                const Cell &here = cell(i, j, k);
                for (int a = 0; a < here.count; a++)
                    for (int m = clamp(i - 1); m <= clamp(i + 1); m++)
                        for (int n = clamp(j - 1); n <= clamp(j + 1); n++)
                            for (int o = clamp(k - 1); o <= clamp(k + 1); o++) {
                                const Cell &there = cell(m, n, o);
                                for (int b = 0; b < there.count; b++)
                                    if (there.members[b] < here.members[a])
                                        visit(particles[static_cast<size_t>(here.members[a])],
                                              particles[static_cast<size_t>(there.members[b])]);
                            }
            }
}

void compute_densities() {
    const double poly6 = 315 / (64 * PI * std::pow(H, 9));
    for (Particle &each : particles) each.density = mass * poly6 * std::pow(H, 6);
    for_pairs([=](Particle &a, Particle &b) {
        const double left = H * H - (a.position - b.position).square();
        if (left <= 0) return;
        const double share = mass * poly6 * left * left * left;
        a.density += share;
        b.density += share;
    });
}

void compute_accelerations() {
    const double spiky = 45 / (PI * std::pow(H, 6));
    for (Particle &each : particles) each.acceleration = {0, -9.8, 0};
    for_pairs([=](Particle &a, Particle &b) {
        const Vec way = a.position - b.position;
        const double square = way.square();
        if (square >= H * H || square < 1e-12) return;
        const double distance = std::sqrt(square), left = H - distance;
        const double pressure = STIFFNESS * (a.density + b.density - 2 * REST) * 0.5;
        const Vec push = way * (mass * spiky * pressure * left * left / distance);
        const Vec drag = (b.velocity - a.velocity) * (mass * spiky * VISCOSITY * left);
        const Vec both = (push + drag) * (1 / (a.density * b.density));
        a.acceleration = a.acceleration + both;
        b.acceleration = b.acceleration - both;
    });
}

void bounce(double &at, double &speed) {
    if (at < 0) at = -at, speed *= -0.5;
    if (at > size_of_box) at = 2 * size_of_box - at, speed *= -0.5;
}

void move() {
    for (Particle &each : particles) {
        each.velocity = each.velocity + each.acceleration * DT;
        each.position = each.position + each.velocity * DT;
        bounce(each.position.x, each.velocity.x);
        bounce(each.position.y, each.velocity.y);
        bounce(each.position.z, each.velocity.z);
    }
}

} // namespace

void kernel_setup(bool full) {
    uint64_t seed = 26;
    const int per_side = full ? 14 : 6;
    side = full ? 12 : 6;
    steps = full ? 3 : 2;
    size_of_box = H * side;
    const double gap = 0.55 * H;
    mass = REST * gap * gap * gap;
    for (int i = 0; i < per_side; i++)
        for (int j = 0; j < per_side; j++)
            for (int k = 0; k < per_side; k++) {
                Particle each;
                each.position = {(i + 0.4 * suite_uniform(&seed)) * gap,
                                 (j + 0.4 * suite_uniform(&seed)) * gap,
                                 (k + 0.4 * suite_uniform(&seed)) * gap};
                start.push_back(each);
            }
    particles = start;
    cells.resize(static_cast<size_t>(side * side * side));
}

void kernel_run(void) {
    for (size_t i = 0; i < particles.size(); i++) {
        particles[i].position = start[i].position;
        particles[i].velocity = {};
    }
    for (int step = 0; step < steps; step++) {
        fill_cells();
        compute_densities();
        compute_accelerations();
        move();
    }
}

uint64_t kernel_digest(void) {
    uint64_t digest = 0;
    for (const Particle &each : particles) {
        digest = suite_mix_real(suite_mix_real(digest, each.position.x), each.position.y);
        digest = suite_mix_real(suite_mix_real(digest, each.position.z), each.density);
    }
    return digest;
}

// Everyone is in the box and had its cell; the densities are those of a fluid.
bool kernel_valid(void) {
    int in_cells = 0;
    for (const Cell &each : cells) in_cells += each.count;
    if (in_cells != static_cast<int>(particles.size())) return false;
    for (const Particle &each : particles) {
        if (each.position.x < 0 || each.position.y < 0 || each.position.z < 0) return false;
        if (each.position.x > size_of_box || each.position.y > size_of_box || each.position.z > size_of_box)
            return false;
        if (each.density < REST * 0.2 || each.density > REST * 5) return false;
    }
    return true;
}
