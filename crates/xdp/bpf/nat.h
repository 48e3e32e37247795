/* Full translation: the switch's index and address stand for the client's until the response comes. */
#pragma once

/* Responses to two copies may arrive on two CPUs at once; the response to a single copy arrives on one. */
static __always_inline __u32 set_state(struct nat_entry *entry, __u32 bits)
{
	__u32 before = entry->state;
	if (entry->cloned)
		return __sync_fetch_and_or(&entry->state, bits);
	entry->state = before | bits;
	return before;
}

/* Returns the remaining bits. */
static __always_inline __u32 clear_state(struct nat_entry *entry, __u32 bits)
{
	if (entry->cloned)
		return __sync_fetch_and_and(&entry->state, ~bits) & ~bits;
	return entry->state &= ~bits;
}

/* The kernel's ticks, of milliseconds. The verifier makes a load of them; other clocks are calls of some 15 ns. */
static __always_inline __u32 tick(void)
{
	return bpf_jiffies64();
}

/* Counts each awaited copy as expired. */
static __always_inline void expired(struct step *s, const struct nat_entry *entry, __u32 state)
{
	s->own->counts[COUNT_EXPIRED] += (state & 1) + (state >> 1 & 1);
	registers_of(s, entry->servers[0])->expired += state & 1;
	registers_of(s, entry->servers[1])->expired += state >> 1 & 1;
	if (state & 1)
		loaded(entry->servers[0], entry->group[0], -1);
	if (state >> 1 & 1)
		loaded(entry->servers[1], entry->group[1], -1);
}

/* The slots tried for one more request. */
#define SLOT_TRIES 4

/* Where the count of a slot begins, in the bits above its number: a hash of seed and slot, the finaliser of SplitMix64. So a late answer to a
 * request of an earlier switch is recognised, and nobody who sees no index can name one. */
static __always_inline __u32 first_count(__u32 slot)
{
	__u64 mixed = config.index_seed ^ ((__u64)slot + 1) * 0x9e3779b97f4a7c15ull;
	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ull;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebull;
	return mixed >> 32;
}

/* The entry for one more request, by this CPU's ring of slots; 0 while the next few slots have requests that may still be answered. */
static __always_inline struct nat_entry *free_entry(struct step *s, __u32 now_tick)
{
#pragma unroll
	for (int try = 0; try < SLOT_TRIES; try++) {
		__u32 taken = s->own->nat_taken++;
		__u32 slot = (s->own->nat_first + (taken & s->own->nat_mask)) & (NAT_SLOTS - 1);
		struct nat_entry *entry = bpf_map_lookup_elem(&nat, &slot);
		if (!entry)
			return 0;
		__u32 state = entry->state;
		if (state & ENTRY_AWAITED) {
			if (now_tick - entry->begun_tick < config.answer_ticks)
				continue;
			expired(s, entry, state);
			entry->state = 0;
		}
		/* The slot's own count continues, so that a late packet of an earlier request is recognised. */
		__u32 before = entry->index ? entry->index : first_count(slot);
		entry->index = slot | ((before & ~(NAT_SLOTS - 1)) + NAT_SLOTS);
		if (entry->index == config.question_index)
			entry->index += NAT_SLOTS;
		return entry;
	}
	return 0;
}

/* Sends the packet to a server as the copy `flag` of the request of `entry`. The caller records the copy in the entry's state. */
static __always_inline int forward(struct step *s, struct nat_entry *entry, __u32 group, __u32 number, __u32 which, __u8 flag)
{
	struct server_entry *server = server_at(s, number);
	__u32 own_ip[4] = {};
	entry->servers[which & 1] = number;
	entry->group[which & 1] = group;
	registers_of(s, number)->sent += 1;
	loaded(number, group, 1);
	struct rewrite to = {
		.dest_ip = server->ip, .dest_port = server->port, .macs = &server->macs,
		.class = entry->wire_class, .flag = flag, .index = bpf_htonl(entry->index), .time_ns = entry->time_ns,
	};
	addresses_of_switch(&to, own_ip, s->f.family);
	rewrite(&s->f, s->ctx, &to);
	return leave_by(s, server->ifindex);
}

/* Two servers get the request: the program behind this one sends the copies that it orders. */
static __always_inline int begin_cloned(struct step *s, struct nat_entry *entry, __u32 group, __u32 first, __u32 second)
{
	struct clone_order *order = s->order;
	count(s, COUNT_CLONED);
	entry->cloned = 1;
	entry->servers[1] = second;
	entry->group[1] = group;
	registers_of(s, second)->sent += 1;
	loaded(second, group, 1);
	entry->state = ENTRY_AWAITED;
	order->copy = s->copy;
	order->servers[0] = first;
	order->servers[1] = second;
	order->magic = CLONE_MAGIC;
	forward(s, entry, group, first, 0, FLAG_ORIGINAL);
	return XDP_PASS;
}

static __always_inline int begin(struct step *s, __u32 class, __u32 group)
{
	struct frame *f = &s->f;
	__u32 now_tick = tick();
	struct nat_entry *entry = free_entry(s, now_tick);
	if (!entry)
		return shed_request(s);
	int turn_of = turn(s, group);
	if (turn_of < 0)
		return shed_request(s);
	int number = with_room(s, group, turn_of);
	s->own->type[class & (MAX_TYPES - 1)].count += 1;
	if (server_at(s, number)->family != f->family)
		return drop_unreachable(s, server_at(s, number));
	entry->begun_tick = now_tick;
	const void *ip = source_ip(f);
	entry->client_ip[0] = word(ip);
	if (f->family == FAMILY_IP6) {
		entry->client_ip[1] = word(ip + 4);
		entry->client_ip[2] = word(ip + 8);
		entry->client_ip[3] = word(ip + 12);
	}
	entry->client_port = f->udp->source;
	entry->client_index = word(f->wire->index);
	entry->time_ns = word(f->wire->time_ns);
	entry->ifindex = s->ctx->ingress_ifindex;
	put_mac(entry->macs.dest, f->eth->h_source);
	put_mac(entry->macs.source, f->eth->h_dest);
	entry->wire_class = f->wire->class;
	entry->family = f->family;
	entry->bounces = 0;
	entry->state = 0;
	entry->cloned = 0;
	if (config.cloning != CLONING_OFF && in_excess(s, group)) {
		if (!make_room(s))
			return XDP_ABORTED;
		/* What left its group's server is in excess of nothing there. */
		int other = s->order && number == turn_of ? clone_target(s, group) : -1;
		if (other >= 0 && server_at(s, other)->family == f->family)
			return begin_cloned(s, entry, group, number, other);
	}
	entry->state = ENTRY_FIRST;
	return forward(s, entry, group, number, 0, 0);
}

/* The entry of a server's packet, if that server has the copy; otherwise it counts the reason. */
static __always_inline struct nat_entry *expected(struct step *s)
{
	struct frame *f = &s->f;
	if (config.mode != MODE_NAT) {
		count(s, COUNT_UNEXPECTED);
		return 0;
	}
	__u32 index = bpf_ntohl(word(f->wire->index)), slot = index & (NAT_SLOTS - 1);
	__u8 mark = f->wire->flag & FLAG_CLONE_MASK;
	if (mark == FLAG_CLONE_MASK)
		mark = 0;
	__u32 which = mark >> 1;
	struct nat_entry *entry = bpf_map_lookup_elem(&nat, &slot);
	if (!entry || entry->index != index || !(entry->state >> which & 1) || entry->cloned != (mark != 0)) {
		count(s, COUNT_UNEXPECTED);
		return 0;
	}
	const struct server_entry *server = server_at(s, entry->servers[which & 1]);
	if (!server->family) {
		/* It was removed, and what it had is lost. */
		count(s, COUNT_UNEXPECTED);
		return 0;
	}
	if (server->family != f->family || server->port != f->udp->source || !same_ip(f->family, source_ip(f), server->ip)) {
		count(s, COUNT_SPOOFED);
		return 0;
	}
	if (!on_its_side(s, server)) {
		count(s, COUNT_WRONG_SIDE);
		return 0;
	}
	registers_of(s, entry->servers[which & 1])->answered += 1;
	loaded(entry->servers[which & 1], entry->group[which & 1], -1);
	return entry;
}

/* A server answers the control plane's probe. */
static __always_inline bool answers_question(const struct step *s)
{
	if (config.mode != MODE_NAT || bpf_ntohl(word(s->f.wire->index)) != config.question_index)
		return false;
	const struct server_entry *server = sending_server(s);
	return server && on_its_side(s, server);
}

/* Adds the execution time of a response to the type's average. */
static __always_inline void finished(struct step *s, __u32 class, __u64 execution_ns)
{
	if (!execution_ns)
		return;
	struct type_registers *type = &s->own->type[class & (MAX_TYPES - 1)];
	__u64 average = type->execution_ns;
	type->execution_ns = average ? average - (average >> 3) + (execution_ns >> 3) : execution_ns;
	type->responses += 1;
}

static __always_inline int response(struct step *s)
{
	if (answers_question(s))
		return XDP_PASS;
	struct nat_entry *entry = expected(s);
	if (!entry)
		return XDP_DROP;
	__u8 flag = s->f.wire->flag, mark = flag & FLAG_CLONE_MASK;
	__u32 status = (flag & FLAG_STATUS_MASK) >> FLAG_STATUS_SHIFT, time_ns = word(s->f.wire->time_ns);
	bool was_served = status != STATUS_SHED && status != STATUS_DRAINING;
	if (was_served)
		finished(s, class_of(s, entry->wire_class), bpf_ntohl(time_ns));
	__u32 state = clear_state(entry, mark == FLAG_CLONE ? ENTRY_SECOND : ENTRY_FIRST);
	/* The client hears nothing about a refused copy while another copy is under way. */
	if (!was_served && entry->cloned && state)
		return drop(s, COUNT_COPIES_REFUSED);
	if (set_state(entry, ENTRY_ANSWERED) & ENTRY_ANSWERED)
		return drop(s, COUNT_FILTERED);
	count(s, COUNT_ANSWERED);
	address_to_client(s, entry, flag & ~FLAG_CLONE_MASK, time_ns);
	return leave_by(s, entry->ifindex);
}

/* Ends a returned request for which the policy has no server. */
static __always_inline int give_up(struct step *s, struct nat_entry *entry)
{
	if (entry->state & ENTRY_AWAITED)
		return drop(s, COUNT_COPIES_REFUSED);
	/* The other copy of a cloned request was answered. */
	if (entry->state & ENTRY_ANSWERED)
		return XDP_DROP;
	count(s, COUNT_SHED);
	address_to_client(s, entry, FLAG_RESPONSE | STATUS_SHED << FLAG_STATUS_SHIFT, 0);
	return cut_and_send(s, entry->ifindex);
}

#define MOST_BOUNCES 3

/* Forwards a request that a server hands back unserved, by the current tables. */
static __always_inline int bounced(struct step *s)
{
	struct nat_entry *entry = expected(s);
	if (!entry)
		return XDP_DROP;
	__u8 mark = s->f.wire->flag & FLAG_CLONE_MASK;
	if (mark == FLAG_CLONE_MASK)
		mark = 0;
	__u32 which = mark >> 1;
	count(s, COUNT_BOUNCED);
	clear_state(entry, which ? ENTRY_SECOND : ENTRY_FIRST);
	if (entry->bounces < 255)
		entry->bounces += 1;
	__u32 group = s->tables->group_of[class_of(s, entry->wire_class) & (MAX_TYPES - 1)];
	int number = turn(s, group);
	if (number < 0)
		return give_up(s, entry);
	number = with_room(s, group, number);
	if (server_at(s, number)->family != s->f.family)
		return drop_unreachable(s, server_at(s, number));
	set_state(entry, 1 << which);
	return forward(s, entry, group, number, which, mark | (entry->bounces >= MOST_BOUNCES ? FLAG_BOUNCED : 0));
}
