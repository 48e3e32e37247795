// Packs a text quickly, then thoroughly, and unpacks both.
#include "packing.h"

#include <lz4.h>
#include <lz4hc.h>

const unsigned kernel_passes = 1;

static char quick[LARGEST_TEXT];

void kernel_setup(bool full) { make_text(full ? 400000 : 40000); }

static size_t pack(const char *from, size_t size, char *to, size_t room) {
    int written = LZ4_compress_default(from, quick, (int)size, sizeof quick);
    if (written <= 0 || LZ4_decompress_safe(quick, to, written, (int)room) != (int)size) real_fail("packing quickly");
    written = LZ4_compress_HC(from, to, (int)size, (int)room, 6);
    if (written <= 0) real_fail("packing");
    return (size_t)written;
}

static size_t unpack(const char *from, size_t size, char *to, size_t room) {
    int written = LZ4_decompress_safe(from, to, (int)size, (int)room);
    if (written < 0) real_fail("unpacking");
    return (size_t)written;
}
