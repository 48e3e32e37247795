// Prices of European options in closed form (as Parsec's blackscholes), the normal distribution by
// Abramowitz' and Stegun's polynomial 26.2.17.
#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0x79059d3e5ab1b683, 0xd434c31e9f8aaa49};
const unsigned kernel_passes = 36;

enum { MAX_OPTIONS = 5000 };

struct option {
    double spot, strike, rate, volatility, years;
    bool is_put;
};

static struct option options[MAX_OPTIONS];
static double price[MAX_OPTIONS];
static int count;

void kernel_setup(bool full) {
    uint64_t seed = 22;
    count = full ? MAX_OPTIONS : 2000;
    for (int i = 0; i + 1 < count; i += 2) { // a call and the put of the same terms
        options[i].spot = 20 + 100 * suite_uniform(&seed);
        options[i].strike = options[i].spot * (0.7 + 0.6 * suite_uniform(&seed));
        options[i].rate = 0.01 + 0.09 * suite_uniform(&seed);
        options[i].volatility = 0.05 + 0.6 * suite_uniform(&seed);
        options[i].years = 0.05 + 2 * suite_uniform(&seed);
        options[i].is_put = false;
        options[i + 1] = options[i];
        options[i + 1].is_put = true;
    }
}

static double normal_below(double x) {
    double away = fabs(x), k = 1 / (1 + 0.2316419 * away);
    double tail =
        exp(-0.5 * away * away) * 0.39894228040143270286 *
        (k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))));
    return x < 0 ? tail : 1 - tail;
}

static double price_of(const struct option *option) {
    double spread = option->volatility * sqrt(option->years);
    double drift = option->rate + 0.5 * option->volatility * option->volatility;
    double d1 = (log(option->spot / option->strike) + drift * option->years) / spread, d2 = d1 - spread;
    double discounted = option->strike * exp(-option->rate * option->years);
    if (option->is_put) return discounted * (1 - normal_below(d2)) - option->spot * (1 - normal_below(d1));
    return option->spot * normal_below(d1) - discounted * normal_below(d2);
}

void kernel_run(void) {
    for (int i = 0; i < count; i++) price[i] = price_of(&options[i]);
}

uint64_t kernel_digest(void) {
    uint64_t digest = 0;
    for (int i = 0; i < count; i++) digest = suite_mix_real(digest, price[i]);
    return digest;
}

// Put-call parity.
bool kernel_valid(void) {
    for (int i = 0; i + 1 < count; i += 2) {
        double discounted = options[i].strike * exp(-options[i].rate * options[i].years);
        if (fabs(price[i] - price[i + 1] - (options[i].spot - discounted)) > 1e-9 * options[i].spot)
            return false;
    }
    return true;
}
