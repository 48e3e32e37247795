/* Bursts (Pallas, section 4.5): requests beyond what their group's cores finish in a window go to a second server too. */
#pragma once

#define ARRIVALS_MASK 0xffffffffull

static __always_inline __u64 present_window(void)
{
	return bpf_ktime_get_ns() / config.window_ns << 32;
}

/* Counts an arrival; returns whether it is in excess. Reading the clock costs more than the rest of a packet, so most arrivals count in
 * the window that an earlier one read. A window misses the arrivals before its first reading, at most an eighth of the threshold. An
 * arrival in excess reads the clock itself. */
static __always_inline bool in_excess(struct step *s, __u32 group)
{
	__u32 at = group & (MAX_GROUPS - 1), threshold = s->tables->group[at].threshold;
	struct burst_register *of_group = bpf_map_lookup_elem(&bursts, &at);
	if (!of_group)
		return false;
	__u64 now = __sync_fetch_and_add(&of_group->window_arrivals, 1) + 1;
	__u32 arrivals = now;
	if (arrivals & s->tables->group[at].between_looks && arrivals <= threshold)
		return false;
	__u64 window = present_window();
	/* Of several CPUs one begins the window; the others add to it. */
	if ((now & ~ARRIVALS_MASK) != window) {
		__u64 found = __sync_val_compare_and_swap(&of_group->window_arrivals, now, window | 1);
		arrivals = found == now ? 1 : found;
	}
	return arrivals > threshold;
}

/* The other group with the lowest degree of burst, arrivals / threshold; negative when there is none. It is a function of its own, so
 * that the verifier checks it once, and without branches, so that it does not follow both ways of each at each of 64 groups: that took two seconds of a
 * start. */
__attribute__((noinline)) int calmest_group(__u32 copy, __u32 group)
{
	struct rack_tables *now = bpf_map_lookup_elem(&tables, &copy);
	/* 1 / 0 is more than any degree. */
	__u64 window = present_window() >> 32, least = 1, least_threshold = 0, calmest = -1;
	if (!now)
		return -1;
	for (__u32 other = 0; other < MAX_GROUPS; other++) {
		if (other >= now->groups)
			break;
		struct burst_register *of_group = bpf_map_lookup_elem(&bursts, &other);
		if (!of_group)
			return -1;
		__u64 counted = of_group->window_arrivals, threshold = now->group[other].threshold;
		__u64 arrivals = counted & ARRIVALS_MASK & ~less(0, counted >> 32 ^ window);
		__u64 may_have = config.cloning == CLONING_LONGER ? less(group, other) : less(0, group ^ other);
		threshold += less(threshold, 1) & 1;
		__u64 is_calmest = may_have & less(arrivals * least_threshold, least * threshold);
		calmest = either(is_calmest, other, calmest);
		least = either(is_calmest, arrivals, least);
		least_threshold = either(is_calmest, threshold, least_threshold);
	}
	return calmest;
}

/* The server that gets the clone of a request of this group; negative when there is none. */
static __always_inline int clone_target(struct step *s, __u32 group)
{
	int calmest = calmest_group(s->copy, group);
	/* Hides the range from the compiler, which would otherwise remove the masks that the verifier needs. */
	asm volatile("" : "+r"(calmest));
	return calmest < 0 ? -1 : turn(s, calmest);
}

/* An XDP program cannot copy a packet. It leaves an order before the packet for the program behind it, which can copy. This makes
 * room for one, and finds the headers again, since the kernel invalidates all pointers into the packet. Leaves no order when the
 * driver has no room. */
static __always_inline bool make_room(struct step *s)
{
	struct frame *f = &s->f;
	struct xdp_md *ctx = s->ctx;
	__u32 ip_at = f->ip - (void *)f->eth;
	bool has_room = !bpf_xdp_adjust_meta(ctx, -(int)sizeof(struct clone_order));
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct clone_order *order = (void *)(long)ctx->data_meta;
	f->eth = data;
	f->ip = data + (ip_at & 31);
	f->udp = f->family == FAMILY_IP4 ? (void *)(f->ip4 + 1) : (void *)(f->ip6 + 1);
	f->wire = (void *)(f->udp + 1);
	if ((void *)(f->eth + 1) > end || (void *)(f->wire + 1) > end)
		return false;
	if (has_room && (void *)(order + 1) <= data) {
		order->magic = 0;
		s->order = order;
	}
	return true;
}
