// Gravity among bodies by Barnes' and Hut's octree (as Splash-2's barnes): build the tree, sum up
// masses, walk it once for each body.
#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0xef434254a35ee205, 0x05fe6ab868af9b21};
const unsigned kernel_passes = 1;

enum { MAX_BODIES = 1500, MAX_NODES = 4 * MAX_BODIES, EMPTY = -1 };

struct body {
    double position[3], velocity[3], force[3], mass;
};

// A child is a node (>= 0), EMPTY, or a body (-2 - its index).
struct node {
    double centre[3], half, mass, at[3];
    int child[8];
};

static struct body start[MAX_BODIES], bodies[MAX_BODIES];
static struct node nodes[MAX_NODES];
static int count, node_count, steps;

static const double OPENING = 0.6, SOFTENING = 0.0025, DT = 0.01;

void kernel_setup(bool full) {
    uint64_t seed = 18;
    count = full ? MAX_BODIES : 200;
    steps = full ? 2 : 1;
    for (int i = 0; i < count; i++) {
        double radius = suite_uniform(&seed); // denser inside
        for (int axis = 0; axis < 3; axis++) {
            start[i].position[axis] = (2 * suite_uniform(&seed) - 1) * radius;
            start[i].velocity[axis] = 0.1 * (suite_uniform(&seed) - 0.5);
        }
        start[i].mass = 1.0 / count;
    }
}

static int new_node(const double centre[3], double half) {
    struct node *node = &nodes[node_count];
    for (int axis = 0; axis < 3; axis++) node->centre[axis] = centre[axis];
    node->half = half;
    for (int c = 0; c < 8; c++) node->child[c] = EMPTY;
    return node_count++;
}

static int octant(const struct node *node, const double at[3]) {
    return (at[0] >= node->centre[0]) + 2 * (at[1] >= node->centre[1]) + 4 * (at[2] >= node->centre[2]);
}

static int new_child(int parent, int which) {
    double half = nodes[parent].half / 2, centre[3];
    for (int axis = 0; axis < 3; axis++)
        centre[axis] = nodes[parent].centre[axis] + (which >> axis & 1 ? half : -half);
    return new_node(centre, half);
}

static void insert(int node, int body) {
    int which = octant(&nodes[node], bodies[body].position), there = nodes[node].child[which];
    if (there == EMPTY) {
        nodes[node].child[which] = -2 - body;
    } else if (there >= 0) {
        insert(there, body);
    } else {
        int child = new_child(node, which);
        nodes[node].child[which] = child;
        insert(child, -2 - there);
        insert(child, body);
    }
}

static void add_to(struct node *node, const double at[3], double mass) {
    node->mass += mass;
    for (int axis = 0; axis < 3; axis++) node->at[axis] += at[axis] * mass;
}

static void sum_masses(struct node *node) {
    node->mass = node->at[0] = node->at[1] = node->at[2] = 0;
    for (int c = 0; c < 8; c++) {
        int child = node->child[c];
        if (child >= 0) {
            sum_masses(&nodes[child]);
            add_to(node, nodes[child].at, nodes[child].mass);
        } else if (child != EMPTY) {
            add_to(node, bodies[-2 - child].position, bodies[-2 - child].mass);
        }
    }
    for (int axis = 0; axis < 3; axis++) node->at[axis] /= node->mass;
}

static void pull(struct body *body, const double way[3], double square, double mass) {
    double soft = square + SOFTENING, strength = mass / (soft * sqrt(soft));
    for (int axis = 0; axis < 3; axis++) body->force[axis] += strength * way[axis];
}

static double way_to(const struct body *body, const double at[3], double way[3]) {
    double square = 0;
    for (int axis = 0; axis < 3; axis++) {
        way[axis] = at[axis] - body->position[axis];
        square += way[axis] * way[axis];
    }
    return square;
}

static void walk(struct body *body, const struct node *node) {
    double way[3], square = way_to(body, node->at, way);
    if (4 * node->half * node->half < OPENING * OPENING * square) {
        pull(body, way, square, node->mass);
        return;
    }
    for (int c = 0; c < 8; c++) {
        int child = node->child[c];
        if (child >= 0) {
            walk(body, &nodes[child]);
        } else if (child != EMPTY && &bodies[-2 - child] != body) {
            square = way_to(body, bodies[-2 - child].position, way);
            pull(body, way, square, bodies[-2 - child].mass);
        }
    }
}

static void step(void) {
    static const double origin[3] = {0, 0, 0};
    node_count = 0;
    int root = new_node(origin, 2);
    for (int i = 0; i < count; i++) insert(root, i);
    sum_masses(&nodes[root]);
    for (int i = 0; i < count; i++) {
        bodies[i].force[0] = bodies[i].force[1] = bodies[i].force[2] = 0;
        walk(&bodies[i], &nodes[root]);
    }
    for (int i = 0; i < count; i++)
        for (int axis = 0; axis < 3; axis++) {
            bodies[i].velocity[axis] += bodies[i].force[axis] * DT;
            bodies[i].position[axis] += bodies[i].velocity[axis] * DT;
        }
}

void kernel_run(void) {
    for (int i = 0; i < count; i++) bodies[i] = start[i];
    for (int i = 0; i < steps; i++) step();
}

uint64_t kernel_digest(void) {
    uint64_t digest = suite_mix(0, (uint64_t)node_count);
    for (int i = 0; i < count; i++)
        for (int axis = 0; axis < 3; axis++) digest = suite_mix_real(digest, bodies[i].force[axis]);
    return digest;
}

// Against the sum over all pairs, at the positions before the last step, for some bodies.
bool kernel_valid(void) {
    static struct body before[MAX_BODIES];
    for (int i = 0; i < count; i++) {
        before[i] = bodies[i];
        for (int axis = 0; axis < 3; axis++) before[i].position[axis] -= bodies[i].velocity[axis] * DT;
    }
    for (int i = 0; i < count; i += 41) {
        struct body exact = before[i];
        double off = 0, all = 0, way[3];
        exact.force[0] = exact.force[1] = exact.force[2] = 0;
        for (int j = 0; j < count; j++) {
            if (j == i) continue;
            double square = way_to(&exact, before[j].position, way);
            pull(&exact, way, square, before[j].mass);
        }
        for (int axis = 0; axis < 3; axis++) {
            double difference = exact.force[axis] - bodies[i].force[axis];
            off += difference * difference;
            all += exact.force[axis] * exact.force[axis];
        }
        if (off > 0.05 * 0.05 * (all + 0.1)) return false;
    }
    return true;
}
