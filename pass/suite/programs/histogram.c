// Histograms of the three colours of an image (as Phoenix' histogram).
#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0xc1950286dd21a65c, 0xcc8952c01a94e795};
const unsigned kernel_passes = 56;

enum { MAX_PIXELS = 120000 };

static uint8_t image[3 * MAX_PIXELS]; // blue, green, red, …
static size_t pixels;
static uint32_t blue[256], green[256], red[256];

void kernel_setup(bool full) {
    uint64_t seed = 2;
    pixels = full ? MAX_PIXELS : 20000;
    for (size_t i = 0; i < 3 * pixels; i++) {
        uint64_t word = suite_random(&seed); // a sum of two: no colour is as frequent as the next
        image[i] = (uint8_t)((word & 127) + (word >> 32) % 126 + i % 3);
    }
}

void kernel_run(void) {
    for (int i = 0; i < 256; i++) blue[i] = green[i] = red[i] = 0;
    for (size_t i = 0; i < 3 * pixels; i += 3) {
        blue[image[i]]++;
        green[image[i + 1]]++;
        red[image[i + 2]]++;
    }
}

uint64_t kernel_digest(void) {
    uint64_t digest = 0;
    for (int i = 0; i < 256; i++) digest = suite_mix(suite_mix(suite_mix(digest, blue[i]), green[i]), red[i]);
    return digest;
}

bool kernel_valid(void) {
    uint64_t counted = 0;
    for (int i = 0; i < 256; i++) counted += blue[i] + green[i] + red[i];
    return counted == 3 * pixels && red[0] == 0 && red[1] == 0 && green[0] == 0 && blue[255] == 0;
}
