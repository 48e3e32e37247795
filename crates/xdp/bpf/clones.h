/* The program behind the XDP program, where packets can be copied: it sends the copies that the XDP program ordered. */
#pragma once
#include <linux/pkt_cls.h>

/* Addresses the packet of this family to a server, as this copy. The XDP program checked the headers. */
static __always_inline bool readdress(struct frame *f, void *end, __u8 family, const struct server_entry *server, __u8 flag)
{
	f->family = family;
	f->udp = family == FAMILY_IP4 ? (void *)(f->ip4 + 1) : (void *)(f->ip6 + 1);
	f->wire = (void *)(f->udp + 1);
	if ((void *)(f->wire + 1) > end)
		return false;
	redirect_to(f, 0, server, flag);
	return true;
}

static __always_inline bool address_copy(struct __sk_buff *skb, const struct server_entry *server, __u8 flag)
{
	struct frame f = { .eth = (void *)(long)skb->data };
	void *at = f.eth + 1, *end = (void *)(long)skb->data_end;
	if (at > end)
		return false;
	__u16 proto = f.eth->h_proto;
	/* The kernel took the outer tag; the inner one is still there. */
	if (proto == bpf_htons(ETH_P_8021Q_ETC)) {
		struct vlan_tag *vlan = at;
		at = vlan + 1;
		if (at > end)
			return false;
		proto = vlan->proto;
	}
	f.ip = at;
	if (proto == bpf_htons(ETH_P_IP))
		return readdress(&f, end, FAMILY_IP4, server, flag);
	return readdress(&f, end, FAMILY_IP6, server, flag);
}

SEC("classifier")
int clones(struct __sk_buff *skb)
{
	struct clone_order *word = (void *)(long)skb->data_meta;
	if ((void *)(word + 1) > (void *)(long)skb->data || word->magic != CLONE_MAGIC)
		return TC_ACT_UNSPEC;
	struct clone_order order = *word;
	struct rack_tables *of_order = bpf_map_lookup_elem(&tables, &order.copy);
	if (!of_order || bpf_skb_pull_data(skb, 0))
		return TC_ACT_SHOT;
	const struct server_entry *first = &of_order->server[order.servers[0] & (MAX_SERVERS - 1)];
	const struct server_entry *second = &of_order->server[order.servers[1] & (MAX_SERVERS - 1)];
	if (!address_copy(skb, second, FLAG_CLONE))
		return TC_ACT_SHOT;
	bpf_clone_redirect(skb, second->ifindex, 0);
	if (!address_copy(skb, first, FLAG_ORIGINAL))
		return TC_ACT_SHOT;
	return bpf_redirect(first->ifindex, 0);
}
