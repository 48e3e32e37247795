/* Choices without branches. */
#pragma once

/* All bits if `a` is less than `b`, both below 2^63. Hidden from the compiler, which would make a branch of it: the verifier follows both ways of
 * each branch of a loop, at each of 256 servers or 64 groups. */
static __always_inline __u64 less(__u64 a, __u64 b)
{
	__u64 word = a - b;
	asm volatile("" : "+r"(word));
	word = (__s64)word >> 63;
	asm volatile("" : "+r"(word));
	return word;
}

static __always_inline __u64 either(__u64 mask, __u64 yes, __u64 no)
{
	return (yes & mask) | (no & ~mask);
}
