// Potentials of charges in the plane by the fast multipole method (as Splash-2's fmm), on a uniform
// quadtree: Greengard's and Rokhlin's expansions of the complex logarithm.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0x85513d8c3c1f4e5e, 0x8b6a6cd05109a330};
const unsigned kernel_passes = 2;

namespace {

constexpr int TERMS = 12, MAX_LEVELS = 6;

// Plain arithmetic: std::complex's product looks for infinities.
struct Complex {
    double re = 0, im = 0;
    Complex operator+(Complex o) const { return {re + o.re, im + o.im}; }
    Complex operator-(Complex o) const { return {re - o.re, im - o.im}; }
    Complex operator*(Complex o) const { return {re * o.re - im * o.im, re * o.im + im * o.re}; }
    Complex operator*(double f) const { return {re * f, im * f}; }
    Complex inverse() const {
        const double square = re * re + im * im;
        return {re / square, -im / square};
    }
    Complex logarithm() const { return {0.5 * std::log(re * re + im * im), std::atan2(im, re)}; }
};

struct Charge {
    Complex at;
    double strength;
};

struct Box {
    Complex far[TERMS + 1];   // a0 log z + Σ a_k / z^k, seen from far away
    Complex local[TERMS + 1]; // Σ b_k z^k, due to what is far away
};

std::vector<Charge> charges; // sorted by leaf
std::vector<size_t> leaf_begin;
std::vector<double> potential;
std::vector<Box> boxes[MAX_LEVELS];
int depth;
double choose[2 * TERMS + 1][2 * TERMS + 1];

int side_of(int level) { return 1 << level; }
Complex centre(int level, int i, int j) { return {(i + 0.5) / side_of(level), (j + 0.5) / side_of(level)}; }
Box &box(int level, int i, int j) { return boxes[level][static_cast<size_t>(i * side_of(level) + j)]; }

void expand_leaf(int i, int j) {
    Box &leaf = box(depth, i, j);
    const size_t index = static_cast<size_t>(i * side_of(depth) + j);
    for (size_t c = leaf_begin[index]; c < leaf_begin[index + 1]; c++) {
        const Complex way = charges[c].at - centre(depth, i, j);
        Complex power{charges[c].strength, 0};
        leaf.far[0].re += charges[c].strength;
        for (int k = 1; k <= TERMS; k++) {
            power = power * way;
            leaf.far[k] = leaf.far[k] - power * (1.0 / k);
        }
    }
}

void shift_to_parent(const Box &child, Complex way, Box &parent) {
    Complex powers[TERMS + 1] = {{1, 0}};
    for (int k = 1; k <= TERMS; k++) powers[k] = powers[k - 1] * way;
    parent.far[0] = parent.far[0] + child.far[0];
    for (int l = 1; l <= TERMS; l++) {
        Complex sum = child.far[0] * powers[l] * (-1.0 / l);
        for (int k = 1; k <= l; k++) sum = sum + child.far[k] * powers[l - k] * choose[l - 1][k - 1];
        parent.far[l] = parent.far[l] + sum;
    }
}

void far_to_local(const Box &source, Complex way, Box &target) {
    const Complex inverse = way.inverse();
    Complex scaled[TERMS + 1], powers{1, 0}; // (-1)^k a_k / way^k
    for (int k = 1; k <= TERMS; k++) {
        powers = powers * inverse * -1.0;
        scaled[k] = source.far[k] * powers;
    }
    Complex sum = source.far[0] * (way * -1.0).logarithm();
    for (int k = 1; k <= TERMS; k++) sum = sum + scaled[k];
    target.local[0] = target.local[0] + sum;
    Complex power{1, 0};
    for (int l = 1; l <= TERMS; l++) {
        power = power * inverse;
        sum = source.far[0] * (-1.0 / l);
        for (int k = 1; k <= TERMS; k++) sum = sum + scaled[k] * choose[l + k - 1][k - 1];
        target.local[l] = target.local[l] + sum * power;
    }
}

void shift_to_child(const Box &parent, Complex way, Box &child) {
    Complex shifted[TERMS + 1];
    for (int k = 0; k <= TERMS; k++) shifted[k] = parent.local[k];
    for (int j = 0; j < TERMS; j++)
        for (int k = TERMS - j - 1; k < TERMS; k++) shifted[k] = shifted[k] + shifted[k + 1] * way;
    for (int k = 0; k <= TERMS; k++) child.local[k] = child.local[k] + shifted[k];
}

void go_up() {
    for (int i = 0; i < side_of(depth); i++)
        for (int j = 0; j < side_of(depth); j++) expand_leaf(i, j);
    for (int level = depth; level > 2; level--)
        for (int i = 0; i < side_of(level); i++)
            for (int j = 0; j < side_of(level); j++)
                shift_to_parent(box(level, i, j), centre(level, i, j) - centre(level - 1, i / 2, j / 2),
                                box(level - 1, i / 2, j / 2));
}

// Children of the parent's neighbours that are no neighbours.
void interact(int level, int i, int j) {
    for (int m = std::max(0, (i / 2 - 1) * 2); m < std::min(side_of(level), (i / 2 + 2) * 2); m++)
        for (int n = std::max(0, (j / 2 - 1) * 2); n < std::min(side_of(level), (j / 2 + 2) * 2); n++)
            if (std::abs(m - i) > 1 || std::abs(n - j) > 1)
                far_to_local(box(level, m, n), centre(level, m, n) - centre(level, i, j), box(level, i, j));
}

void go_down() {
    for (int level = 2; level <= depth; level++)
        for (int i = 0; i < side_of(level); i++)
            for (int j = 0; j < side_of(level); j++) {
                if (level > 2)
                    shift_to_child(box(level - 1, i / 2, j / 2),
                                   centre(level, i, j) - centre(level - 1, i / 2, j / 2), box(level, i, j));
                interact(level, i, j);
            }
}

double near_potential(const Charge &charge, size_t leaf) {
    double sum = 0;
    for (size_t c = leaf_begin[leaf]; c < leaf_begin[leaf + 1]; c++) {
        const Complex way = charges[c].at - charge.at;
        const double square = way.re * way.re + way.im * way.im;
        if (square > 0) sum += 0.5 * charges[c].strength * std::log(square);
    }
    return sum;
}

void evaluate_leaf(int i, int j) {
    const int side = side_of(depth);
    const size_t leaf = static_cast<size_t>(i * side + j);
    for (size_t c = leaf_begin[leaf]; c < leaf_begin[leaf + 1]; c++) {
        const Complex way = charges[c].at - centre(depth, i, j);
        Complex sum = box(depth, i, j).local[TERMS];
        for (int k = TERMS - 1; k >= 0; k--) sum = sum * way + box(depth, i, j).local[k];
        double total = sum.re;
        for (int m = std::max(0, i - 1); m <= std::min(side - 1, i + 1); m++)
            for (int n = std::max(0, j - 1); n <= std::min(side - 1, j + 1); n++)
                total += near_potential(charges[c], static_cast<size_t>(m * side + n));
        potential[c] = total;
    }
}

} // namespace

void kernel_setup(bool full) {
    uint64_t seed = 19;
    depth = full ? 4 : 3;
    const int side = side_of(depth);
    leaf_begin.push_back(0);
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++) {
            for (uint32_t n = suite_below(&seed, 20); n > 0; n--) {
                const Complex at{(i + suite_uniform(&seed)) / side, (j + suite_uniform(&seed)) / side};
                charges.push_back({at, suite_uniform(&seed) - 0.5});
            }
            leaf_begin.push_back(charges.size());
        }
    potential.resize(charges.size());
    for (int level = 0; level <= depth; level++)
        boxes[level].resize(static_cast<size_t>(side_of(level) * side_of(level)));
    for (int n = 0; n <= 2 * TERMS; n++)
        for (int k = 0; k <= n; k++)
            choose[n][k] = k == 0 || k == n ? 1 : choose[n - 1][k - 1] + choose[n - 1][k];
}

void kernel_run(void) {
    for (int level = 2; level <= depth; level++)
        for (Box &each : boxes[level]) each = Box{};
    go_up();
    go_down();
    for (int i = 0; i < side_of(depth); i++)
        for (int j = 0; j < side_of(depth); j++) evaluate_leaf(i, j);
}

uint64_t kernel_digest(void) {
    uint64_t digest = 0;
    for (double value : potential) digest = suite_mix_real(digest, value);
    return digest;
}

// Against the sum over all charges, for some of them.
bool kernel_valid(void) {
    for (size_t c = 0; c < charges.size(); c += 50) {
        double sum = 0;
        for (size_t leaf = 0; leaf + 1 < leaf_begin.size(); leaf++) sum += near_potential(charges[c], leaf);
        if (std::abs(sum - potential[c]) > 1e-3) return false;
    }
    return true;
}
