/* Refusals: they tell the client that its request is not served. */
#pragma once

#define REFUSAL_BYTES (sizeof(struct udphdr) + sizeof(struct wire_header))

static __always_inline __u16 refusal_check(const struct frame *f)
{
	/* The pseudo header has the length and the protocol beside the addresses; the header's own length comes once more. */
	__u64 sum = sum_addresses(f) + bpf_htons(IPPROTO_UDP) + bpf_htons(REFUSAL_BYTES) + f->udp->len + sum_rewritten(f);
	return ~folded(sum);
}

/* Cuts the packet, which is addressed already, to ten bytes of header, and sends it back by the interface
 * `ifindex`. */
static __always_inline int cut_and_send(struct step *s, __u32 ifindex)
{
	struct frame *f = &s->f;
	struct xdp_md *ctx = s->ctx;
	f->udp->len = bpf_htons(REFUSAL_BYTES);
	if (f->family == FAMILY_IP4) {
		__u16 before = f->ip4->tot_len;
		f->ip4->tot_len = bpf_htons(sizeof(struct iphdr) + REFUSAL_BYTES);
		f->ip4->check = updated(f->ip4->check, SUM_MODULUS + f->ip4->tot_len - before);
	} else {
		f->ip6->payload_len = bpf_htons(REFUSAL_BYTES);
	}
	if (f->udp->check || f->family == FAMILY_IP6)
		put_udp_check(f->udp, refusal_check(f));
	int kept = (void *)(f->wire + 1) - (void *)(long)ctx->data;
	int length = (void *)(long)ctx->data_end - (void *)(long)ctx->data;
	if (bpf_xdp_adjust_tail(ctx, kept - length))
		return XDP_DROP;
	return leave_by(s, ifindex);
}

/* Refuses a client's request for which the switch has no entry. */
static __always_inline int shed_request(struct step *s)
{
	struct frame *f = &s->f;
	__u32 client_ip[4] = {}, own_ip[4] = {};
	struct mac_pair macs __attribute__((aligned(8)));
	count(s, COUNT_SHED);
	const void *ip = source_ip(f);
	client_ip[0] = word(ip);
	if (f->family == FAMILY_IP6) {
		client_ip[1] = word(ip + 4);
		client_ip[2] = word(ip + 8);
		client_ip[3] = word(ip + 12);
	}
	put_mac(macs.dest, f->eth->h_source);
	put_mac(macs.source, f->eth->h_dest);
	struct rewrite to = {
		.dest_ip = client_ip, .dest_port = f->udp->source, .macs = &macs, .class = f->wire->class,
		.flag = FLAG_RESPONSE | STATUS_SHED << FLAG_STATUS_SHIFT, .index = word(f->wire->index), .time_ns = 0,
	};
	addresses_of_switch(&to, own_ip, f->family);
	rewrite(f, s->ctx, &to);
	return cut_and_send(s, s->ctx->ingress_ifindex);
}
