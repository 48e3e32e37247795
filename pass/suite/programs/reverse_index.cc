// Which pages link to an address (as Phoenix' reverse_index): finds the links in the text of
// pages and gathers the pages of each target in an ordered map.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0xbbee32a688789728, 0x7cc1bb1cc9188e08};
const unsigned kernel_passes = 8;

namespace {

constexpr std::string_view OPENING = "<a href=\"";

std::vector<std::string> pages;
size_t links_written;
std::map<std::string_view, std::vector<uint32_t>> pages_of;

std::string address(uint32_t target) {
    return "http://host" + std::to_string(target % 97) + ".example/" + std::to_string(target);
}

bool opens_at(std::string_view page, size_t at) {
    for (size_t i = 0; i < OPENING.size(); i++)
        if (page[at + i] != OPENING[i]) return false;
    return true;
}

void index_page(uint32_t number, std::string_view page) {
    for (size_t at = 0; at + OPENING.size() < page.size(); at++) {
        if (page[at] != '<' || !opens_at(page, at)) continue;
        const size_t begin = at + OPENING.size();
        size_t end = begin;
        while (page[end] != '"') end++;
        std::vector<uint32_t> &sources = pages_of[page.substr(begin, end - begin)];
        if (sources.empty() || sources.back() != number) sources.push_back(number);
        at = end;
    }
}

} // namespace

void kernel_setup(bool full) {
    uint64_t seed = 8;
    pages.resize(full ? 150 : 60);
    const uint32_t targets = full ? 600 : 100;
    for (std::string &page : pages) {
        for (uint32_t link = suite_below(&seed, 40); link > 0; link--, links_written++) {
            for (uint32_t words = suite_below(&seed, 20); words > 0; words--) {
                page += static_cast<char>('a' + suite_below(&seed, 26));
                page += words % 5 == 0 ? " <b>text</b> " : "ordinary ";
            }
            page += OPENING;
            page += address(suite_below(&seed, targets)) + "\">link</a>";
        }
    }
}

void kernel_run(void) {
    pages_of.clear();
    for (uint32_t i = 0; i < pages.size(); i++) index_page(i, pages[i]);
}

uint64_t kernel_digest(void) {
    uint64_t digest = 0;
    for (const auto &[target, sources] : pages_of) {
        digest = suite_mix_bytes(digest, target.data(), target.size());
        for (uint32_t source : sources) digest = suite_mix(digest, source);
    }
    return digest;
}

// Every entry is in its page's text, and no page was listed twice.
bool kernel_valid(void) {
    size_t listed = 0;
    for (const auto &[target, sources] : pages_of) {
        listed += sources.size();
        if (!std::is_sorted(sources.begin(), sources.end())) return false;
        for (uint32_t source : sources)
            if (pages[source].find(target) == std::string::npos) return false;
    }
    return listed <= links_written && listed > links_written * 9 / 10;
}
