// Swaptions by Monte Carlo under Heath, Jarrow and Morton (as Parsec's swaptions): three factors,
// forward rates evolve path by path, the payoff is discounted along the path.
#include <algorithm>
#include <cmath>
#include <vector>

#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0xb9f231dc547b9176, 0x9f63e246fad66bd4};
const unsigned kernel_passes = 1;

namespace {

constexpr int STEPS = 11, FACTORS = 3;
constexpr double DT = 0.5;

struct Swaption {
    double strike;
    int maturity; // in steps
    double mean = 0, error = 0;
};

std::vector<Swaption> swaptions;
int trials;
double forward[STEPS], factor[FACTORS][STEPS], total_drift[STEPS];

// Acklam's rational approximation of the inverse of the normal distribution (error below 1.2e-9).
double inverse_normal(double p) {
    static const double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                               1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
    static const double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                               6.680131188771972e+01, -1.328068155288572e+01};
    static const double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                               -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
    static const double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                               3.754408661907416e+00};
    if (p > 0.5) return -inverse_normal(1 - p);
    if (p < 0.02425) {
        const double q = std::sqrt(-2 * std::log(p));
        return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
               ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
    }
    const double q = p - 0.5, r = q * q;
    return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
           (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
}

// What forbids arbitrage: half the increments of the squared integrals of each factor.
void compute_drift() {
    for (int j = 0; j < STEPS; j++) total_drift[j] = 0;
    for (int f = 0; f < FACTORS; f++) {
        double integral = 0;
        for (int j = 0; j < STEPS; j++) {
            const double next = integral + factor[f][j] * DT;
            total_drift[j] += 0.5 * (next * next - integral * integral) / DT;
            integral = next;
        }
    }
}

void simulate_path(uint64_t &seed, double path[STEPS][STEPS]) {
    for (int j = 0; j < STEPS; j++) path[0][j] = forward[j];
    for (int step = 1; step < STEPS; step++) {
        double shock[FACTORS];
        for (double &each : shock) each = inverse_normal(suite_uniform(&seed) * (1 - 1e-12) + 5e-13);
        for (int j = 0; j < STEPS - step; j++) {
            double moved = path[step - 1][j + 1] + total_drift[j] * DT;
            for (int f = 0; f < FACTORS; f++) moved += std::sqrt(DT) * factor[f][j] * shock[f];
            path[step][j] = moved;
        }
    }
}

double payoff(const Swaption &swaption, const double path[STEPS][STEPS]) {
    double discount = 0;
    for (int step = 0; step < swaption.maturity; step++) discount += path[step][0] * DT;
    double growth = 0, fixed = 0, bond = 1;
    for (int j = 0; j < STEPS - swaption.maturity; j++) {
        growth += path[swaption.maturity][j] * DT;
        bond = std::exp(-growth);
        fixed += swaption.strike * DT * bond;
    }
    return std::max(fixed + bond - 1, 0.0) * std::exp(-discount);
}

} // namespace

void kernel_setup(bool full) {
    uint64_t seed = 23;
    trials = full ? 900 : 200;
    for (int i = 0; i < (full ? 10 : 3); i++)
        swaptions.push_back({0.04 + 0.03 * suite_uniform(&seed), 2 + i % 6});
    for (int j = 0; j < STEPS; j++) {
        forward[j] = 0.05 + 0.001 * j;
        factor[0][j] = 0.01;
        factor[1][j] = 0.008 * std::exp(-0.3 * j);
        factor[2][j] = 0.004 * (1 - 0.2 * j);
    }
    compute_drift();
}

void kernel_run(void) {
    double path[STEPS][STEPS];
    for (size_t i = 0; i < swaptions.size(); i++) {
        uint64_t seed = 230 + i;
        double sum = 0, squares = 0;
        for (int trial = 0; trial < trials; trial++) {
            simulate_path(seed, path);
            const double paid = payoff(swaptions[i], path);
            sum += paid;
            squares += paid * paid;
        }
        swaptions[i].mean = sum / trials;
        swaptions[i].error = std::sqrt((squares / trials - swaptions[i].mean * swaptions[i].mean) / trials);
    }
}

uint64_t kernel_digest(void) {
    uint64_t digest = 0;
    for (const Swaption &swaption : swaptions)
        digest = suite_mix_real(suite_mix_real(digest, swaption.mean), swaption.error);
    return digest;
}

// The right to receive the fixed rate is worth at least what the swap is worth today.
bool kernel_valid(void) {
    for (const Swaption &swaption : swaptions) {
        double growth = 0, fixed = 0, first = 1;
        for (int j = 0; j < STEPS; j++) {
            growth += forward[j] * DT;
            if (j + 1 == swaption.maturity) first = std::exp(-growth);
            if (j >= swaption.maturity) fixed += swaption.strike * DT * std::exp(-growth);
        }
        const double swap = fixed + std::exp(-growth) - first;
        if (swaption.mean < swap - 4 * swaption.error || swaption.mean > swap + 0.2 || swaption.error <= 0)
            return false;
    }
    return true;
}
