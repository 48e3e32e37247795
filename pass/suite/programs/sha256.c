// SHA-256 (FIPS 180-4) of a long message.
#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0x6bc596c7c0821c13, 0x371693195cba6153};
const unsigned kernel_passes = 8;

enum { MAX_BYTES = 200000 };

static uint8_t message[MAX_BYTES];
static size_t length;
static uint32_t result[8];

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void kernel_setup(bool full) {
    uint64_t seed = 29;
    length = full ? MAX_BYTES : 40000;
    for (size_t i = 0; i < length; i++) message[i] = (uint8_t)suite_random(&seed);
}

static uint32_t rotate(uint32_t word, int by) { return word >> by | word << (32 - by); }

static void compress(uint32_t state[8], const uint8_t *block) {
    uint32_t w[64];
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (int t = 16; t < 64; t++) {
        uint32_t low = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t high = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = w[t - 16] + low + w[t - 7] + high;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6],
             h = state[7];
    for (int t = 0; t < 64; t++) {
        uint32_t first =
            h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + K[t] + w[t];
        uint32_t second = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + first;
        d = c, c = b, b = a, a = first + second;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

static void hash(const uint8_t *bytes, size_t size, uint32_t state[8]) {
    static const uint32_t INITIAL[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint8_t tail[128] = {0};
    for (int i = 0; i < 8; i++) state[i] = INITIAL[i];
    size_t at = 0;
    for (; at + 64 <= size; at += 64) compress(state, bytes + at);
    size_t left = size - at, blocks = left < 56 ? 1 : 2;
    for (size_t i = 0; i < left; i++) tail[i] = bytes[at + i];
    tail[left] = 0x80;
    for (int i = 0; i < 8; i++) tail[64 * blocks - 1 - (size_t)i] = (uint8_t)(size * 8 >> 8 * i);
    for (size_t i = 0; i < blocks; i++) compress(state, tail + 64 * i);
}

void kernel_run(void) { hash(message, length, result); }

uint64_t kernel_digest(void) {
    uint64_t digest = 0;
    for (int i = 0; i < 8; i++) digest = suite_mix(digest, result[i]);
    return digest;
}

// The standard's example of two blocks.
bool kernel_valid(void) {
    static const char example[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    static const uint32_t expected[8] = {0x248d6a61, 0xd20638b8, 0xe5c02693, 0x0c3e6039,
                                         0xa33ce459, 0x64ff2167, 0xf6ecedd4, 0x19db06c1};
    uint32_t state[8];
    hash((const uint8_t *)example, sizeof example - 1, state);
    for (int i = 0; i < 8; i++)
        if (state[i] != expected[i]) return false;
    return true;
}
