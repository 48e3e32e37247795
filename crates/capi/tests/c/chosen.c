/* A function that a resolver chooses as the program starts (an ifunc). The pass puts no probe into a resolver, but into what it calls. */

static unsigned long counted(unsigned long steps) {
    unsigned long sum = 1;
    for (unsigned long step = 0; step < steps; step++) sum = sum * 6364136223846793005u + step;
    return sum;
}

__attribute__((noinline)) static unsigned look_at_the_processor(volatile unsigned *features) {
    for (volatile unsigned i = 0; i < 100000; i++) *features += i;
    return *features;
}

static unsigned long (*resolve(void))(unsigned long) {
    volatile unsigned features = 0;
    return look_at_the_processor(&features) == 0 ? 0 : counted;
}

unsigned long chosen(unsigned long steps) __attribute__((ifunc("resolve")));
