// PageRank by power iteration over a graph in compressed rows; each page pulls from those that link to it.
#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0x0c35d2dd390f5ae8, 0x13d1f88ac965460d};
const unsigned kernel_passes = 10;

enum { MAX_PAGES = 6000, DEGREE = 16 };

static uint32_t begin[MAX_PAGES + 1], source[MAX_PAGES * DEGREE], out_degree[MAX_PAGES];
static double rank[MAX_PAGES], share[MAX_PAGES], next[MAX_PAGES];
static uint32_t pages;
static int iterations;

void kernel_setup(bool full) {
    uint64_t seed = 27;
    pages = full ? MAX_PAGES : 1000;
    iterations = full ? 10 : 4;
    for (uint32_t p = 0; p < pages; p++) {
        begin[p + 1] = begin[p] + DEGREE;
        for (uint32_t e = begin[p]; e < begin[p + 1]; e++) {
            double u = suite_uniform(&seed); // some pages link much more than others
            source[e] = (uint32_t)(u * u * pages);
            out_degree[source[e]]++;
        }
    }
}

static double pull(uint32_t page) {
    double sum = 0;
    for (uint32_t e = begin[page]; e < begin[page + 1]; e++) sum += share[source[e]];
    return sum;
}

void kernel_run(void) {
    for (uint32_t p = 0; p < pages; p++) rank[p] = 1.0 / pages;
    for (int i = 0; i < iterations; i++) {
        double dangling = 0;
        for (uint32_t p = 0; p < pages; p++) {
            share[p] = out_degree[p] > 0 ? rank[p] / out_degree[p] : 0;
            if (out_degree[p] == 0) dangling += rank[p];
        }
        for (uint32_t p = 0; p < pages; p++) next[p] = (0.15 + 0.85 * dangling) / pages + 0.85 * pull(p);
        for (uint32_t p = 0; p < pages; p++) rank[p] = next[p];
    }
}

uint64_t kernel_digest(void) {
    uint64_t digest = 0;
    for (uint32_t p = 0; p < pages; p++) digest = suite_mix_real(digest, rank[p] * 1e4);
    return digest;
}

// Ranks are a distribution.
bool kernel_valid(void) {
    double sum = 0;
    for (uint32_t p = 0; p < pages; p++) {
        if (rank[p] < 0.15 / pages) return false;
        sum += rank[p];
    }
    return fabs(sum - 1) < 1e-9;
}
