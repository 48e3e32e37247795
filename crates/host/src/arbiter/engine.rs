//! The engine: the state of an arbiter, and its pass.

use super::admission::AdmissionError;
use super::evicted::EvictedKthreads;
use super::journal::{Durations, TenancyJournal};
use super::member::{
    KthreadsBook, Member, MemberCounts, MemberWork, MembersView, Newcomer, NewcomerWork,
    ProgramBook,
};
use super::unusable::UnusableCores;
use crate::futex;
use crate::peer::HostPeer;
use crate::topology::{HostCores, mask};
use headway_kthread::Grant;
use headway_machine::Clock;
use headway_policy::host::{Allocator, AppId, CoreId, HeldCore, KthreadId, Move, Tenant, Usage};
use nix::sched::CpuSet;
use std::sync::atomic::{Ordering, fence};

/// The interval between two looks for threads of a program that was just moved, ns.
const LOOK_AFTER_MOVE_NS: u64 = 5_000_000;
/// The interval for other programs, ns.
const LOOK_NS: u64 = 50_000_000;
/// A number of grants above every real one.
const GRANTS_MAX: u64 = 1 << 62;

/// The engine: it owns the allocator, the cores and the applications.
pub struct Arbiter<A, P> {
    pub(super) allocator: A,
    pub(super) cores: HostCores,
    /// Whether applications ring, as their memory tells them: see [`ArbiterLine`](crate::memory::ArbiterLine).
    doorbell: bool,
    pub(super) members: Vec<Option<Member<P>>>,
    /// Kthreads that are confined to each core, some of them asleep.
    confined: Vec<Vec<Tenant>>,
    /// When each core got its tenant, ns; `revoked_ns` is when that tenant was ordered to leave.
    pub(super) since_ns: Vec<u64>,
    revoked_ns: Vec<Option<u64>>,
    evicted: EvictedKthreads,
    pub(super) unusable: UnusableCores,
    used_ns: u64,
    /// The clock of the kthreads' timers: all processes share it.
    pub(super) timers: Clock,
    /// The core on which the pass thread runs, plus 1; 0 if it has one of its own.
    pub(super) daemons_core: u32,
    pub(super) times: Durations,
    pub(super) journal: TenancyJournal,
}

impl<A: Allocator, P: HostPeer> Arbiter<A, P> {
    /// An engine without applications. `doorbell`: whether applications must ring to be heard at once.
    pub fn new(allocator: A, cores: HostCores, doorbell: bool) -> Self {
        let (slots, count) = (allocator.cores().apps(), cores.count());
        Self {
            allocator,
            cores,
            doorbell,
            members: (0..slots).map(|_| None).collect(),
            confined: vec![Vec::new(); count],
            since_ns: vec![0; count],
            revoked_ns: vec![None; count],
            evicted: EvictedKthreads::default(),
            unusable: UnusableCores::default(),
            used_ns: 0,
            timers: Clock::given(headway_kthread::now_ns),
            daemons_core: 0,
            times: Durations::default(),
            journal: TenancyJournal::default(),
        }
    }

    /// Reads the kthreads' timers by another clock than `CLOCK_MONOTONIC`.
    #[must_use]
    pub fn with_timers(mut self, timers: Clock) -> Self {
        self.timers = timers;
        self
    }

    /// Checks that an application of this shape would be admitted.
    ///
    /// # Errors
    /// [`AdmissionError`].
    pub fn check(&self, newcomer: &Newcomer<P>) -> Result<AppId, AdmissionError> {
        let slot = self.members.iter().position(Option::is_none);
        let slot = slot.ok_or(AdmissionError::Full(self.members.len()))?;
        let app = AppId(slot as u16);
        let cores = self.allocator.cores();
        cores
            .check_admission(app, newcomer.shape)
            .map_err(AdmissionError::Shape)?;
        if let NewcomerWork::Kthreads { lines, .. } = &newcomer.work {
            let grants = (0..lines.kthreads()).map(|kthread| lines.orders(kthread).granted().0);
            if let Some(grants) = grants.max().filter(|&grants| grants >= GRANTS_MAX) {
                return Err(AdmissionError::Grants(grants));
            }
        }
        Ok(app)
    }

    /// Admits an application.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn admit(
        &mut self,
        newcomer: Newcomer<P>,
        now: &impl Fn() -> u64,
    ) -> Result<AppId, AdmissionError> {
        let app = self.check(&newcomer)?;
        let mut holding = Vec::new();
        let Newcomer {
            id,
            name,
            shape,
            work,
            mut peer,
            home,
        } = newcomer;
        let cpu_at_start_ns = peer.cpu_ns();
        let work = match work {
            NewcomerWork::Kthreads {
                lines,
                probes,
                resumed,
            } => {
                lines
                    .arbiter()
                    .parks
                    .store(u32::from(A::PARKS), Ordering::Relaxed);
                lines
                    .arbiter()
                    .doorbell
                    .store(u32::from(self.doorbell), Ordering::Release);
                let daemons_core = &lines.arbiter().daemons_core;
                daemons_core.store(self.daemons_core, Ordering::Relaxed);
                let mut book = KthreadsBook::new(lines, probes);
                if resumed {
                    book.resume(&peer, self.cores.shared);
                    holding = self.held_by(&mut book, shape.most);
                }
                MemberWork::Kthreads(book)
            }
            NewcomerWork::Program => {
                let threads = peer.pin_all(&self.cores.only(self.cores.shared));
                MemberWork::Program(ProgramBook {
                    threads,
                    ..ProgramBook::default()
                })
            }
        };
        let now_ns = now();
        self.allocator.admit(now_ns, app, shape, &holding);
        let is_batch_program = matches!(work, MemberWork::Program(_));
        self.members[app.index()] = Some(Member {
            id,
            name,
            shape,
            work,
            peer,
            home,
            usage: Usage::default(),
            cpu_at_start_ns,
            counts: MemberCounts::default(),
        });
        for held in holding {
            self.take_over(app, held, now_ns);
        }
        if is_batch_program {
            self.allocator.arrived(now_ns, app);
        }
        self.carry_out(now);
        Ok(app)
    }

    /// The cores that kthreads claim in their lines. A false claim harms only its own application.
    fn held_by(&self, book: &mut KthreadsBook, most: usize) -> Vec<HeldCore> {
        let mut holding = Vec::new();
        for kthread in 0..book.kthreads.len() {
            let (line, orders) = (book.lines.line(kthread), book.lines.orders(kthread));
            let grant = orders.granted();
            book.kthreads[kthread].grant = grant;
            if line.left() >= grant || orders.is_revoked(grant) {
                continue;
            }
            if let Some(core) = self.cores.find(orders.core() as usize)
                && holding.len() < most
            {
                let kthread = KthreadId(kthread as u16);
                holding.push(HeldCore { core, kthread });
            }
        }
        holding
    }

    /// Handles a kthread's claim to this core: it stays there, or leaves when another claimed it first.
    fn take_over(&mut self, app: AppId, held: HeldCore, now_ns: u64) {
        let tenant = Tenant {
            app,
            kthread: held.kthread,
        };
        let is_own = self.allocator.cores().tenant(held.core) == Some(tenant);
        let number = self.cores.number(held.core);
        let shared = self.cores.shared;
        let Some(Member {
            work: MemberWork::Kthreads(book),
            peer,
            name,
            ..
        }) = &mut self.members[app.index()]
        else {
            return;
        };
        let tid = book.thread(held.kthread, peer, shared);
        let core = if is_own { number } else { shared };
        if let Some(tid) = tid {
            peer.pin(tid, &mask([core]));
            book.kthreads[held.kthread.index()].pinned = Some(core);
        }
        if is_own {
            self.confined[held.core.index()].push(tenant);
            self.since_ns[held.core.index()] = now_ns;
            self.journal.note(now_ns, number, Some(name));
            return;
        }
        let orders = book.lines.orders(held.kthread.index());
        orders.revoke_to(orders.granted());
        if let Some(tid) = tid {
            peer.interrupt(tid);
        }
    }

    /// Retires the application of this registration: frees its cores, and returns its threads to the cores that they ran on before.
    pub fn retire(&mut self, id: u64, now: &impl Fn() -> u64) -> bool {
        let is_it =
            |member: &Option<Member<P>>| member.as_ref().is_some_and(|member| member.id == id);
        let Some(slot) = self.members.iter().position(is_it) else {
            return false;
        };
        let app = AppId(slot as u16);
        let now_ns = now();
        let active = *self.allocator.cores().active(app);
        for core in active.iter() {
            self.revoked_ns[core] = None;
            self.journal.note(now_ns, self.cores.dealt[core], None);
        }
        self.allocator.retire(now_ns, app);
        self.carry_out(now);
        if let Some(mut member) = self.members[slot].take() {
            member.go_home();
        }
        true
    }

    /// Retires every application, at the daemon's end.
    pub fn retire_all(&mut self, now: &impl Fn() -> u64) {
        let ids: Vec<u64> = self.members.iter().flatten().map(|one| one.id).collect();
        for id in ids {
            self.retire(id, now);
        }
    }

    /// The members as newcomers, with the cores that they have, for an engine with another allocator.
    pub fn into_newcomers(self) -> Vec<Newcomer<P>> {
        let members = self.members.into_iter().flatten();
        members
            .map(|member| Newcomer {
                id: member.id,
                name: member.name,
                shape: member.shape,
                work: match member.work {
                    MemberWork::Kthreads(book) => NewcomerWork::Kthreads {
                        lines: book.lines,
                        probes: book.probes,
                        resumed: true,
                    },
                    MemberWork::Program(_) => NewcomerWork::Program,
                },
                peer: member.peer,
                home: member.home,
            })
            .collect()
    }

    /// One pass.
    pub fn pass(&mut self, now: &impl Fn() -> u64) {
        let now_ns = now();
        self.hear(now_ns);
        self.evicted.demote_late(&mut self.members, now_ns);
        self.wake_for_timers_and_packets(now_ns);
        if !A::PARKS {
            self.use_up(now_ns);
        }
        if self
            .allocator
            .next_deadline_ns()
            .is_some_and(|deadline_ns| deadline_ns <= now_ns)
        {
            let view = MembersView {
                members: &self.members,
                timers_ns: self.timers.now_ns(),
            };
            self.allocator.look(now_ns, &view);
            self.times.look.record(now().saturating_sub(now_ns));
        }
        self.carry_out(now);
        self.look_after_programs(now_ns);
        self.unusable.look(&mut self.members, now_ns);
    }

    /// The time until the next pass unless a doorbell rings, at least `tick_ns`, ns.
    pub fn patience_ns(&self, tick_ns: u64, now_ns: u64) -> u64 {
        const IDLE_NS: u64 = 100_000_000;
        let cores = self.allocator.cores();
        let mut patience_ns = IDLE_NS;
        if self.revoked_ns.iter().any(Option::is_some) || !self.evicted.is_empty() {
            patience_ns = tick_ns;
        }
        for (index, member) in self.members.iter().enumerate() {
            let Some(member) = member else { continue };
            let app = AppId(index as u16);
            let needs_ns = match &member.work {
                MemberWork::Kthreads(book)
                    if cores.active(app).is_empty() && member.waiting() == 0 =>
                {
                    book.next_timer_ns(self.timers).unwrap_or(IDLE_NS)
                }
                MemberWork::Kthreads(_) => tick_ns,
                MemberWork::Program(_) if cores.idle().is_empty() => LOOK_NS,
                MemberWork::Program(_) => 10 * tick_ns,
            };
            patience_ns = patience_ns.min(needs_ns);
        }
        let deadline_ns = (!A::PARKS)
            .then(|| self.allocator.next_deadline_ns())
            .flatten();
        deadline_ns.map_or(patience_ns, |deadline_ns| {
            patience_ns.min(deadline_ns.saturating_sub(now_ns))
        })
    }

    /// Reads which kthreads have left their core, and which applications without a core want one.
    fn hear(&mut self, now_ns: u64) {
        for core in (0..self.cores.count()).map(|core| CoreId(core as u16)) {
            let Some(tenant) = self.allocator.cores().tenant(core) else {
                continue;
            };
            let Some(Member {
                work: MemberWork::Kthreads(book),
                peer,
                ..
            }) = &mut self.members[tenant.app.index()]
            else {
                continue;
            };
            if book.has_left(tenant.kthread) {
                self.released(core, now_ns);
            } else if book.kthreads[tenant.kthread.index()].pinned.is_none()
                && let Some(tid) = book.thread(tenant.kthread, peer, self.cores.shared)
            {
                // The kthread was granted a core before its thread ran.
                let number = self.cores.number(core);
                peer.pin(tid, &self.cores.only(number));
                book.kthreads[tenant.kthread.index()].pinned = Some(number);
            }
        }
        for index in 0..self.members.len() {
            let app = AppId(index as u16);
            if let Some(Member {
                work: MemberWork::Kthreads(book),
                counts,
                ..
            }) = &mut self.members[index]
            {
                let wants = book.lines.app().wants.load(Ordering::Acquire);
                if wants != book.wants && self.allocator.cores().held(app) == 0 {
                    book.wants = wants;
                    counts.wants += 1;
                    self.allocator.arrived(now_ns, app);
                }
            }
        }
    }

    fn use_up(&mut self, now_ns: u64) {
        let span_ns = now_ns.saturating_sub(self.used_ns);
        self.used_ns = now_ns;
        for member in self.members.iter_mut().flatten() {
            member.use_up(span_ns);
        }
    }

    fn carry_out(&mut self, now: &impl Fn() -> u64) {
        let mut now_ns = now();
        while let Some(decision) = self.allocator.poll() {
            let is_grant = match decision {
                Move::Grant { core, to } => {
                    self.grant(core, to, now_ns);
                    true
                }
                Move::Revoke { core, from } => {
                    self.revoke(core, from, now_ns);
                    false
                }
                Move::Evict { core, from } => {
                    self.evict(core, from, now_ns);
                    false
                }
            };
            let then_ns = now();
            let took_ns = then_ns.saturating_sub(now_ns);
            if is_grant {
                self.times.grant.record(took_ns);
            } else {
                self.times.revoke.record(took_ns);
            }
            now_ns = then_ns;
        }
    }

    fn grant(&mut self, core: CoreId, to: Tenant, now_ns: u64) {
        let number = self.cores.number(core);
        let Some(member) = &mut self.members[to.app.index()] else {
            return;
        };
        member.counts.grants += 1;
        self.since_ns[core.index()] = now_ns;
        self.journal.note(now_ns, number, Some(&member.name));
        let peer = &mut member.peer;
        match &mut member.work {
            MemberWork::Kthreads(book) => {
                // The kthread that wakes now sees all earlier work.
                book.wants = book.lines.app().wants.load(Ordering::Acquire);
                let tid = book.thread(to.kthread, peer, self.cores.shared);
                let kept = &mut book.kthreads[to.kthread.index()];
                kept.grant = Grant(kept.grant.0 + 1);
                if let Some(tid) = tid {
                    if std::mem::take(&mut kept.demoted) {
                        peer.demote(tid, false);
                    }
                    if kept.pinned != Some(number) {
                        peer.pin(tid, &mask([number]));
                        kept.pinned = Some(number);
                    }
                }
                let orders = book.lines.orders(to.kthread.index());
                orders.grant_as(number as u32, kept.grant);
                futex::wake(orders.wakes());
            }
            MemberWork::Program(book) => {
                book.cores.insert(core.index());
                book.moved = true;
                peer.pin_known(&cores_of(&self.cores, book));
            }
        }
        self.confine_others(core, to);
    }

    /// Moves kthreads that claim to sleep off the core of another application, whether they sleep or not.
    fn confine_others(&mut self, core: CoreId, to: Tenant) {
        let (number, shared) = (self.cores.number(core), self.cores.shared);
        let mut confined = std::mem::take(&mut self.confined[core.index()]);
        confined.retain(|tenant| {
            if tenant.app == to.app {
                return *tenant != to;
            }
            let Some(Member {
                work: MemberWork::Kthreads(book),
                peer,
                ..
            }) = &mut self.members[tenant.app.index()]
            else {
                return false;
            };
            let Some(kept) = book.kthreads.get_mut(tenant.kthread.index()) else {
                return false;
            };
            if kept.pinned == Some(number)
                && number != shared
                && let Some(tid) = kept.tid
            {
                peer.pin(tid, &mask([shared]));
                kept.pinned = Some(shared);
            }
            false
        });
        confined.push(to);
        self.confined[core.index()] = confined;
    }

    fn revoke(&mut self, core: CoreId, from: Tenant, now_ns: u64) {
        let Some(member) = &mut self.members[from.app.index()] else {
            return;
        };
        member.counts.revocations += 1;
        self.revoked_ns[core.index()] = Some(now_ns);
        let peer = &mut member.peer;
        let is_there = match &mut member.work {
            MemberWork::Kthreads(book) => {
                let orders = book.lines.orders(from.kthread.index());
                orders.revoke_to(book.kthreads[from.kthread.index()].grant);
                // Pairs with the fence of a thread that enters now: it stores its number before it reads its orders.
                fence(Ordering::SeqCst);
                let signals = !book.probes;
                if !A::PARKS {
                    futex::wake(book.lines.orders(from.kthread.index()).wakes());
                }
                match book.thread(from.kthread, peer, self.cores.shared) {
                    Some(tid) if signals => peer.interrupt(tid),
                    Some(_) => true,
                    None => false,
                }
            }
            MemberWork::Program(book) => {
                book.cores.remove(core.index());
                book.moved = true;
                peer.pin_known(&cores_of(&self.cores, book));
                false
            }
        };
        if !is_there {
            self.released(core, now_ns);
        }
    }

    fn evict(&mut self, core: CoreId, from: Tenant, now_ns: u64) {
        let shared = self.cores.shared;
        let Some(member) = &mut self.members[from.app.index()] else {
            return;
        };
        member.counts.evictions += 1;
        if let MemberWork::Kthreads(book) = &mut member.work
            && let Some(tid) = book.thread(from.kthread, &member.peer, shared)
        {
            member.peer.pin(tid, &mask([shared]));
            book.kthreads[from.kthread.index()].pinned = Some(shared);
            self.evicted.let_finish(from, &mut self.members, now_ns);
        }
        self.released(core, now_ns);
    }

    fn released(&mut self, core: CoreId, now_ns: u64) {
        let tenant = self.allocator.cores().tenant(core);
        if let Some(revoked_ns) = self.revoked_ns[core.index()].take() {
            let left_after_ns = now_ns.saturating_sub(revoked_ns);
            self.times.leave.record(left_after_ns);
        }
        if let Some(member) = tenant.and_then(|tenant| self.members[tenant.app.index()].as_mut()) {
            member.counts.core_ns += now_ns.saturating_sub(self.since_ns[core.index()]);
        }
        self.journal.note(now_ns, self.cores.number(core), None);
        self.allocator.released(now_ns, core);
    }

    /// Confines threads created during a move, and later ones.
    fn look_after_programs(&mut self, now_ns: u64) {
        for member in self.members.iter_mut().flatten() {
            let MemberWork::Program(book) = &mut member.work else {
                continue;
            };
            let after_ns = if book.moved {
                LOOK_AFTER_MOVE_NS
            } else {
                LOOK_NS
            };
            if now_ns < book.looked_ns + after_ns {
                continue;
            }
            book.looked_ns = now_ns;
            book.moved = false;
            book.threads = member.peer.pin_all(&cores_of(&self.cores, book));
        }
    }

    /// The allocator, for readers of its books.
    pub fn allocator(&self) -> &A {
        &self.allocator
    }
}

/// The cores for a program's threads: its own, or the shared one.
fn cores_of(cores: &HostCores, book: &ProgramBook) -> CpuSet {
    if book.cores.is_empty() {
        return cores.only(cores.shared);
    }
    mask(book.cores.iter().map(|core| cores.dealt[core]))
}
