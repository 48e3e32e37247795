//! The program's counts and measurements, of all CPUs together.

use crate::layout::{COUNTS, CpuRegisters, MAX_SERVERS};
use headway_policy::rack::DemandReading;

/// Declares the counts in the order of `enum packet_count` in `bpf/tables.h`.
macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident as $c_name:literal,)*) => {
        /// Counts of packets by fate, since the program was loaded.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct XdpCounts {
            $($(#[$doc])* pub $name: u64,)*
        }

        pub(crate) const COUNT_NAMES: [&str; COUNTS] = [$($c_name,)*];

        impl XdpCounts {
            fn of(counts: &[u64; COUNTS]) -> Self {
                let [$($name,)*] = *counts;
                Self { $($name,)* }
            }

            /// Each count with its name.
            #[must_use]
            pub fn named(&self) -> [(&'static str, u64); COUNTS] {
                [$((stringify!($name), self.$name),)*]
            }
        }
    };
}

counts! {
    /// Requests of clients.
    requests as "COUNT_REQUESTS",
    /// Responses that went on to their clients.
    answered as "COUNT_ANSWERED",
    /// Requests sent to two servers.
    cloned as "COUNT_CLONED",
    /// The slower responses of cloned requests, which the switch filtered.
    filtered as "COUNT_FILTERED",
    /// Copies of cloned requests that a server refused to begin, while the other copy is awaited or was answered.
    copies_refused as "COUNT_COPIES_REFUSED",
    /// Requests that servers handed back.
    bounced as "COUNT_BOUNCED",
    /// Requests for which no server has a turn, or the switch no room. The switch told their clients.
    shed as "COUNT_SHED",
    /// Copies of requests that no server answered in time, and that the switch forgot for another request.
    expired as "COUNT_EXPIRED",
    /// Dropped: shorter than their headers say, or than the wire header.
    truncated as "COUNT_TRUNCATED",
    /// Dropped: more than 2000 bytes of UDP payload.
    too_long as "COUNT_TOO_LONG",
    /// Dropped: responses, and requests handed back, that match no request under way.
    unexpected as "COUNT_UNEXPECTED",
    /// Dropped: responses from another address than the server's that was asked; requests in the name of a server or of the switch.
    spoofed as "COUNT_SPOOFED",
    /// Dropped: responses, and requests handed back, by another interface than the one that leads to the server that was asked.
    wrong_side as "COUNT_WRONG_SIDE",
    /// Requests whose type byte names no declared type. They were forwarded as UNKNOWN.
    unknown_type as "COUNT_UNKNOWN_TYPE",
    /// Passed to the kernel: fragments of packets to the switch's address.
    fragment as "COUNT_FRAGMENT",
    /// Passed to the kernel: packets to the switch's address with IP options or extension headers.
    options as "COUNT_OPTIONS",
    /// Dropped: IPv4 requests for a server that has IPv6, or the other way round.
    other_family as "COUNT_OTHER_FAMILY",
    /// Requests that found no idle core of their group, and went to a server without cores of it.
    overflowed as "COUNT_OVERFLOWED",
    /// Copies of requests that a server had when it was removed.
    lost as "COUNT_LOST",
    /// Dropped: requests whose turn fell on a place without a server, which was removed, until there are new tables.
    no_server as "COUNT_NO_SERVER",
    /// Dropped: packets to the switch's port whose VLAN tag the sender's end of a veth pair left beside them.
    hidden_tag as "COUNT_HIDDEN_TAG",
}

/// One type's registers, of all CPUs together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TypeRegisters {
    /// Requests since the load, cumulative.
    pub count: u64,
    /// Moving average of the execution time, ns; 0 before the first response. Each CPU averages the responses that it sees; this is
    /// their mean, weighted by the number of responses.
    pub execution_ns: u64,
}

/// One server's copies of requests since the load, of all CPUs together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServerRegisters {
    /// Sent to it.
    pub sent: u64,
    /// Answered by it or handed back.
    pub answered: u64,
    /// Forgotten for lack of a timely answer.
    pub expired: u64,
    /// Lost with the server, which was removed.
    pub lost: u64,
}

impl ServerRegisters {
    /// Copies that the server has now.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.sent
            .saturating_sub(self.answered + self.expired + self.lost)
    }
}

/// The program's registers at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registers {
    /// Packets by their fate.
    pub counts: XdpCounts,
    /// By type, UNKNOWN last.
    pub types: Vec<TypeRegisters>,
    /// By server, for every server that the tables have room for. In [direct mode](crate::Mode::Direct) the program sees no answers.
    pub servers: Vec<ServerRegisters>,
    /// Type bytes of requests that were UNKNOWN on arrival.
    pub unknown_bytes: Vec<u8>,
}

impl Registers {
    /// The sum over CPUs; `classes` types, UNKNOWN included.
    pub(crate) fn sum(cpus: &[CpuRegisters], classes: usize) -> Self {
        let counts =
            std::array::from_fn(|reason| cpus.iter().map(|cpu| cpu.counts[reason]).sum::<u64>());
        let types = (0..classes).map(|class| {
            let rows = || cpus.iter().map(|cpu| &cpu.of_type[class]);
            let responses: u64 = rows().map(|row| row.responses).sum();
            let weighted: u128 = rows()
                .map(|row| u128::from(row.execution_ns) * u128::from(row.responses))
                .sum();
            TypeRegisters {
                count: rows().map(|row| row.count).sum(),
                execution_ns: (weighted / u128::from(responses.max(1))) as u64,
            }
        });
        let servers = (0..MAX_SERVERS).map(|server| {
            let rows = || cpus.iter().map(|cpu| &cpu.of_server[server]);
            ServerRegisters {
                sent: rows().map(|row| row.sent).sum(),
                answered: rows().map(|row| row.answered).sum(),
                expired: rows().map(|row| row.expired).sum(),
                lost: rows().map(|row| row.lost).sum(),
            }
        });
        let came = |&byte: &u8| {
            let byte = usize::from(byte);
            cpus.iter().any(|cpu| cpu.unknown_bytes[byte] > 0)
        };
        let unknown_bytes = (0..=255).filter(came);
        Self {
            counts: XdpCounts::of(&counts),
            types: types.collect(),
            servers: servers.collect(),
            unknown_bytes: unknown_bytes.collect(),
        }
    }

    /// The readings for a control plane: the registers in the form of the user-space switch, counted from the beginning.
    #[must_use]
    pub fn readings(&self) -> Vec<DemandReading> {
        self.types
            .iter()
            .map(|of_type| DemandReading {
                count: of_type.count,
                execution_ns: of_type.execution_ns,
            })
            .collect()
    }
}
