// Lloyd's k-means on integer points (as Phoenix' kmeans), for a fixed number of rounds.
#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0x29f3466418600dce, 0xbf3b4741a3f0f92c};
const unsigned kernel_passes = 2;

enum { DIMENSIONS = 12, CLUSTERS = 16, MAX_POINTS = 6000 };

static int32_t points[MAX_POINTS][DIMENSIONS];
static int32_t means[CLUSTERS][DIMENSIONS];
static int32_t nearest[MAX_POINTS];
static size_t count;
static int rounds, dimensions = DIMENSIONS;
static int64_t spread_first, spread_last;

void kernel_setup(bool full) {
    uint64_t seed = 3;
    count = full ? MAX_POINTS : 400;
    rounds = full ? 10 : 4;
    for (size_t i = 0; i < count; i++) {
        uint64_t centre = suite_below(&seed, CLUSTERS);
        for (int d = 0; d < DIMENSIONS; d++) {
            uint64_t place = centre * 64 + (uint64_t)d;
            points[i][d] = (int32_t)(suite_random(&place) % 1000 + suite_below(&seed, 300));
        }
    }
}

static int64_t distance(const int32_t *a, const int32_t *b) {
    int64_t sum = 0;
    for (int d = 0; d < dimensions; d++) {
        int32_t off = a[d] - b[d];
        sum += off * off;
    }
    return sum;
}

static int64_t assign(void) {
    int64_t spread = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t best = INT64_MAX;
        for (int c = 0; c < CLUSTERS; c++) {
            int64_t away = distance(points[i], means[c]);
            if (away < best) {
                best = away;
                nearest[i] = c;
            }
        }
        spread += best;
    }
    return spread;
}

static void recompute_means(void) {
    int64_t sums[CLUSTERS][DIMENSIONS] = {{0}}, sizes[CLUSTERS] = {0};
    for (size_t i = 0; i < count; i++) {
        sizes[nearest[i]]++;
        for (int d = 0; d < dimensions; d++) sums[nearest[i]][d] += points[i][d];
    }
    for (int c = 0; c < CLUSTERS; c++)
        if (sizes[c] > 0)
            for (int d = 0; d < dimensions; d++) means[c][d] = (int32_t)(sums[c][d] / sizes[c]);
}

void kernel_run(void) {
    for (int c = 0; c < CLUSTERS; c++)
        for (int d = 0; d < DIMENSIONS; d++) means[c][d] = points[(size_t)c * count / CLUSTERS][d];
    for (int round = 0; round < rounds; round++) {
        spread_last = assign();
        if (round == 0) spread_first = spread_last;
        recompute_means();
    }
}

uint64_t kernel_digest(void) {
    uint64_t digest = suite_mix(suite_mix(0, (uint64_t)spread_first), (uint64_t)spread_last);
    digest = suite_mix_bytes(digest, means, sizeof means);
    return suite_mix_bytes(digest, nearest, count * sizeof nearest[0]);
}

// Rounds never widen the clusters, and here they gain much.
bool kernel_valid(void) { return spread_last < spread_first && spread_last > 0; }
