/* The price of an Asian option by Monte Carlo, in POSIX threads, for ever: a batch program without support for the
 * daemon. pricer FILE THREADS counts the paths that it has priced in the first word of FILE. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STEPS = 64, PATHS = 50, THREADS_MAX = 64 };

static _Atomic uint64_t *priced;
/* The threads' last estimates, which keep the compiler from dropping the work. */
static volatile double estimates[THREADS_MAX];

static double uniform(uint64_t *state) {
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}

static double path(uint64_t *state) {
	const double drift = (0.03 - 0.5 * 0.2 * 0.2) / STEPS, spread = 0.2 / sqrt(STEPS);
	double price = 100, sum = 0;
	for (int step = 0; step < STEPS; step++) {
		double normal = sqrt(-2 * log(uniform(state))) * cos(6.283185307179586 * uniform(state));
		price *= exp(drift + spread * normal);
		sum += price;
	}
	return fmax(sum / STEPS - 100, 0) * exp(-0.03);
}

static void *price(void *argument) {
	uintptr_t thread = (uintptr_t)argument;
	uint64_t state = 0x9e3779b97f4a7c15u * (thread + 1);
	for (;;) {
		double sum = 0;
		for (int number = 0; number < PATHS; number++)
			sum += path(&state);
		estimates[thread] = sum / PATHS;
		atomic_fetch_add(priced, PATHS);
	}
	return NULL;
}

int main(int count, char **arguments) {
	int threads = count > 2 ? atoi(arguments[2]) : 0;
	if (threads < 1 || threads > THREADS_MAX) {
		fprintf(stderr, "pricer FILE THREADS: 1 to %d threads\n", THREADS_MAX);
		return 2;
	}
	int file = open(arguments[1], O_RDWR | O_CREAT, 0600);
	if (file < 0 || ftruncate(file, sizeof *priced) != 0) {
		perror(arguments[1]);
		return 1;
	}
	void *memory = mmap(NULL, sizeof *priced, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (memory == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	priced = memory;
	for (uintptr_t thread = 1; thread < (uintptr_t)threads; thread++) {
		pthread_t other;
		if (pthread_create(&other, NULL, price, (void *)thread) != 0) {
			perror("pthread_create");
			return 1;
		}
	}
	price(0);
}
