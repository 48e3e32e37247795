// Least squares through many points with byte coordinates (as Phoenix' linear_regression): one
// pass that adds up x, y, x², y² and xy.
#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0x43e52c9d922617bb, 0x4b9c166a3517a19f};
const unsigned kernel_passes = 60;

enum { MAX_POINTS = 150000 };

struct point {
    uint8_t x, y;
};

static struct point points[MAX_POINTS];
static size_t count;
static int64_t sum_x, sum_y, sum_xx, sum_yy, sum_xy;
static double slope, intercept, correlation;

void kernel_setup(bool full) {
    uint64_t seed = 1;
    count = full ? MAX_POINTS : 40000;
    for (size_t i = 0; i < count; i++) {
        uint32_t x = suite_below(&seed, 200);
        points[i] = (struct point){(uint8_t)x, (uint8_t)(20 + x / 2 + suite_below(&seed, 100))};
    }
}

void kernel_run(void) {
    int64_t x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    for (size_t i = 0; i < count; i++) {
        int px = points[i].x, py = points[i].y;
        x += px;
        y += py;
        xx += px * px;
        yy += py * py;
        xy += px * py;
    }
    sum_x = x, sum_y = y, sum_xx = xx, sum_yy = yy, sum_xy = xy;
    double n = (double)count, mx = (double)x / n, my = (double)y / n;
    double vx = (double)xx / n - mx * mx, vy = (double)yy / n - my * my, cov = (double)xy / n - mx * my;
    slope = cov / vx;
    intercept = my - slope * mx;
    correlation = cov * cov / (vx * vy);
}

uint64_t kernel_digest(void) {
    uint64_t digest = suite_mix(suite_mix(0, (uint64_t)sum_xx), (uint64_t)sum_yy);
    digest = suite_mix(suite_mix(digest, (uint64_t)sum_xy), (uint64_t)(sum_x - sum_y));
    return suite_mix_real(suite_mix_real(digest, slope), intercept);
}

// The line the points were drawn around: y = x / 2 + 70, and noise of the same spread everywhere.
bool kernel_valid(void) {
    return fabs(slope - 0.5) < 0.02 && fabs(intercept - 69.25) < 2 && correlation > 0.4 && correlation < 0.6;
}
