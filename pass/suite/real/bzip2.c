// Packs and unpacks a text in one block of bzip2.
#include "packing.h"

#include <bzlib.h>

const unsigned kernel_passes = 1;

void kernel_setup(bool full) { make_text(full ? 120000 : 20000); }

static size_t pack(const char *from, size_t size, char *to, size_t room) {
    unsigned written = (unsigned)room;
    if (BZ2_bzBuffToBuffCompress(to, &written, (char *)from, (unsigned)size, 9, 0, 0) != BZ_OK) real_fail("packing");
    return written;
}

static size_t unpack(const char *from, size_t size, char *to, size_t room) {
    unsigned written = (unsigned)room;
    if (BZ2_bzBuffToBuffDecompress(to, &written, (char *)from, (unsigned)size, 0, 0) != BZ_OK) real_fail("unpacking");
    return written;
}
