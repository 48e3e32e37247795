// Compresses a stream (as Parsec's dedup): content decides where chunks end (a rolling hash), a
// fingerprint whether one was seen before, and what is new is packed by a small LZ77.
#include <string.h>

#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0x117589ebc9bc60a8, 0xa372e3659c09e155};
const unsigned kernel_passes = 5;

enum {
    MAX_INPUT = 400000,
    WINDOW = 48,
    SHORTEST = 512,
    LONGEST = 8192,
    BOUNDARY = 0x7ff,
    TABLE = 4096,
    LZ_HASH = 1 << 12,
    RUN = 128,
    SHORTEST_MATCH = 4,
    LONGEST_MATCH = 131
};

struct chunk {
    uint64_t fingerprint;
    uint32_t begin, size;         // in the input
    uint32_t packed, packed_size; // in the output
};

static uint8_t input[MAX_INPUT], output[MAX_INPUT + MAX_INPUT / 8 + 64];
static struct chunk table[TABLE];
static uint32_t references[MAX_INPUT / SHORTEST + 2]; // the chunks of the stream, by slot in the table
static size_t length, packed_length, reference_count;
static uint64_t rolling[256], leaving[256];

static uint64_t rotate(uint64_t word, int by) { return word << by | word >> (64 - by); }

// Words of a vocabulary of 100, in any order.
static uint8_t next_of_text(uint64_t *seed) {
    static uint64_t word, letters_left;
    if (letters_left == 0) {
        word = suite_below(seed, 100);
        letters_left = 3 + suite_random(&word) % 8;
        return ' ';
    }
    letters_left--;
    return (uint8_t)('a' + suite_random(&word) % 26);
}

void kernel_setup(bool full) {
    uint64_t seed = 31;
    length = full ? MAX_INPUT : 60000;
    for (int b = 0; b < 256; b++) {
        rolling[b] = suite_random(&seed);
        leaving[b] = rotate(rolling[b], WINDOW % 64);
    }
    for (size_t i = 0; i < length;) { // new text, or a repetition of old text
        uint32_t run = 200 + suite_below(&seed, 12000), from = suite_below(&seed, (uint32_t)i + 1);
        bool old = i > 20000 && suite_below(&seed, 2) == 0;
        for (uint32_t k = 0; k < run && i < length; k++, i++)
            input[i] = old ? input[from + k] : next_of_text(&seed);
    }
}

// Where the chunk that begins at `begin` ends: where a rolling hash of the last bytes says so.
static size_t chunk_end(size_t begin) {
    size_t limit = begin + LONGEST < length ? begin + LONGEST : length;
    if (begin + SHORTEST >= limit) return limit;
    uint64_t hash = 0;
    size_t at = begin + SHORTEST - WINDOW;
    for (int i = 0; i < WINDOW; i++) hash = rotate(hash, 1) ^ rolling[input[at++]];
    while (at < limit && (hash & BOUNDARY) != BOUNDARY) {
        hash = rotate(hash, 1) ^ leaving[input[at - WINDOW]] ^ rolling[input[at]];
        at++;
    }
    return at;
}

static uint64_t fingerprint_of(const uint8_t *bytes, size_t size) {
    uint64_t a = 0x9ae16a3b2f90404fu, b = size;
    size_t i = 0;
    for (; i + 8 <= size; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        a = rotate(a ^ word, 29) * 0x9fb21c651e98df25u;
        b = rotate(b + a, 17) ^ word;
    }
    for (; i < size; i++) a = rotate(a ^ bytes[i], 9) * 0x9fb21c651e98df25u;
    return (a ^ b) | 1;
}

static uint32_t match_length(const uint8_t *a, const uint8_t *b, uint32_t limit) {
    uint32_t size = 0;
    while (size < limit && a[size] == b[size]) size++;
    return size;
}

static uint32_t lz_hash(const uint8_t *at) {
    uint32_t word;
    memcpy(&word, at, 4);
    return word * 2654435761u >> 20;
}

// A control byte below RUN is followed by one byte more than that, to be copied; another one, by the two
// bytes of the distance back to a match, whose length it gives.
static size_t pack(const uint8_t *bytes, uint32_t size, uint8_t *out) {
    static uint32_t last_seen[LZ_HASH]; // place + 1
    size_t packed = 0, run = 0;         // where the control byte of the open run is
    bool run_open = false;
    for (int i = 0; i < LZ_HASH; i++) last_seen[i] = 0;
    for (uint32_t at = 0; at < size;) {
        uint32_t matched = 0, distance = 0;
        if (at + SHORTEST_MATCH <= size) {
            uint32_t *seen = &last_seen[lz_hash(bytes + at)];
            if (*seen > 0) {
                distance = at - (*seen - 1);
                uint32_t limit = size - at < LONGEST_MATCH ? size - at : LONGEST_MATCH;
                matched = match_length(bytes + at, bytes + *seen - 1, limit);
            }
            *seen = at + 1;
        }
        if (matched >= SHORTEST_MATCH) {
            out[packed++] = (uint8_t)(RUN + matched - SHORTEST_MATCH);
            out[packed++] = (uint8_t)distance;
            out[packed++] = (uint8_t)(distance >> 8);
            at += matched;
            run_open = false;
        } else {
            if (run_open && out[run] < RUN - 1) {
                out[run]++;
            } else {
                run = packed++;
                out[run] = 0;
                run_open = true;
            }
            out[packed++] = bytes[at++];
        }
    }
    return packed;
}

// The slot of a chunk in the table; a new one is packed.
static uint32_t store(size_t begin, size_t size) {
    uint64_t fingerprint = fingerprint_of(input + begin, size);
    uint32_t slot = (uint32_t)(fingerprint >> 40) % TABLE;
    while (table[slot].fingerprint != 0 && table[slot].fingerprint != fingerprint) slot = (slot + 1) % TABLE;
    if (table[slot].fingerprint == 0) {
        uint32_t packed = (uint32_t)pack(input + begin, (uint32_t)size, output + packed_length);
        table[slot] =
            (struct chunk){fingerprint, (uint32_t)begin, (uint32_t)size, (uint32_t)packed_length, packed};
        packed_length += packed;
    }
    return slot;
}

void kernel_run(void) {
    packed_length = reference_count = 0;
    for (int i = 0; i < TABLE; i++) table[i].fingerprint = 0;
    for (size_t at = 0; at < length;) {
        size_t end = chunk_end(at);
        references[reference_count++] = store(at, end - at);
        at = end;
    }
}

uint64_t kernel_digest(void) {
    uint64_t digest = suite_mix_bytes(0, references, reference_count * sizeof references[0]);
    return suite_mix_bytes(digest, output, packed_length);
}

// Unpacking gives the input again, and it had become smaller.
bool kernel_valid(void) {
    static uint8_t unpacked[MAX_INPUT + LONGEST];
    size_t size = 0;
    for (size_t r = 0; r < reference_count; r++) {
        const struct chunk *chunk = &table[references[r]];
        for (size_t at = chunk->packed; at < chunk->packed + chunk->packed_size;) {
            uint8_t control = output[at++];
            if (control < RUN) {
                for (int left = control + 1; left > 0; left--) unpacked[size++] = output[at++];
                continue;
            }
            size_t distance = output[at] | (size_t)output[at + 1] << 8;
            at += 2;
            for (int left = control - RUN + SHORTEST_MATCH; left > 0; left--, size++)
                unpacked[size] = unpacked[size - distance];
        }
    }
    return size == length && memcmp(unpacked, input, length) == 0 && packed_length < length;
}
