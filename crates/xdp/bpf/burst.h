/* Bursts (Pallas, section 4.5): requests beyond what their group's cores finish in a window go to a second server too. */
#pragma once

#define ARRIVALS_MASK 0xffffffffull

/* Counts an arrival; whether it is in excess. */
static __always_inline bool in_excess(struct step *s, __u32 group)
{
	__u32 at = group & (MAX_GROUPS - 1), threshold = s->tables->group[at].threshold;
	struct burst_register *of_group = bpf_map_lookup_elem(&bursts, &at);
	if (!of_group)
		return false;
	__u64 window = bpf_ktime_get_ns() / config.window_ns << 32, seen = of_group->window_arrivals;
	/* Of several CPUs one begins the window; the others add to it. */
	if ((seen & ~ARRIVALS_MASK) != window && __sync_val_compare_and_swap(&of_group->window_arrivals, seen, window | 1) == seen)
		return 1 > threshold;
	return (__sync_fetch_and_add(&of_group->window_arrivals, 1) & ARRIVALS_MASK) + 1 > threshold;
}

static __always_inline __u64 present_arrivals(__u32 group, __u64 window)
{
	struct burst_register *of_group = bpf_map_lookup_elem(&bursts, &group);
	if (!of_group || (of_group->window_arrivals & ~ARRIVALS_MASK) != window)
		return 0;
	return of_group->window_arrivals & ARRIVALS_MASK;
}

/* The other group with the lowest degree of burst, arrivals / threshold; negative when there is none. A function of its own, which the
 * verifier looks at once. */
__attribute__((noinline)) int calmest_group(__u32 copy, __u32 group)
{
	struct rack_tables *now = bpf_map_lookup_elem(&tables, &copy);
	/* 1 / 0 is more than any degree. So no branch depends on `calmest`, and the verifier need not tell its values apart. */
	__u64 window = bpf_ktime_get_ns() / config.window_ns << 32, least = 1, least_threshold = 0;
	int calmest = -1;
	if (!now)
		return -1;
	for (__u32 other = 0; other < MAX_GROUPS; other++) {
		if (other >= now->groups)
			break;
		if (other == group || (config.cloning == CLONING_LONGER && other < group))
			continue;
		__u64 arrivals = present_arrivals(other, window), threshold = now->group[other].threshold;
		if (threshold == 0)
			threshold = 1;
		if (arrivals * least_threshold < least * threshold) {
			calmest = other;
			least = arrivals;
			least_threshold = threshold;
		}
	}
	return calmest;
}

/* The server that gets the clone of a request of this group; negative when there is none. */
static __always_inline int clone_target(struct step *s, __u32 group)
{
	int calmest = calmest_group(s->copy, group);
	/* The compiler knows the range, and would leave out the masks by which the verifier knows it. */
	asm volatile("" : "+r"(calmest));
	return calmest < 0 ? -1 : turn(s, calmest);
}

/* An XDP program cannot copy a packet. It leaves an order before the packet for the program behind it, which can. This makes room for one,
 * before any pointer into the packet is taken; none when the driver has no room. */
static __always_inline struct clone_order *room_for_order(struct xdp_md *ctx)
{
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(struct clone_order)))
		return 0;
	struct clone_order *order = (void *)(long)ctx->data_meta;
	if ((void *)(order + 1) > (void *)(long)ctx->data)
		return 0;
	order->magic = 0;
	return order;
}
