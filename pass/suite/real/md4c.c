// Makes HTML of a text in Markdown.
#include "real.h"

#include <md4c-html.h>

const unsigned kernel_passes = 4;

enum { LARGEST = 1 << 20 };

static char text[LARGEST], html[2 * LARGEST];
static size_t text_size, html_size;
static unsigned headings_written;

static char *write_words(char *at, unsigned words, const char *around, uint64_t *seed) {
    while (words-- > 0) {
        bool marked = suite_below(seed, 8) == 0;
        if (marked) at = stpcpy(at, around);
        at += real_word(at, seed);
        if (marked) at = stpcpy(at, around);
        *at++ = words % 12 == 11 ? '\n' : ' ';
    }
    return at;
}

void kernel_setup(bool full) {
    static const char *const AROUND[] = {"*", "**", "`", "_"};
    uint64_t seed = 3;
    char *at = text;
    headings_written = full ? 350 : 50;
    for (unsigned heading = 0; heading < headings_written; heading++) {
        at = stpcpy(at, "\n## ");
        at = write_words(at, 4, "", &seed);
        at = stpcpy(at, "\n\n");
        at = write_words(at, 60, AROUND[heading % 4], &seed);
        at = stpcpy(at, "[a link](https://example.org/page \"title\") &amp; <b>tags</b>\n\n");
        for (int item = 0; item < 4; item++) {
            at = stpcpy(at, "* ");
            at = write_words(at, 7, AROUND[item], &seed);
            at = stpcpy(at, "\n");
        }
        at = stpcpy(at, "\n| a | b |\n|---|---|\n| ");
        at = write_words(at, 2, "`", &seed);
        at = stpcpy(at, "| ");
        at = write_words(at, 2, "*", &seed);
        at = stpcpy(at, "|\n\n> ");
        at = write_words(at, 9, "_", &seed);
        at = stpcpy(at, "\n\n```c\nint x = 1;\n```\n");
    }
    text_size = (size_t)(at - text);
}

static void append(const MD_CHAR *piece, MD_SIZE size, void *user) {
    (void)user;
    memcpy(html + html_size, piece, size);
    html_size += size;
}

void kernel_run(void) {
    html_size = 0;
    if (md_html(text, (MD_SIZE)text_size, append, NULL, MD_DIALECT_GITHUB, 0) != 0) real_fail("the translation");
}

uint64_t kernel_digest(void) { return suite_mix_bytes(html_size, html, html_size); }

bool kernel_valid(void) {
    unsigned headings = 0;
    html[html_size] = 0;
    for (const char *at = html; (at = strstr(at, "<h2>")) != NULL; at++) headings++;
    return headings == headings_written;
}
