// Packs a text as a web server does, at quality 5, and unpacks it.
#include "packing.h"

#include <brotli/decode.h>
#include <brotli/encode.h>

const unsigned kernel_passes = 1;

void kernel_setup(bool full) { make_text(full ? 300000 : 40000); }

static size_t pack(const char *from, size_t size, char *to, size_t room) {
    size_t written = room;
    if (!BrotliEncoderCompress(5, 18, BROTLI_MODE_TEXT, size, (const uint8_t *)from, &written, (uint8_t *)to)) real_fail("packing");
    return written;
}

static size_t unpack(const char *from, size_t size, char *to, size_t room) {
    size_t written = room;
    if (BrotliDecoderDecompress(size, (const uint8_t *)from, &written, (uint8_t *)to) != BROTLI_DECODER_RESULT_SUCCESS)
        real_fail("unpacking");
    return written;
}
