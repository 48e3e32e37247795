/* The tables and registers of a rack's switch, as the XDP program and the control plane share them. This file is their one description:
 * src/layout.rs mirrors it, and every build of the program checks the mirror. */
#pragma once
#include <linux/types.h>

#define MAX_TYPES 256    /* declared types and UNKNOWN */
#define MAX_GROUPS 64
#define MAX_TURNS 4096   /* of all groups together: the rack's cores */
#define MAX_SERVERS 256
#define BUCKETS 1024     /* of the hash table of servers by address */
#define MAX_PROBES 8     /* buckets that a look-up visits at most */
#define NAT_SLOTS 65536
#define LOST_SLOTS 256   /* that one run for a removed server visits */

#define FAMILY_IP4 4
#define FAMILY_IP6 6

/* Requests keep their client's address, and responses do not pass the switch. */
#define MODE_DIRECT 1
/* The switch replaces address and index, and puts them back into the response. */
#define MODE_NAT 0

#define CLONING_OFF 0
#define CLONING_CALMEST 1  /* the excess of a burst to the group with the lowest degree of burst */
#define CLONING_LONGER 2   /* the same among groups of longer requests */

/* Constant from the load on; addresses and ports are in network order everywhere. */
struct switch_config {
	__u32 own_ip6[4];  /* 0: none */
	__u32 own_ip4;     /* 0: none */
	__u32 answer_ticks; /* an unanswered request is forgotten after so many ticks of the kernel (jiffies) */
	__u16 port;
	__u16 types;       /* types there is room for; UNKNOWN comes after them */
	__u8 mode;
	__u8 cloning;
	__u8 overflows;    /* requests that find no idle core of their group go elsewhere */
	__u8 unfinished;   /* senders may leave UDP checksums to hardware that is not there */
	__u64 window_ns;   /* of bursts */
	__u64 index_seed;  /* what the indices of requests begin with */
	__u32 question_index; /* of the control plane's own probes; no client's request gets it */
	__u8 more_pad[4];
	__u64 lease_ticks; /* for which each renewal holds; 0: no lease is needed */
};

/* One group in one copy of the tables. */
struct group_table {
	__u32 first;       /* its first turn in `turns` */
	__u32 round;       /* turns of a round; 0: requests are shed */
	__u32 threshold;   /* requests that its cores finish in a window */
	__u32 between_looks; /* arrivals look at the time unless their number has a bit of this; a power of two less one */
};

/* A group's arrivals in the present window, of all CPUs. The upper half is the window's number modulo 2^32, the lower half the
 * arrivals. */
struct burst_register {
	__u64 window_arrivals;
};

/* In the order of an Ethernet header. */
struct mac_pair {
	__u8 dest[6];
	__u8 source[6];    /* the switch's own, of the interface by which the packet leaves */
};

/* An interface of the switch's own. */
struct interface_address {
	__u32 ifindex;     /* 0: none, and none behind it */
	__u8 mac[6];
	__u8 pad[2];
};

#define MAX_INTERFACES 16

struct own_interfaces {
	struct interface_address at[MAX_INTERFACES];
};

struct server_entry {
	__u32 ip[4];       /* IPv4: the first word; the others are 0 */
	__u32 ifindex;     /* of the interface by which the server is reached */
	__u16 port;
	struct mac_pair macs;
	__u8 family;       /* 0: no such server */
	__u8 pad;
	__u16 member_cores; /* for the next control plane; 0: the server drains */
	__u8 pad_end[2];
};

/* A group's part of a server. */
struct server_share {
	__u16 cores;
	__u16 full;        /* requests of the group at which the server is full for it */
};

/* What the tables were made for, of one type: doubles, which the program does not read. */
struct type_profile {
	__u64 mean_ns;
	__u64 share;
};

/* Requests at a server, of all CPUs. */
struct server_loads {
	__u32 of_group[MAX_GROUPS]; /* by the group for which the server got them */
	__u32 total;
};

struct rack_loads {
	struct server_loads server[MAX_SERVERS];
};

/* One copy of the tables. The packets of generation g use copy g mod 2. */
struct rack_tables {
	__u32 seed;        /* of the hash of addresses */
	__u32 groups;
	__u8 group_of[MAX_TYPES];
	__u8 class_of[MAX_TYPES];    /* the type that each type byte names; `types` is UNKNOWN */
	struct group_table group[MAX_GROUPS];
	__u16 turns[MAX_TURNS];      /* servers */
	__u16 bucket[BUCKETS];       /* server + 1; 0: free */
	struct server_entry server[MAX_SERVERS];
	__u32 servers;
	__u16 cores[MAX_SERVERS];    /* 0: the server takes no requests */
	struct server_share share[MAX_SERVERS][MAX_GROUPS];
	struct type_profile profile[MAX_TYPES]; /* for the next control plane */
};

struct tables_head {
	__u64 generation;
	__u64 lease_tick;  /* after which the switch passes every packet on */
};

/* A request at servers. */
struct nat_entry {
	__u32 index;       /* the switch's: the slot, and above it a count of the times that it was taken; 0: never */
	__u32 begun_tick;
	__u32 client_ip[4];
	__u32 client_index; /* network order */
	__u32 time_ns;     /* the client's field, network order */
	__u32 ifindex;     /* of the interface by which the client is reached */
	__u16 client_port;
	struct mac_pair macs; /* of a response */
	__u16 servers[2];  /* of the plain or original copy, and of the clone */
	__u8 wire_class;
	__u8 family;
	__u32 state;       /* ENTRY_ bits; without ENTRY_AWAITED the slot is free */
	__u8 cloned;
	__u8 bounces;
	__u8 group[2];     /* for which each server got its copy */
};

#define ENTRY_FIRST 1      /* servers[0] has a copy */
#define ENTRY_SECOND 2     /* servers[1] has a copy */
#define ENTRY_AWAITED 3
#define ENTRY_ANSWERED 4   /* a response went on to the client */

/* The XDP program's order to the program behind it, stored before the packet: send it to two servers. */
struct clone_order {
	__u32 magic;       /* CLONE_MAGIC, or no order */
	__u32 copy;        /* of the tables */
	__u16 servers[2];  /* the packet is addressed to the first */
	__u32 pad;
};

#define CLONE_MAGIC 0x48574332

struct type_registers {
	__u64 count;       /* requests */
	__u64 execution_ns; /* moving average, factor 1/8; 0: no response yet */
	__u64 responses;   /* of those averaged: the weight of this CPU's average */
};

/* Copies of requests, by server. The unanswered copies are sent - answered - expired - lost. */
struct server_registers {
	__u64 sent;
	__u64 answered;    /* responses, and requests handed back */
	__u64 expired;
	__u64 lost;        /* with the server, which was removed */
};

enum packet_count {
	COUNT_REQUESTS,
	COUNT_ANSWERED,
	COUNT_CLONED,
	COUNT_FILTERED,
	COUNT_COPIES_REFUSED,
	COUNT_BOUNCED,
	COUNT_SHED,
	COUNT_EXPIRED,
	COUNT_TRUNCATED,
	COUNT_TOO_LONG,
	COUNT_UNEXPECTED,
	COUNT_SPOOFED,
	COUNT_WRONG_SIDE,
	COUNT_UNKNOWN_TYPE,
	COUNT_FRAGMENT,
	COUNT_OPTIONS,
	COUNT_OTHER_FAMILY,
	COUNT_OVERFLOWED,
	COUNT_LOST,
	COUNT_NO_SERVER,
	COUNT_HIDDEN_TAG,
	COUNTS
};

/* The registers that only one CPU writes, so that none needs an atomic operation. */
struct cpu_registers {
	__u32 nat_first;   /* this CPU's slots: nat_first to nat_first + nat_mask */
	__u32 nat_mask;
	__u32 nat_taken;   /* slots taken so far */
	__u32 pad;
	__u64 counts[COUNTS];
	__u32 next_turn[MAX_GROUPS];
	struct type_registers type[MAX_TYPES];
	struct server_registers server[MAX_SERVERS];
	__u64 unknown_bytes[MAX_TYPES]; /* requests by type byte, where that names no type */
};
