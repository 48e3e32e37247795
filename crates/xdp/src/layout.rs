//! The structs of `bpf/tables.h`, field by field as bytes. [`asserts`] is C that holds this mirror against the original.

use std::fmt::Write as _;

pub(crate) use self::constants::*;

/// Declares constants of `tables.h` by their names there.
macro_rules! constants {
    ($($(#[$doc:meta])* $name:ident = $value:expr;)*) => {
        mod constants {
            use headway_policy::rack::StepTables;
            $($(#[$doc])* pub(crate) const $name: usize = $value;)*
        }
        fn assert_constants(c: &mut String) {
            $(assert_equal(c, stringify!($name), $name);)*
        }
    };
}

constants! {
    /// The most types of a switch, UNKNOWN included.
    MAX_TYPES = StepTables::MAX_TYPES;
    /// The most groups.
    MAX_GROUPS = StepTables::MAX_GROUPS;
    /// The most turns of all groups together: the rack's cores.
    MAX_TURNS = StepTables::MAX_TURNS;
    /// The most servers.
    MAX_SERVERS = StepTables::MAX_SERVERS;
    /// Buckets of the hash table of servers by address.
    BUCKETS = 1024;
    /// The most buckets that a look-up visits.
    MAX_PROBES = 8;
    /// The most requests under way, of all CPUs together.
    NAT_SLOTS = 65536;
    /// Slots that one run for a removed server visits.
    LOST_SLOTS = 256;
    /// The number of fates by which packets are counted.
    COUNTS = 21;
    /// The most interfaces of the switch's own whose Ethernet addresses it knows.
    MAX_INTERFACES = 16;
    /// `config.mode` with full translation of addresses.
    MODE_NAT = 0;
    /// `config.mode` in which clients keep their addresses.
    MODE_DIRECT = 1;
    /// `config.cloning`.
    CLONING_OFF = 0;
    /// `config.cloning`.
    CLONING_CALMEST = 1;
    /// `config.cloning`.
    CLONING_LONGER = 2;
    /// Marks an order of clones.
    CLONE_MAGIC = 0x4857_4332;
    /// `server_entry.family` of IPv4.
    FAMILY_IP4 = 4;
    /// `server_entry.family` of IPv6.
    FAMILY_IP6 = 6;
}

/// Declares a struct with the offsets of its fields, its size in C and its C spelling. Fields left out are 0.
macro_rules! mirror {
    ($(#[$doc:meta])* $name:ident as $c_name:literal, $size:expr, $assert:ident {
        $($field:ident: $type:ty as $c_field:literal at $offset:expr,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub(crate) struct $name {
            $(pub(crate) $field: $type,)*
        }

        impl Raw for $name {
            const BYTES: usize = $size;
            fn put(&self, to: &mut [u8]) {
                $(self.$field.put(&mut to[$offset..]);)*
            }
            fn get(from: &[u8]) -> Self {
                Self { $($field: Raw::get(&from[$offset..]),)* }
            }
        }

        fn $assert(c: &mut String) {
            assert_equal(c, concat!("sizeof(struct ", $c_name, ")"), $size);
            $(
                let field = concat!("struct ", $c_name, ", ", $c_field);
                assert_equal(c, &format!("__builtin_offsetof({field})"), $offset);
                let member = concat!("((struct ", $c_name, " *)0)->", $c_field);
                assert_equal(c, &format!("sizeof({member})"), <$type as Raw>::BYTES);
            )*
        }
    };
}

/// A value with a fixed place in memory shared with the kernel, in the machine's byte order.
pub(crate) trait Raw: Sized {
    const BYTES: usize;
    fn put(&self, to: &mut [u8]);
    fn get(from: &[u8]) -> Self;
}

macro_rules! raw_integers {
    ($($type:ty),*) => {$(
        impl Raw for $type {
            const BYTES: usize = size_of::<$type>();
            fn put(&self, to: &mut [u8]) {
                to[..Self::BYTES].copy_from_slice(&self.to_ne_bytes());
            }
            fn get(from: &[u8]) -> Self {
                let mut bytes = [0; Self::BYTES];
                bytes.copy_from_slice(&from[..Self::BYTES]);
                Self::from_ne_bytes(bytes)
            }
        }
    )*};
}

raw_integers!(u8, u16, u32, u64);

impl<T: Raw, const N: usize> Raw for [T; N] {
    const BYTES: usize = N * T::BYTES;
    fn put(&self, to: &mut [u8]) {
        for (value, place) in self.iter().zip(to.chunks_exact_mut(T::BYTES)) {
            value.put(place);
        }
    }
    fn get(from: &[u8]) -> Self {
        std::array::from_fn(|at| T::get(&from[at * T::BYTES..]))
    }
}

/// The bytes of a value; `N` is its [`Raw::BYTES`].
pub(crate) fn bytes_of<T: Raw, const N: usize>(value: &T) -> [u8; N] {
    const { assert!(N == T::BYTES, "as many bytes as the value has") };
    let mut bytes = [0; N];
    value.put(&mut bytes);
    bytes
}

mirror! {
    /// The configuration, constant from the load on.
    SwitchConfig as "switch_config", 64, assert_config {
        own_ip6: [u8; 16] as "own_ip6" at 0,
        own_ip4: [u8; 4] as "own_ip4" at 16,
        answer_ticks: u32 as "answer_ticks" at 20,
        port: [u8; 2] as "port" at 24,
        types: u16 as "types" at 26,
        mode: u8 as "mode" at 28,
        cloning: u8 as "cloning" at 29,
        overflows: u8 as "overflows" at 30,
        unfinished: u8 as "unfinished" at 31,
        window_ns: u64 as "window_ns" at 32,
        index_seed: u64 as "index_seed" at 40,
        question_index: u32 as "question_index" at 48,
        lease_ticks: u64 as "lease_ticks" at 56,
    }
}

mirror! {
    /// One group in one copy of the tables.
    GroupTable as "group_table", 16, assert_group {
        first: u32 as "first" at 0,
        round: u32 as "round" at 4,
        threshold: u32 as "threshold" at 8,
        between_looks: u32 as "between_looks" at 12,
    }
}

mirror! {
    /// A server, and the interface that leads to it.
    ServerEntry as "server_entry", 40, assert_server {
        ip: [u8; 16] as "ip" at 0,
        ifindex: u32 as "ifindex" at 16,
        port: [u8; 2] as "port" at 20,
        mac: [u8; 6] as "macs.dest" at 22,
        own_mac: [u8; 6] as "macs.source" at 28,
        family: u8 as "family" at 34,
        member_cores: u16 as "member_cores" at 36,
    }
}

mirror! {
    /// One copy of the tables.
    RackTables as "rack_tables", RACK_TABLES_BYTES, assert_tables {
        seed: u32 as "seed" at 0,
        groups: u32 as "groups" at 4,
        group_of: [u8; MAX_TYPES] as "group_of" at 8,
        class_of: [u8; MAX_TYPES] as "class_of" at 264,
        group: [GroupTable; MAX_GROUPS] as "group" at 520,
        turns: [u16; MAX_TURNS] as "turns" at 1544,
        bucket: [u16; BUCKETS] as "bucket" at 9736,
        server: [ServerEntry; MAX_SERVERS] as "server" at 11784,
        servers: u32 as "servers" at 22024,
        cores: [u16; MAX_SERVERS] as "cores" at 22028,
        share: [[ServerShare; MAX_GROUPS]; MAX_SERVERS] as "share" at 22540,
        profile: [TypeProfile; MAX_TYPES] as "profile" at PROFILE_AT,
    }
}

mirror! {
    /// What the tables were made for, of one type: the bits of doubles.
    TypeProfile as "type_profile", 16, assert_profile {
        mean_ns: u64 as "mean_ns" at 0,
        share: u64 as "share" at 8,
    }
}

mirror! {
    /// The newest tables, and the tick until which they hold.
    TablesHead as "tables_head", 16, assert_head {
        generation: u64 as "generation" at 0,
        lease_tick: u64 as "lease_tick" at 8,
    }
}

mirror! {
    /// A group's part of a server.
    ServerShare as "server_share", 4, assert_share {
        cores: u16 as "cores" at 0,
        full: u16 as "full" at 2,
    }
}

mirror! {
    /// The XDP program's order to the program behind it.
    OrderBytes as "clone_order", 16, assert_order {
        magic: u32 as "magic" at 0,
        copy: u32 as "copy" at 4,
        servers: [u16; 2] as "servers" at 8,
    }
}

mirror! {
    /// An interface of the switch's own.
    InterfaceAddress as "interface_address", 12, assert_interface {
        ifindex: u32 as "ifindex" at 0,
        mac: [u8; 6] as "mac" at 4,
    }
}

mirror! {
    /// All interfaces of the switch's own.
    OwnInterfaces as "own_interfaces", MAX_INTERFACES * InterfaceAddress::BYTES, assert_interfaces {
        at: [InterfaceAddress; MAX_INTERFACES] as "at" at 0,
    }
}

mirror! {
    /// One type's registers on one CPU.
    TypeRow as "type_registers", 24, assert_type {
        count: u64 as "count" at 0,
        execution_ns: u64 as "execution_ns" at 8,
        responses: u64 as "responses" at 16,
    }
}

mirror! {
    /// One server's registers on one CPU.
    ServerRow as "server_registers", 32, assert_server_row {
        sent: u64 as "sent" at 0,
        answered: u64 as "answered" at 8,
        expired: u64 as "expired" at 16,
        lost: u64 as "lost" at 24,
    }
}

mirror! {
    /// One CPU's registers.
    CpuRegisters as "cpu_registers", CPU_REGISTERS_BYTES, assert_registers {
        nat_first: u32 as "nat_first" at 0,
        nat_mask: u32 as "nat_mask" at 4,
        nat_taken: u32 as "nat_taken" at 8,
        counts: [u64; COUNTS] as "counts" at 16,
        next_turn: [u32; MAX_GROUPS] as "next_turn" at 184,
        of_type: [TypeRow; MAX_TYPES] as "type" at 440,
        of_server: [ServerRow; MAX_SERVERS] as "server" at 6584,
        unknown_bytes: [u64; MAX_TYPES] as "unknown_bytes" at 14776,
    }
}

const PROFILE_AT: usize = (22540 + MAX_SERVERS * MAX_GROUPS * 4).next_multiple_of(8);
pub(crate) const RACK_TABLES_BYTES: usize = PROFILE_AT + MAX_TYPES * TypeProfile::BYTES;
pub(crate) const CPU_REGISTERS_BYTES: usize = 14776 + MAX_TYPES * 8;

fn assert_equal(c: &mut String, what: &str, value: usize) {
    let _ = writeln!(
        c,
        "_Static_assert({what} == {value}, \"{what} is not {value}, as in layout.rs\");"
    );
}

/// C assertions that fail to compile unless this mirror matches `tables.h`.
pub(crate) fn asserts(count_names: &[&str; COUNTS]) -> String {
    let mut c = String::from("#include \"tables.h\"\n");
    assert_constants(&mut c);
    for (number, name) in count_names.iter().enumerate() {
        assert_equal(&mut c, name, number);
    }
    for of_struct in [
        assert_config,
        assert_group,
        assert_server,
        assert_share,
        assert_profile,
        assert_head,
        assert_tables,
        assert_order,
        assert_interface,
        assert_interfaces,
        assert_type,
        assert_server_row,
        assert_registers,
    ] {
        of_struct(&mut c);
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_reads_back_as_it_was_written() {
        let entry = ServerEntry {
            ip: std::array::from_fn(|at| at as u8),
            ifindex: 77,
            port: [1, 2],
            mac: [3; 6],
            own_mac: [4; 6],
            family: 6,
            member_cores: 0,
        };
        let bytes: [u8; 40] = bytes_of(&entry);
        let back = ServerEntry::get(&bytes);
        assert_eq!((back.ip, back.ifindex, back.port), (entry.ip, 77, [1, 2]));
        assert_eq!(bytes[20..34], [1, 2, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4]);
        assert_eq!(bytes[35..], [0; 5]);
    }
}
