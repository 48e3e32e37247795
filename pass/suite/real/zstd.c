// Packs a text at levels 3 and 9 and unpacks both.
#include "packing.h"

#include <zstd.h>

const unsigned kernel_passes = 1;

static char quick[LARGEST_TEXT];

void kernel_setup(bool full) { make_text(full ? 300000 : 40000); }

static size_t pack(const char *from, size_t size, char *to, size_t room) {
    size_t written = ZSTD_compress(quick, sizeof quick, from, size, 3);
    if (ZSTD_isError(written) || ZSTD_decompress(to, room, quick, written) != size) real_fail("packing quickly");
    written = ZSTD_compress(to, room, from, size, 9);
    if (ZSTD_isError(written)) real_fail("packing");
    return written;
}

static size_t unpack(const char *from, size_t size, char *to, size_t room) {
    size_t written = ZSTD_decompress(to, room, from, size);
    if (ZSTD_isError(written)) real_fail("unpacking");
    return written;
}
