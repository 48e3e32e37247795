/* Where a request goes that finds no idle core of its group: the rule of `headway_policy::rack::ServerLoads`. Only with full translation: in direct
 * mode no response passes the switch, so that nothing tells what servers have. */
#pragma once

static __always_inline struct rack_loads *all_loads(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&loads, &zero);
}

static __always_inline void loaded(__u32 number, __u32 group, __s32 by)
{
	if (!config.overflows)
		return;
	struct rack_loads *all = all_loads();
	if (!all)
		return;
	struct server_loads *of = &all->server[number & (MAX_SERVERS - 1)];
	__sync_fetch_and_add(&of->of_group[group & (MAX_GROUPS - 1)], by);
	__sync_fetch_and_add(&of->total, by);
}

/* Of two CPUs that end one request, one may count it once too often: below zero is zero. */
static __always_inline __u64 requests(__u32 counted)
{
	return counted & less(counted, 1ull << 31);
}

/* The server for a request of this group that found `busy` without an idle core. A function of its own, so that the verifier checks it once. */
__attribute__((noinline)) int instead_of(__u32 copy, __u32 group, __u32 busy, __u32 family)
{
	struct rack_tables *now = bpf_map_lookup_elem(&tables, &copy);
	struct rack_loads *loaded_now = all_loads();
	/* 1 / 0 is more than any load. */
	__u64 own = 1, own_of = 0, all = 1, all_of = 0, best_own = MAX_SERVERS, best = MAX_SERVERS;
	if (!now || !loaded_now)
		return -1;
	group &= MAX_GROUPS - 1;
	busy &= MAX_SERVERS - 1;
	__u32 servers = now->servers, at = busy;
	for (__u32 step = 1; step <= MAX_SERVERS; step++) {
		if (step > servers)
			break;
		/* The next in turn, without a division for each server. */
		at = (at + 1) & less(at + 1, servers) & (MAX_SERVERS - 1);
		const struct server_loads *of = &loaded_now->server[at];
		__u64 cores = now->cores[at], share = now->share[at][group].cores;
		__u64 has = requests(of->of_group[group]), total = requests(of->total);
		__u64 is_there = less(0, cores) & ~less(0, now->server[at].family ^ family);
		__u64 is_best_own = is_there & less(has, share) & less(has * own_of, own * share);
		__u64 is_best = is_there & less(total * all_of, all * cores);
		best_own = either(is_best_own, at, best_own);
		own = either(is_best_own, has, own);
		own_of = either(is_best_own, share, own_of);
		best = either(is_best, at, best);
		all = either(is_best, total, all);
		all_of = either(is_best, cores, all_of);
	}
	if (best_own < MAX_SERVERS)
		return best_own;
	if (best >= MAX_SERVERS)
		return busy;
	const struct server_loads *of = &loaded_now->server[busy];
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
	struct rack_loads *all = all_loads();
	if (!all)
		return number;
	if (s->tables->cores[turn_of] && requests(all->server[turn_of].of_group[at]) < s->tables->share[turn_of][at].cores)
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
