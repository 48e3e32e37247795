/* Where a request goes that finds no idle core of its group: the rule of `headway_policy::rack::ServerLoads`. Only with full translation: in direct
 * mode no response passes the switch, so that nothing tells what servers have. */
#pragma once

static __always_inline struct server_loads *loads_of(__u32 number)
{
	__u32 at = number & (MAX_SERVERS - 1);
	return bpf_map_lookup_elem(&loads, &at);
}

static __always_inline void loaded(__u32 number, __u32 group, __s32 by)
{
	struct server_loads *of = loads_of(number);
	if (!config.overflows || !of)
		return;
	__sync_fetch_and_add(&of->of_group[group & (MAX_GROUPS - 1)], by);
	__sync_fetch_and_add(&of->total, by);
}

/* Of two CPUs that end one request, one may count it once too often. */
static __always_inline __u64 requests(__u32 counted)
{
	return (__s32)counted < 0 ? 0 : counted;
}

/* The server for a request of this group that found `busy` without an idle core. A function of its own, so that the verifier checks it once. */
__attribute__((noinline)) int instead_of(__u32 copy, __u32 group, __u32 busy, __u32 family)
{
	struct rack_tables *now = bpf_map_lookup_elem(&tables, &copy);
	/* 1 / 0 is more than any load. */
	__u64 own = 1, own_of = 0, all = 1, all_of = 0;
	int best_own = -1, best = -1;
	if (!now)
		return -1;
	group &= MAX_GROUPS - 1;
	busy &= MAX_SERVERS - 1;
	__u32 servers = now->servers, at = busy;
	for (__u32 step = 0; step < MAX_SERVERS; step++) {
		if (step >= servers)
			break;
		at = at + 1 >= servers ? 0 : at + 1;
		at &= MAX_SERVERS - 1;
		struct server_loads *of = loads_of(at);
		__u64 cores = now->cores[at], share = now->share[at][group].cores;
		if (!of || !cores || now->server[at].family != family)
			continue;
		__u64 has = requests(of->of_group[group]), total = requests(of->total);
		if (has < share && has * own_of < own * share) {
			best_own = at;
			own = has;
			own_of = share;
		}
		if (total * all_of < all * cores) {
			best = at;
			all = total;
			all_of = cores;
		}
	}
	if (best_own >= 0)
		return best_own;
	struct server_loads *of = loads_of(busy);
	if (best < 0 || !of)
		return busy;
	__u64 cores = now->cores[busy];
	bool is_full = requests(of->of_group[group]) >= now->share[busy][group].full;
	bool has_less = all * cores < requests(of->total) * all_of;
	return all < all_of || !cores || (is_full && has_less) ? best : busy;
}

/* The server of a request whose turn fell on `number`. */
static __always_inline int with_room(struct step *s, __u32 group, int number)
{
	__u32 turn_of = number & (MAX_SERVERS - 1), at = group & (MAX_GROUPS - 1);
	if (!config.overflows || config.mode != MODE_NAT)
		return number;
	struct server_loads *of = loads_of(turn_of);
	if (!of || (s->tables->cores[turn_of] && requests(of->of_group[at]) < s->tables->share[turn_of][at].cores))
		return number;
	int other = instead_of(s->copy, group, turn_of, s->f.family);
	/* Hides the range from the compiler, which would otherwise remove the masks that the verifier needs. */
	asm volatile("" : "+r"(other));
	if (other < 0)
		return number;
	other &= MAX_SERVERS - 1;
	if (!s->tables->share[other][at].cores)
		count(s, COUNT_OVERFLOWED);
	return other;
}
