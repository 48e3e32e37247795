// A one-dimensional complex Fourier transform in six steps over a square matrix (as Splash-2's fft):
// transpose, transform rows, multiply by roots of unity, transpose, transform rows, transpose.
#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0x6158001ebfbddf97, 0xaf852aa05b44afef};
const unsigned kernel_passes = 16;

enum { MAX_SIDE = 128 };

struct complex_number {
    double re, im;
};
typedef struct complex_number number;

static number input[MAX_SIDE * MAX_SIDE], result[MAX_SIDE * MAX_SIDE], other[MAX_SIDE * MAX_SIDE];
static number roots[MAX_SIDE * MAX_SIDE]; // roots[r·side + c] = e^(-2πi·rc / side²)
static number row_roots[MAX_SIDE];        // e^(-2πi·k / side)
static int side;

void kernel_setup(bool full) {
    uint64_t seed = 13;
    side = full ? MAX_SIDE : 32;
    const double turn = -2 * 3.14159265358979323846;
    for (int r = 0; r < side; r++) {
        row_roots[r] = (number){cos(turn * r / side), sin(turn * r / side)};
        for (int c = 0; c < side; c++) {
            double angle = turn * r * c / ((double)side * side);
            roots[r * side + c] = (number){cos(angle), sin(angle)};
            input[r * side + c] = (number){suite_uniform(&seed) - 0.5, suite_uniform(&seed) - 0.5};
        }
    }
}

static number times(number a, number b) {
    return (number){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// In tiles, so that neither side strides through the cache.
static void transpose(const number *from, number *to) {
    enum { TILE = 8 };
    for (int rt = 0; rt < side; rt += TILE)
        for (int ct = 0; ct < side; ct += TILE)
            for (int r = rt; r < rt + TILE; r++)
                for (int c = ct; c < ct + TILE; c++) to[c * side + r] = from[r * side + c];
}

static void reverse_bits(number *row) {
    for (int i = 1, j = 0; i < side; i++) {
        int bit = side >> 1;
        for (; j & bit; bit >>= 1) j ^= bit;
        j ^= bit;
        if (i < j) {
            number swapped = row[i];
            row[i] = row[j];
            row[j] = swapped;
        }
    }
}

static void transform_row(number *row) {
    reverse_bits(row);
    for (int half = 1; half < side; half *= 2)
        for (int base = 0; base < side; base += 2 * half)
            for (int k = 0; k < half; k++) {
                number *low = &row[base + k], *high = &row[base + k + half];
                number turned = times(*high, row_roots[k * (side / 2 / half)]);
                *high = (number){low->re - turned.re, low->im - turned.im};
                *low = (number){low->re + turned.re, low->im + turned.im};
            }
}

void kernel_run(void) {
    transpose(input, other);
    for (int r = 0; r < side; r++) {
        transform_row(other + r * side);
        for (int c = 0; c < side; c++) other[r * side + c] = times(other[r * side + c], roots[r * side + c]);
    }
    transpose(other, result);
    for (int r = 0; r < side; r++) transform_row(result + r * side);
    transpose(result, other);
}

uint64_t kernel_digest(void) {
    uint64_t digest = 0;
    for (int i = 0; i < side * side; i++)
        digest = suite_mix_real(suite_mix_real(digest, other[i].re), other[i].im);
    return digest;
}

// Some frequencies by the definition, and Parseval's equation.
bool kernel_valid(void) {
    int n = side * side;
    double energy_in = 0, energy_out = 0;
    for (int i = 0; i < n; i++) {
        energy_in += input[i].re * input[i].re + input[i].im * input[i].im;
        energy_out += other[i].re * other[i].re + other[i].im * other[i].im;
    }
    if (fabs(energy_out / n - energy_in) > 1e-6 * energy_in) return false;
    for (int64_t f = 1; f < n; f = f * 7 + 3) {
        number sum = {0, 0};
        for (int i = 0; i < n; i++) {
            int64_t power = f * i % n; // = r·side + c; the root is that of r/side and c/n together
            number root = times(row_roots[power / side], roots[side + power % side]);
            number term = times(input[i], root);
            sum.re += term.re, sum.im += term.im;
        }
        if (fabs(sum.re - other[f].re) > 1e-7 || fabs(sum.im - other[f].im) > 1e-7) return false;
    }
    return true;
}
