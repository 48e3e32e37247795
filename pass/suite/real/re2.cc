// Searches a text for addresses, words and numbers by regular expressions of RE2, compiled anew each time.
#include "real.h"

#include <re2/re2.h>

#include <string>

const unsigned kernel_passes = 1;

namespace {

std::string text;
uint64_t addresses_written, addresses, words, numbers, replaced_size;

uint64_t count(const char *pattern) {
    const RE2 expression(pattern);
    re2::StringPiece rest(text), found;
    uint64_t matches = 0;
    while (RE2::FindAndConsume(&rest, expression, &found)) matches++;
    return matches;
}

} // namespace

void kernel_setup(bool full) {
    uint64_t seed = 8;
    char word[16];
    for (unsigned i = 0; i < (full ? 16000u : 1500u); i++) {
        text.append(word, real_word(word, &seed));
        if (suite_below(&seed, 20) == 0) {
            addresses_written++;
            text += "@example.org";
        }
        if (suite_below(&seed, 15) == 0) text += " " + std::to_string(suite_below(&seed, 100000)) + "." + std::to_string(suite_below(&seed, 100));
        text += i % 12 == 11 ? "\n" : " ";
    }
}

void kernel_run(void) {
    addresses = count("([a-z]+@[a-z]+\\.(?:org|com))");
    words = count("\\b(\\w*(?:ab|cd|ef)\\w*(?:e|i))\\b");
    numbers = count("([0-9]{2,4})\\.[0-9]+");
    std::string replaced = text;
    RE2::GlobalReplace(&replaced, "(\\w)x(\\w)", "\\2-\\1");
    replaced_size = replaced.size() + (RE2::PartialMatch(text, "(?i)[A-M]+ [n-z]+ZZQ$") ? 1 : 0);
}

uint64_t kernel_digest(void) { return suite_mix(suite_mix(suite_mix(addresses, words), numbers), replaced_size); }

bool kernel_valid(void) { return addresses == addresses_written && words > 0 && numbers > 0 && replaced_size >= text.size(); }
