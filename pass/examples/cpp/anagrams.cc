// C++, compiled as it is: `headway-c++ -O2 anagrams.cc -o anagrams < words`. The templates of the standard
// library are compiled here, so they can be preempted as well.
#include "headway_probes.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace {

std::map<std::string, std::vector<std::string>> group(std::istream &words) {
    std::map<std::string, std::vector<std::string>> groups;
    for (std::string word; words >> word;) {
        std::string letters = word;
        std::sort(letters.begin(), letters.end());
        groups[letters].push_back(word);
    }
    return groups;
}

// A function that is to run through: no probes in it.
HEADWAY_NO_PROBES std::size_t largest(const std::map<std::string, std::vector<std::string>> &groups) {
    std::size_t most = 0;
    for (const auto &[letters, words] : groups) most = std::max(most, words.size());
    return most;
}

} // namespace

int main() {
    const auto groups = group(std::cin);
    const std::size_t most = largest(groups);
    for (const auto &[letters, words] : groups) {
        if (words.size() < most) continue;
        for (const auto &word : words) std::cout << word << ' ';
        std::cout << '\n';
    }
}
