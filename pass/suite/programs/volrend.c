// A volume seen by rays (as Splash-2's volrend): trilinear samples, gradients for shading, opacity
// front to back with early end, and a coarse grid of maxima to step over what is empty.
#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0x4ba35f10c944009e, 0xbf2dc4e5d968de48};
const unsigned kernel_passes = 1;

enum { MAX_SIDE = 64, BRICK = 8, MAX_BRICKS = MAX_SIDE / BRICK, MAX_WIDTH = 140, THRESHOLD = 60 };

static uint8_t volume[MAX_SIDE][MAX_SIDE][MAX_SIDE], brick_maximum[MAX_BRICKS][MAX_BRICKS][MAX_BRICKS];
static float picture[MAX_WIDTH][MAX_WIDTH];
static int side, width;
static uint64_t samples;

// A few soft balls and noise.
void kernel_setup(bool full) {
    uint64_t seed = 21;
    side = full ? MAX_SIDE : 32;
    width = full ? MAX_WIDTH : 24;
    double ball[5][4];
    for (int b = 0; b < 5; b++) {
        for (int axis = 0; axis < 3; axis++) ball[b][axis] = side * (0.25 + 0.5 * suite_uniform(&seed));
        ball[b][3] = side * (0.08 + 0.12 * suite_uniform(&seed));
    }
    for (int x = 0; x < side; x++)
        for (int y = 0; y < side; y++)
            for (int z = 0; z < side; z++) {
                double density = 20 * suite_uniform(&seed);
                for (int b = 0; b < 5; b++) {
                    double dx = x - ball[b][0], dy = y - ball[b][1], dz = z - ball[b][2];
                    density += 200 * exp(-(dx * dx + dy * dy + dz * dz) / (ball[b][3] * ball[b][3]));
                }
                volume[x][y][z] = density > 255 ? 255 : (uint8_t)density;
            }
}

static void find_brick_maxima(void) {
    for (int bx = 0; bx < side / BRICK; bx++)
        for (int by = 0; by < side / BRICK; by++)
            for (int bz = 0; bz < side / BRICK; bz++) {
                uint8_t maximum = 0; // one voxel further than the brick: samples look at neighbours
                for (int x = bx * BRICK; x <= (bx + 1) * BRICK && x < side; x++)
                    for (int y = by * BRICK; y <= (by + 1) * BRICK && y < side; y++)
                        for (int z = bz * BRICK; z <= (bz + 1) * BRICK && z < side; z++)
                            if (volume[x][y][z] > maximum) maximum = volume[x][y][z];
                brick_maximum[bx][by][bz] = maximum;
            }
}

static float sample(const float at[3]) {
    int x = (int)at[0], y = (int)at[1], z = (int)at[2];
    float fx = at[0] - (float)x, fy = at[1] - (float)y, fz = at[2] - (float)z, sum = 0;
    for (int corner = 0; corner < 8; corner++) {
        int i = corner & 1, j = corner >> 1 & 1, k = corner >> 2;
        sum += (i ? fx : 1 - fx) * (j ? fy : 1 - fy) * (k ? fz : 1 - fz) * (float)volume[x + i][y + j][z + k];
    }
    return sum;
}

// How directly the surface faces the viewer, from central differences.
static float shade(const float at[3]) {
    int x = (int)at[0], y = (int)at[1], z = (int)at[2];
    if (x < 1 || y < 1 || z < 1) return 0;
    float gx = (float)(volume[x + 1][y][z] - volume[x - 1][y][z]);
    float gy = (float)(volume[x][y + 1][z] - volume[x][y - 1][z]);
    float gz = (float)(volume[x][y][z + 1] - volume[x][y][z - 1]);
    return fabsf(gz) / sqrtf(gx * gx + gy * gy + gz * gz + 1);
}

static float cast(float x, float y) {
    float light = 0, clear = 1, at[3] = {x, y, 0};
    const float last = (float)(side - 2);
    while (at[2] < last && clear > 0.02f) {
        if (brick_maximum[(int)at[0] / BRICK][(int)at[1] / BRICK][(int)at[2] / BRICK] < THRESHOLD) {
            at[2] = (float)(((int)at[2] / BRICK + 1) * BRICK);
            continue;
        }
        samples++;
        float density = sample(at);
        if (density >= THRESHOLD) {
            float opacity = (density - THRESHOLD) / 400;
            light += clear * opacity * (0.2f + 0.8f * shade(at));
            clear *= 1 - opacity;
        }
        at[2] += 0.5f;
    }
    return light;
}

void kernel_run(void) {
    samples = 0;
    find_brick_maxima();
    float scale = (float)(side - 2) / (float)width;
    for (int row = 0; row < width; row++)
        for (int column = 0; column < width; column++)
            picture[row][column] = cast((float)row * scale, (float)column * scale);
}

uint64_t kernel_digest(void) {
    uint64_t digest = suite_mix(0, samples);
    for (int row = 0; row < width; row++)
        for (int column = 0; column < width; column++)
            digest = suite_mix(digest, (uint64_t)lrintf(picture[row][column] * 1e4f));
    return digest;
}

// Stepping over bricks leaves nothing out: a ray that is sampled everywhere sees the same.
bool kernel_valid(void) {
    static uint8_t kept[MAX_BRICKS][MAX_BRICKS][MAX_BRICKS];
    float scale = (float)(side - 2) / (float)width, brightest = 0;
    bool same = true;
    uint64_t counted = samples;
    for (int b = 0; b < MAX_BRICKS * MAX_BRICKS * MAX_BRICKS; b++) {
        kept[0][0][b] = brick_maximum[0][0][b];
        brick_maximum[0][0][b] = 255;
    }
    for (int row = 0; row < width; row += 5)
        for (int column = 0; column < width; column += 5) {
            float all = cast((float)row * scale, (float)column * scale);
            same &= fabsf(all - picture[row][column]) < 1e-4f;
            brightest = fmaxf(brightest, all);
        }
    for (int b = 0; b < MAX_BRICKS * MAX_BRICKS * MAX_BRICKS; b++) brick_maximum[0][0][b] = kept[0][0][b];
    samples = counted;
    return same && brightest > 0.3f;
}
