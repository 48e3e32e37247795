/* The end of what a removed server had. */
#pragma once

/* Ends the copies of one slot that the server has. Responses are counted on other CPUs meanwhile, and packets interrupt this one: hence atomic operations. */
__noinline int lose_of(__u32 slot, __u32 number)
{
	__u32 zero = 0;
	slot &= NAT_SLOTS - 1;
	number &= MAX_SERVERS - 1;
	struct nat_entry *entry = bpf_map_lookup_elem(&nat, &slot);
	struct cpu_registers *own = bpf_map_lookup_elem(&registers, &zero);
	if (!entry || !own)
		return 0;
	/* One that will soon be too old expires instead: its slot may be taken again at any moment. */
	if (tick() - entry->begun_tick >= config.answer_ticks - config.answer_ticks / 8)
		return 0;
#pragma unroll
	for (__u32 which = 0; which < 2; which++) {
		__u32 bit = 1 << which;
		if (!(entry->state & bit) || entry->servers[which] != number)
			continue;
		if (!(__sync_fetch_and_and(&entry->state, ~bit) & bit))
			continue;
		__sync_fetch_and_add(&own->counts[COUNT_LOST], 1);
		__sync_fetch_and_add(&own->server[number].lost, 1);
		loaded(number, entry->group[which], -1);
	}
	return 0;
}

/* The control plane runs this for a server that no table names any more, so that none of its packets matches a request. The packet has the server's number
 * and the first slot. */
SEC("xdp")
int lose(struct xdp_md *ctx)
{
	const __u32 *asked = (void *)(long)ctx->data;
	if ((void *)(asked + 2) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	__u32 number = asked[0], first = asked[1];
	for (__u32 at = 0; at < LOST_SLOTS; at++)
		lose_of(first + at, number);
	return XDP_PASS;
}
