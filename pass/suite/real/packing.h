// The work of a library that packs: a text is packed and unpacked again. The program defines `pack` and `unpack`, which give the size
// of what they wrote.
#ifndef HEADWAY_SUITE_PACKING_H
#define HEADWAY_SUITE_PACKING_H

#include "real.h"

enum { LARGEST_TEXT = 1 << 20 };

static size_t pack(const char *text, size_t size, char *packed, size_t room);
static size_t unpack(const char *packed, size_t size, char *text, size_t room);

static char text[LARGEST_TEXT], packed[LARGEST_TEXT + LARGEST_TEXT / 8 + 1024], unpacked[LARGEST_TEXT];
static size_t text_size, packed_size, unpacked_size;

static void make_text(size_t size) {
    text_size = size;
    real_text(text, size, 11);
}

void kernel_run(void) {
    packed_size = pack(text, text_size, packed, sizeof packed);
    unpacked_size = unpack(packed, packed_size, unpacked, sizeof unpacked);
}

uint64_t kernel_digest(void) { return suite_mix_bytes(suite_mix(packed_size, unpacked_size), packed, packed_size); }

bool kernel_valid(void) {
    return packed_size < text_size * 2 / 3 && unpacked_size == text_size && memcmp(text, unpacked, text_size) == 0;
}

#endif
