//! The switch without I/O: a datagram in, datagrams with destinations out.

use crate::held::HeldPackets;
use crate::nat::{NatCopy, NatEntry, NatTable};
use crate::packet::{LocalAddress, PacketSink, ReceivedPacket};
use crate::servers::SwitchServers;
use crate::slo::{SloCounts, SloWatch};
use crate::types::TypeTable;
use crate::{PacketCounts, ServerAddresses, ServerInterfaces, SwitchLimits};
use headway_net::header::{CloneRole, Flag, Header, Status};
use headway_net::slot::{PAYLOAD_BYTES, Peer};
use headway_policy::ClassId;
use headway_policy::rack::{Forward, Liveness, Mark, Packet, Reply, ServerId, Switch};
use std::sync::Arc;

/// How many times servers may hand a request back before the switch asks its server to keep it.
const MOST_BOUNCES: u8 = 3;

/// A switch whose policy is `S`. Its methods never allocate, lock or call the system.
pub struct RackSwitch<S> {
    pub(crate) policy: S,
    own: Peer,
    pub(crate) servers: SwitchServers,
    pub(crate) nat: NatTable,
    held: HeldPackets,
    pub(crate) types: TypeTable,
    pub(crate) counts: PacketCounts,
    limits: SwitchLimits,
    slo: Option<SloWatch>,
    /// The slot at which the search for expired requests continues.
    sweep_at: usize,
}

impl<S: Switch> RackSwitch<S> {
    /// Listens at `own`. `policy` was built for one server per place of `servers`, and for the types, declared or not, and held requests of
    /// `limits`.
    ///
    /// # Panics
    /// When a value of `limits` is out of its range.
    #[must_use]
    pub fn new(policy: S, own: Peer, servers: ServerAddresses, limits: SwitchLimits) -> Self {
        assert!((1..=24).contains(&limits.nat_bits), "2^1 to 2^24 requests");
        assert!(
            limits.types + limits.undeclared < 256,
            "a type is a byte, and 255 is UNKNOWN"
        );
        let servers = SwitchServers::new(servers, policy.compares_queues());
        let mut policy = policy;
        for (place, _) in servers
            .serves
            .iter()
            .enumerate()
            .filter(|(_, serves)| !**serves)
        {
            policy.capacity(ServerId(place as u16), 0);
        }
        Self {
            servers,
            policy,
            own,
            nat: NatTable::new(limits.nat_bits, limits.index_seed),
            held: HeldPackets::new(limits.held),
            types: TypeTable::new(limits.types, limits.undeclared),
            counts: PacketCounts::default(),
            limits,
            slo: None,
            sweep_at: 0,
        }
    }

    /// Watches which servers answer, from now on.
    ///
    /// # Panics
    /// Never here. A later [`tick`](Self::tick) panics unless `liveness` knows every server of the switch.
    pub fn watch(&mut self, liveness: Liveness) {
        self.servers.liveness = Some(liveness);
    }

    /// Compares responses with an SLO, from now on.
    ///
    /// # Panics
    /// When it watches another number of types.
    pub fn watch_slo(&mut self, slo: SloWatch) {
        assert_eq!(slo.types(), self.types(), "each type has its counts");
        self.slo = Some(slo);
    }

    /// Believes servers only on the interfaces that lead to them, from now on.
    ///
    /// # Panics
    /// When `interfaces` is for another number of servers.
    pub fn hear_servers_by(&mut self, interfaces: Arc<ServerInterfaces>) {
        assert_eq!(interfaces.count(), self.servers(), "each server has one");
        self.servers.interfaces = Some(interfaces);
    }

    /// Handles one datagram.
    #[inline]
    pub fn step(&mut self, now_ns: u64, packet: ReceivedPacket<'_>, out: &mut impl PacketSink) {
        if packet.is_cut || packet.bytes.len() > PAYLOAD_BYTES {
            self.counts.too_long += 1;
            return;
        }
        let Ok((header, body)) = Header::parse(packet.bytes) else {
            self.counts.truncated += 1;
            return;
        };
        if header.flag.is_response() {
            self.response(now_ns, &packet, header, body, out);
        } else if header.flag.is_bounced() {
            self.bounced(now_ns, &packet, header, body, out);
        } else {
            self.request(now_ns, &packet, header, body, out);
        }
    }

    #[inline]
    fn request(
        &mut self,
        now_ns: u64,
        &ReceivedPacket { from, to, .. }: &ReceivedPacket<'_>,
        header: Header,
        body: &[u8],
        out: &mut impl PacketSink,
    ) {
        if from == self.own || self.servers.addresses.find(from).is_some() {
            self.counts.spoofed += 1;
            return;
        }
        self.counts.requests += 1;
        let class = self.class(header.class);
        let Some((index, entry)) = self.nat.begin(now_ns, &from, to, header, class) else {
            return self.shed(to, from, header.class, header.index, out);
        };
        let packet = Packet::new(class, index);
        match self.policy.request(now_ns, packet) {
            Forward::To(server) => {
                forward(&mut self.servers, entry, now_ns, packet, server, body, out);
            }
            other => self.forward_otherwise(now_ns, packet, other, body, out),
        }
    }

    #[inline]
    fn class(&mut self, wire_class: u8) -> ClassId {
        if let Some(class) = self.types.class(wire_class) {
            return class;
        }
        self.counts.unknown_type += 1;
        self.types.unknown()
    }

    /// Carries out the policy's verdict on a request.
    fn forward_otherwise(
        &mut self,
        now_ns: u64,
        packet: Packet,
        verdict: Forward,
        body: &[u8],
        out: &mut impl PacketSink,
    ) {
        let index = packet.index;
        let Some(entry) = self.nat.get(index) else {
            return;
        };
        let servers = &mut self.servers;
        match verdict {
            Forward::To(server) => forward(servers, entry, now_ns, packet, server, body, out),
            // A copy that a server handed back is never cloned again.
            Forward::Both(server, _) if packet.bounced => {
                forward(servers, entry, now_ns, packet, server, body, out);
            }
            Forward::Both(first, second) => {
                self.counts.cloned += 1;
                entry.cloned = true;
                for (mark, server) in [(Mark::Original, first), (Mark::Clone, second)] {
                    let copy = Packet { mark, ..packet };
                    forward(servers, entry, now_ns, copy, server, body, out);
                }
            }
            Forward::Held => entry.held = self.held.keep(body),
            Forward::Shed => {
                let entry = *entry;
                self.give_up(index, entry, out);
            }
        }
    }

    /// Drops a copy that the policy sheds. The request ends unless a server has the other copy.
    #[cold]
    fn give_up(&mut self, index: u32, entry: NatEntry, out: &mut impl PacketSink) {
        if entry.is_under_way() {
            self.counts.copies_refused += 1;
            return;
        }
        self.nat.end(index);
        // The other copy of a cloned request may have been answered.
        if !entry.answered {
            let (class, index) = (entry.wire_class, entry.client_index);
            self.shed(entry.asked, entry.client, class, index, out);
        }
    }

    /// Tells the client at `to` that its request, which it sent to `asked`, was shed.
    #[cold]
    fn shed(
        &mut self,
        asked: LocalAddress,
        to: Peer,
        class: u8,
        index: u32,
        out: &mut impl PacketSink,
    ) {
        self.counts.shed += 1;
        let header = Header {
            class,
            flag: Flag::response(Status::Shed),
            index,
            time_ns: 0,
        };
        out.send(asked, to, header.encode(), &[]);
    }

    #[inline]
    fn response(
        &mut self,
        now_ns: u64,
        received: &ReceivedPacket<'_>,
        header: Header,
        body: &[u8],
        out: &mut impl PacketSink,
    ) {
        let index = header.index;
        let Some(ServerPacket {
            entry,
            mark,
            copy,
            server,
        }) = expected(
            &mut self.nat,
            &mut self.servers,
            &mut self.counts,
            received,
            header,
        )
        else {
            return;
        };
        // The answer to a probe of the switch.
        if entry.client == Peer::NOBODY {
            return self.nat.end(index);
        }
        let status = header.flag.status();
        let was_served = status != Status::Shed && status != Status::Draining;
        let is_written_off = entry.is_written_off(copy);
        self.servers.settled(server, is_written_off);
        entry.came_back(copy);
        let remaining = entry.is_under_way();
        let (queue, body) = self.servers.queue(server, header.flag, body);
        // The client hears nothing about a refused copy while another copy is under way.
        let is_refused = !was_served && mark != Mark::Plain && (remaining || entry.answered);
        let reply = Reply {
            server,
            class: entry.class,
            index,
            mark: if is_refused { Mark::Plain } else { mark },
            execution_ns: u64::from(if was_served { header.time_ns } else { 0 }),
            queue,
        };
        let passes = (is_written_off || self.policy.reply(now_ns, &reply)) && !entry.answered;
        if is_refused {
            self.counts.copies_refused += 1;
        } else if passes {
            self.counts.answered += 1;
            entry.answered = true;
            if let Some(slo) = &mut self.slo
                && was_served
            {
                let latency_ns = now_ns.saturating_sub(entry.arrived_ns);
                slo.answered(entry.class, latency_ns, header.time_ns);
            }
            let header = client_header(entry, header, self.servers.asks_queues);
            out.send(entry.asked, entry.client, header.encode(), body);
        } else {
            self.counts.filtered += 1;
        }
        if !remaining {
            self.nat.end(index);
        }
        self.release(now_ns, out);
    }

    /// Handles a request that a server hands back unserved.
    #[cold]
    fn bounced(
        &mut self,
        now_ns: u64,
        received: &ReceivedPacket<'_>,
        header: Header,
        body: &[u8],
        out: &mut impl PacketSink,
    ) {
        let Some(ServerPacket {
            entry,
            mark,
            copy,
            server,
        }) = expected(
            &mut self.nat,
            &mut self.servers,
            &mut self.counts,
            received,
            header,
        )
        else {
            return;
        };
        if entry.client == Peer::NOBODY {
            return self.nat.end(header.index);
        }
        self.counts.bounced += 1;
        entry.came_back(copy);
        entry.bounces = entry.bounces.saturating_add(1);
        let (class, is_written_off) = (entry.class, entry.is_written_off(copy));
        self.servers.settled(server, is_written_off);
        if !is_written_off {
            self.forget_at(now_ns, header.index, class, server);
        }
        let packet = Packet {
            class,
            index: header.index,
            mark,
            bounced: true,
        };
        let verdict = self.policy.request(now_ns, packet);
        self.forward_otherwise(now_ns, packet, verdict, body, out);
        self.release(now_ns, out);
    }

    /// Tells the policy that the server no longer has this request, which it did not serve.
    pub(crate) fn forget_at(&mut self, now_ns: u64, index: u32, class: ClassId, server: ServerId) {
        let reply = Reply {
            server,
            class,
            index,
            // Marked as an uncloned request, so that the other copy's response still passes.
            mark: Mark::Plain,
            execution_ns: 0,
            queue: self.servers.unanswered[server.index()],
        };
        self.policy.reply(now_ns, &reply);
    }

    /// Sends the held requests that the policy releases now.
    #[inline]
    fn release(&mut self, now_ns: u64, out: &mut impl PacketSink) {
        while let Some((server, packet)) = self.policy.release() {
            self.send_held(now_ns, server, packet, out);
        }
        // Every held request has a buffer: `limits.held` is the policy's own limit.
        debug_assert!(self.policy.held() <= self.limits.held);
    }

    #[cold]
    fn send_held(
        &mut self,
        now_ns: u64,
        server: ServerId,
        packet: Packet,
        out: &mut impl PacketSink,
    ) {
        let Some(entry) = self.nat.get(packet.index) else {
            return;
        };
        let Some(buffer) = entry.held.take() else {
            return;
        };
        let body = self.held.body(buffer);
        forward(&mut self.servers, entry, now_ns, packet, server, body, out);
        self.held.free(buffer);
    }

    /// Checks the servers' liveness, and forgets requests that missed the time for an answer, among the next `slots` entries. Call it
    /// often enough that all entries are visited within that time.
    pub fn tick(&mut self, now_ns: u64, slots: usize, out: &mut impl PacketSink) {
        let before_ns = now_ns.saturating_sub(self.limits.answer_ns);
        for _ in 0..slots.min(self.nat.capacity()) {
            let slot = self.sweep_at;
            self.sweep_at = (slot + 1) % self.nat.capacity();
            if let Some(index) = self.nat.older_than(slot, before_ns) {
                self.expire(now_ns, index);
            }
        }
        self.look_at_servers(now_ns, out);
        self.release(now_ns, out);
    }

    fn expire(&mut self, now_ns: u64, index: u32) {
        let Some(&mut entry) = self.nat.get(index) else {
            return;
        };
        // The policy still has a held request, and will release it.
        if entry.held.is_some() {
            return;
        }
        // The policy knows nothing of the switch's own probes.
        if entry.client == Peer::NOBODY {
            self.nat.end(index);
            return;
        }
        for copy in NatCopy::BOTH {
            if let Some(server) = entry.server(copy) {
                self.counts.expired += 1;
                let is_written_off = entry.is_written_off(copy);
                self.servers.settled(server, is_written_off);
                if !is_written_off {
                    self.forget_at(now_ns, index, entry.class, server);
                }
            }
        }
        self.nat.end(index);
    }

    /// Counts of packets by fate so far.
    #[must_use]
    pub fn counts(&self) -> &PacketCounts {
        &self.counts
    }

    /// Places for servers behind the switch.
    #[must_use]
    pub fn servers(&self) -> usize {
        self.servers.addresses.count()
    }

    /// Types, declared or not, with UNKNOWN.
    #[must_use]
    pub fn types(&self) -> usize {
        self.limits.types + self.limits.undeclared + 1
    }

    /// A server's unanswered requests that the policy counts: none once it is silent.
    ///
    /// # Panics
    /// When there is no such server.
    #[must_use]
    pub fn unanswered(&self, server: ServerId) -> u32 {
        self.servers.unanswered[server.index()]
    }

    /// A server's requests whose answers still pass: of a silent one too.
    ///
    /// # Panics
    /// When there is no such server.
    #[must_use]
    pub fn awaited(&self, server: ServerId) -> u32 {
        self.servers.awaited(server)
    }

    /// Requests at servers or held.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.nat.under_way()
    }

    /// Entries of the table of requests under way, used and free.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.nat.capacity()
    }

    /// The cores that the switch assumes for a server; `None` where it watches no servers.
    #[must_use]
    pub fn cores(&self, server: ServerId) -> Option<usize> {
        Some(self.servers.liveness.as_ref()?.cores(server))
    }

    /// The type bytes of the types known so far, by class.
    #[must_use]
    pub fn type_bytes(&self) -> &[u8] {
        self.types.bytes()
    }

    /// Counts of the SLO that the switch watches.
    #[must_use]
    pub fn slo_counts(&self) -> Option<&SloCounts> {
        self.slo.as_ref().map(SloWatch::counts)
    }

    /// The policy that decides where requests go.
    pub fn policy(&mut self) -> &mut S {
        &mut self.policy
    }
}

/// A server's packet about a request that it received.
struct ServerPacket<'a> {
    entry: &'a mut NatEntry,
    mark: Mark,
    copy: NatCopy,
    server: ServerId,
}

/// Finds the entry, copy and server of a server's packet. `None` unless that server has the copy.
#[inline]
fn expected<'a>(
    nat: &'a mut NatTable,
    servers: &mut SwitchServers,
    counts: &mut PacketCounts,
    received: &ReceivedPacket<'_>,
    header: Header,
) -> Option<ServerPacket<'a>> {
    let mark = mark_of(header.flag.clone_role());
    let Some(entry) = nat.get(header.index) else {
        counts.unexpected += 1;
        return None;
    };
    let copy = NatCopy::of(mark);
    let is_of_its_kind = entry.cloned == (mark != Mark::Plain);
    let Some(server) = entry.server(copy).filter(|_| is_of_its_kind) else {
        counts.unexpected += 1;
        return None;
    };
    if servers.addresses.peer(server) != received.from {
        counts.spoofed += 1;
        return None;
    }
    if !servers.is_on_its_side(server, received.interface) {
        counts.wrong_side += 1;
        return None;
    }
    servers.heard(server);
    Some(ServerPacket {
        entry,
        mark,
        copy,
        server,
    })
}

/// Sends one copy of a request to a server.
#[inline]
fn forward(
    servers: &mut SwitchServers,
    entry: &mut NatEntry,
    now_ns: u64,
    Packet { index, mark, .. }: Packet,
    server: ServerId,
    body: &[u8],
    out: &mut impl PacketSink,
) {
    entry.sent(NatCopy::of(mark), server);
    let to = servers.sent(now_ns, server);
    let role = match mark {
        Mark::Plain => CloneRole::None,
        Mark::Original => CloneRole::Original,
        Mark::Clone => CloneRole::Clone,
    };
    let flag = Flag::REQUEST
        .with_clone_role(role)
        .with_bounced(entry.bounces >= MOST_BOUNCES)
        .with_queue(servers.asks_queues);
    let header = Header {
        class: entry.wire_class,
        flag,
        index,
        time_ns: entry.time_ns,
    };
    out.send(LocalAddress::ANY, to, header.encode(), body);
}

/// A response's header as its client gets it: under the client's own index, without what only the switch asked for.
#[inline]
fn client_header(entry: &NatEntry, header: Header, asks_queues: bool) -> Header {
    let says_queue = header.flag.has_queue() && !asks_queues;
    let flag = header.flag.with_clone_role(CloneRole::None);
    Header {
        class: entry.wire_class,
        flag: flag.with_queue(says_queue),
        index: entry.client_index,
        time_ns: header.time_ns,
    }
}

#[inline]
fn mark_of(role: CloneRole) -> Mark {
    match role {
        CloneRole::None => Mark::Plain,
        CloneRole::Original => Mark::Original,
        CloneRole::Clone => Mark::Clone,
    }
}
