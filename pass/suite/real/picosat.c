// Looks for an assignment that satisfies random clauses of three literals, planted so that there is one.
#include "real.h"

#include <picosat.h>

const unsigned kernel_passes = 20;

enum { MOST_VARIABLES = 400, MOST_CLAUSES = 2000 };

static int clauses[MOST_CLAUSES][3], assignment[MOST_VARIABLES + 1], variables, clause_count;

void kernel_setup(bool full) {
    uint64_t seed = 21;
    variables = full ? 220 : 80;
    clause_count = variables * 42 / 10;
    bool planted[MOST_VARIABLES + 1];
    for (int v = 1; v <= variables; v++) planted[v] = suite_below(&seed, 2);
    for (int c = 0; c < clause_count;) {
        bool satisfied = false;
        for (int i = 0; i < 3; i++) {
            int variable = 1 + (int)suite_below(&seed, (uint32_t)variables);
            bool positive = suite_below(&seed, 2);
            clauses[c][i] = positive ? variable : -variable;
            satisfied |= positive == planted[variable];
        }
        c += satisfied;
    }
}

void kernel_run(void) {
    PicoSAT *solver = picosat_init();
    picosat_set_seed(solver, 1);
    for (int c = 0; c < clause_count; c++) {
        for (int i = 0; i < 3; i++) picosat_add(solver, clauses[c][i]);
        picosat_add(solver, 0);
    }
    if (picosat_sat(solver, -1) != PICOSAT_SATISFIABLE) real_fail("finding the assignment");
    for (int v = 1; v <= variables; v++) assignment[v] = picosat_deref(solver, v);
    picosat_reset(solver);
}

uint64_t kernel_digest(void) { return suite_mix_bytes(0, assignment, sizeof assignment); }

bool kernel_valid(void) {
    for (int c = 0; c < clause_count; c++) {
        bool satisfied = false;
        for (int i = 0; i < 3; i++) {
            int literal = clauses[c][i];
            satisfied |= literal > 0 ? assignment[literal] > 0 : assignment[-literal] < 0;
        }
        if (!satisfied) return false;
    }
    return true;
}
