// Clusters points that arrive in chunks (as Parsec's streamcluster): local search for facilities,
// where each opening is judged by what reassignments gain and what closing others saves.
#include <algorithm>
#include <vector>

#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0x28008a384a29370a, 0xc8772f3659e7621f};
const unsigned kernel_passes = 2;

namespace {

constexpr int MAX_DIMENSIONS = 32;

struct Point {
    float coordinates[MAX_DIMENSIONS];
    float weight;
    size_t assigned; // the index of its facility
    float cost;      // weight × squared distance to it
};

std::vector<Point> points, chunk;
size_t chunk_size;
int dimensions, trials;
double total_cost, worst_cost;
uint64_t facilities;

float squared_distance(const Point &a, const Point &b) {
    float sum = 0;
    for (int d = 0; d < dimensions; d++)
        sum += (a.coordinates[d] - b.coordinates[d]) * (a.coordinates[d] - b.coordinates[d]);
    return sum;
}

std::vector<double> closing_saves;
std::vector<char> nearer;

// What opening a facility at `candidate` gains; carried out if it gains anything.
double gain(size_t candidate, double facility_cost) {
    std::fill(closing_saves.begin(), closing_saves.end(), 0.0);
    double saved = -facility_cost;
    for (size_t i = 0; i < chunk.size(); i++) {
        const float there = squared_distance(chunk[i], chunk[candidate]) * chunk[i].weight;
        nearer[i] = there < chunk[i].cost;
        if (nearer[i]) saved += chunk[i].cost - there;
        else closing_saves[chunk[i].assigned] -= there - chunk[i].cost;
    }
    for (size_t i = 0; i < chunk.size(); i++) {
        if (chunk[i].assigned != i) continue;
        closing_saves[i] += facility_cost;
        if (closing_saves[i] > 0 && i != candidate) saved += closing_saves[i];
    }
    if (saved <= 0) return 0;
    for (size_t i = 0; i < chunk.size(); i++) {
        const size_t facility = chunk[i].assigned;
        const bool closes = facility != candidate && closing_saves[facility] > 0;
        if (!nearer[i] && !closes && i != candidate) continue;
        chunk[i].cost = squared_distance(chunk[i], chunk[candidate]) * chunk[i].weight;
        chunk[i].assigned = candidate;
    }
    return saved;
}

void cluster_chunk(uint64_t &seed, double facility_cost) {
    for (Point &point : chunk) {
        point.assigned = 0;
        point.cost = squared_distance(point, chunk[0]) * point.weight;
    }
    for (const Point &point : chunk) worst_cost += point.cost;
    for (int trial = 0; trial < trials; trial++)
        gain(suite_below(&seed, static_cast<uint32_t>(chunk.size())), facility_cost);
    for (size_t i = 0; i < chunk.size(); i++) {
        total_cost += chunk[i].cost;
        facilities += chunk[i].assigned == i;
    }
}

} // namespace

void kernel_setup(bool full) {
    uint64_t seed = 24;
    dimensions = MAX_DIMENSIONS;
    chunk_size = full ? 500 : 100;
    trials = full ? 100 : 30;
    points.resize(full ? 2000 : 300);
    closing_saves.resize(chunk_size);
    nearer.resize(chunk_size);
    chunk.resize(chunk_size);
    for (Point &point : points) {
        const uint64_t centre = suite_below(&seed, 12);
        for (int d = 0; d < dimensions; d++) {
            uint64_t place = centre * 100 + static_cast<uint64_t>(d);
            point.coordinates[d] = static_cast<float>(suite_uniform(&place) + 0.2 * suite_uniform(&seed));
        }
        point.weight = 1;
    }
}

void kernel_run(void) {
    uint64_t seed = 240;
    total_cost = worst_cost = 0;
    facilities = 0;
    for (size_t begin = 0; begin + chunk_size <= points.size(); begin += chunk_size) {
        for (size_t i = 0; i < chunk_size; i++) chunk[i] = points[begin + i];
        cluster_chunk(seed, 4.0);
    }
}

uint64_t kernel_digest(void) {
    uint64_t digest = suite_mix(suite_mix_real(0, total_cost), facilities);
    for (const Point &point : chunk) digest = suite_mix(digest, point.assigned);
    return digest;
}

// Assignments lead to facilities, and the twelve centres were found in every chunk.
bool kernel_valid(void) {
    for (const Point &point : chunk)
        if (chunk[point.assigned].assigned != point.assigned) return false;
    return total_cost < worst_cost / 5 && facilities >= points.size() / chunk_size * 6;
}
