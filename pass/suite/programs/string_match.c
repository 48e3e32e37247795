// Looks for four secret words among many (as Phoenix' string_match): each word is scrambled like
// the secrets are, then compared with each of them.
#include <string.h>

#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0xc10cd2bcce6ff8e6, 0x8ed6e6249663d5f0};
const unsigned kernel_passes = 9;

enum { MAX_TEXT = 200000, LONGEST = 24, SECRETS = 4 };

static const char *const secrets[SECRETS] = {"helloworld", "howareyou", "ferrari", "whotheman"};
static char scrambled_secrets[SECRETS][LONGEST];
static char text[MAX_TEXT]; // words, each ended by a line feed
static size_t length;
static uint32_t planted[SECRETS], found[SECRETS];
static uint64_t places;

static void scramble(const char *word, char *out) {
    size_t i = 0;
    for (; word[i] != '\0' && word[i] != '\n'; i++) out[i] = (char)(word[i] + 5);
    out[i] = '\0';
}

void kernel_setup(bool full) {
    uint64_t seed = 5;
    size_t limit = full ? MAX_TEXT : 30000;
    for (length = 0; length + LONGEST < limit;) {
        if (suite_below(&seed, 500) == 0) {
            uint32_t which = suite_below(&seed, SECRETS);
            planted[which]++;
            for (const char *at = secrets[which]; *at; at++) text[length++] = *at;
        } else {
            // A secret's beginning now and then, so that comparisons do not end at the first byte.
            const char *head = secrets[suite_below(&seed, SECRETS)];
            size_t copied = suite_below(&seed, 5);
            for (size_t i = 0; i < copied; i++) text[length++] = head[i];
            for (uint32_t i = 1 + suite_below(&seed, 12); i > 0; i--)
                text[length++] = (char)('a' + suite_below(&seed, 26));
            text[length++] = 'q'; // no secret ends so
        }
        text[length++] = '\n';
    }
    for (int s = 0; s < SECRETS; s++) scramble(secrets[s], scrambled_secrets[s]);
}

static bool equal(const char *a, const char *b) {
    while (*a == *b && *a != '\0') a++, b++;
    return *a == *b;
}

void kernel_run(void) {
    char word[LONGEST];
    for (int s = 0; s < SECRETS; s++) found[s] = 0;
    places = 0;
    for (size_t at = 0; at < length;) {
        scramble(text + at, word);
        for (int s = 0; s < SECRETS; s++) {
            if (!equal(word, scrambled_secrets[s])) continue;
            found[s]++;
            places = places * 31 + at;
        }
        while (text[at++] != '\n') {
        }
    }
}

uint64_t kernel_digest(void) { return suite_mix_bytes(places, found, sizeof found); }

bool kernel_valid(void) { return memcmp(planted, found, sizeof found) == 0; }
