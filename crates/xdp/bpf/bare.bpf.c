/* The minimal program: it sends the packet back. The bench measures the switch beside it. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int bare(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	if ((void *)(eth + 1) > end)
		return XDP_PASS;
	__u8 mac[ETH_ALEN];
	__builtin_memcpy(mac, eth->h_dest, ETH_ALEN);
	__builtin_memcpy(eth->h_dest, eth->h_source, ETH_ALEN);
	__builtin_memcpy(eth->h_source, mac, ETH_ALEN);
	return XDP_TX;
}

#define TEMPLATE 104

struct template {
	__u64 words[TEMPLATE / 8];
	__u64 drained;
};

struct { __uint(type, BPF_MAP_TYPE_ARRAY); __type(key, __u32); __type(value, struct template); __uint(max_entries, 1); } first SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PROG_ARRAY); __type(key, __u32); __type(value, __u32); __uint(max_entries, 1); } next SEC(".maps");

/* Restores the packet, then runs the measured program, since a test run starts from the packet that the previous run left. */
SEC("xdp")
int again(struct xdp_md *ctx)
{
	__u32 zero = 0;
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct template *template = bpf_map_lookup_elem(&first, &zero);
	if (!template || data + TEMPLATE > end)
		return XDP_ABORTED;
	/* Stores words, since the measured program reads words, and a load would wait for several stores of bytes. */
#pragma unroll
	for (int i = 0; i < TEMPLATE / 8; i++)
		((__u64 *)data)[i] = template->words[i];
	/* A packet that arrives is in memory, no longer in this CPU's store buffer: an atomic operation empties that. */
	__sync_fetch_and_add(&template->drained, 1);
	bpf_tail_call(ctx, &next, 0);
	return XDP_ABORTED;
}

/* A server behind a veth needs this program, so that packets can be redirected into it. */
SEC("xdp")
int pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
