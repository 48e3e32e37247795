// Runs a script in a new state of MuJS.
#include "real.h"
#include "script.h"

#include <mujs.h>

const unsigned kernel_passes = 1;

static char script[sizeof SCRIPT + 32], result[1 << 16];

void kernel_setup(bool full) { make_script(script, full ? 2500 : 400); }

void kernel_run(void) {
    js_State *state = js_newstate(NULL, NULL, 0);
    if (state == NULL || js_ploadstring(state, "work", script) != 0) real_fail("reading the script");
    js_pushundefined(state);
    if (js_pcall(state, 0) != 0) real_fail("the script");
    snprintf(result, sizeof result, "%s", js_tostring(state, -1));
    js_freestate(state);
}

uint64_t kernel_digest(void) { return suite_mix_bytes(0, result, strlen(result)); }

bool kernel_valid(void) { return strncmp(result, RESULT_BEGINS, sizeof RESULT_BEGINS - 1) == 0; }
