// The most frequent words of a text (as Phoenix' word_count): a hash map, then a sort.
#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0x02651e6569658393, 0x9cf5e867aad1d527};
const unsigned kernel_passes = 4;

namespace {

struct Entry {
    std::string_view word;
    uint32_t count;
};

std::vector<char> text;
size_t words_written;
std::vector<Entry> ranking;

bool is_letter(char c) { return c >= 'A' && c <= 'Z'; }
char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

bool more_frequent(const Entry &a, const Entry &b) {
    return a.count != b.count ? a.count > b.count : a.word < b.word;
}

} // namespace

void kernel_setup(bool full) {
    uint64_t seed = 6;
    const size_t words = full ? 30000 : 4000, vocabulary = full ? 4000 : 500;
    for (words_written = 0; words_written < words; words_written++) {
        const double u = suite_uniform(&seed); // the cube makes some words much more frequent
        uint64_t word = static_cast<uint64_t>(u * u * u * static_cast<double>(vocabulary)) + 1000;
        const uint64_t length = 2 + suite_random(&word) % 8;
        for (uint64_t i = 0; i < length; i++)
            text.push_back(
                static_cast<char>((i == 0 && words_written % 7 == 0 ? 'A' : 'a') + suite_random(&word) % 26));
        text.push_back(words_written % 11 == 0 ? ',' : ' ');
    }
}

void kernel_run(void) {
    std::unordered_map<std::string_view, uint32_t> counts;
    const size_t size = text.size();
    for (size_t i = 0; i < size; i++) text[i] = upper(text[i]);
    for (size_t at = 0; at < size;) {
        while (at < size && !is_letter(text[at])) at++;
        const size_t begin = at;
        while (at < size && is_letter(text[at])) at++;
        if (at > begin) counts[std::string_view(&text[begin], at - begin)]++;
    }
    ranking.clear();
    for (const auto &[word, count] : counts) ranking.push_back({word, count});
    std::sort(ranking.begin(), ranking.end(), more_frequent);
}

uint64_t kernel_digest(void) {
    uint64_t digest = 0;
    for (const Entry &entry : ranking)
        digest = suite_mix(suite_mix_bytes(digest, entry.word.data(), entry.word.size()), entry.count);
    return digest;
}

bool kernel_valid(void) {
    uint64_t total = 0;
    for (const Entry &entry : ranking) total += entry.count;
    return total == words_written && std::is_sorted(ranking.begin(), ranking.end(), more_frequent);
}
