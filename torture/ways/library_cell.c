/* A library without probes that keeps something for each thread. */
static __thread unsigned long cell;
static __thread char more[200]; /* As much as libraries have. */

unsigned long *library_cell(void) {
    more[0]++;
    return &cell;
}
