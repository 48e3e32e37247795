//! The interface between data plane and arbiter, and timers of kthreads without a core.

use super::engine::Arbiter;
use super::member::{KthreadsBook, Member, MemberWork};
use crate::futex;
use crate::peer::HostPeer;
use headway_machine::Clock;
use headway_policy::host::{Allocator, AppId, BusyPolling, Counters, KthreadId};
use std::sync::atomic::Ordering;

impl<A: Allocator, P: HostPeer> Arbiter<A, P> {
    /// Kthreads of an application that have a core, a bit each, of the first 64.
    pub fn kthreads_with_cores(&self, app: AppId) -> u64 {
        let kthreads = self.allocator.cores().active_kthreads(app);
        let bits = kthreads.filter(|kthread| kthread.index() < 64);
        bits.fold(0, |bits, kthread| bits | 1 << kthread.index())
    }

    /// Tells applications that the pass thread runs on this core, by the kernel's number. Returns whether no application has it.
    pub fn runs_on(&mut self, core: usize) -> bool {
        let daemons_core = core as u32 + 1;
        if daemons_core != self.daemons_core {
            self.daemons_core = daemons_core;
            for member in self.members.iter().flatten() {
                if let MemberWork::Kthreads(book) = &member.work {
                    let told = &book.lines.arbiter().daemons_core;
                    told.store(daemons_core, Ordering::Relaxed);
                }
            }
        }
        let core = self.cores.find(core);
        core.is_some_and(|core| self.allocator.cores().tenant(core).is_none())
    }

    /// Records the data plane's counts of packets delivered to a kthread and taken by it. The arbiter uses them in place of the kthread's line.
    pub fn show_packets(&mut self, app: AppId, kthread: KthreadId, packets: Counters) {
        let Some(book) = self.kthreads_of(app) else {
            return;
        };
        let Some(kept) = book.kthreads.get_mut(kthread.index()) else {
            return;
        };
        let has_come = kept
            .packets
            .replace(packets)
            .is_none_or(|before| before.tail != packets.tail);
        // Kthreads that keep their cores sleep on them, so the packets' arrival has to wake them.
        if !A::PARKS && has_come {
            futex::wake(book.lines.orders(kthread.index()).wakes());
        }
    }

    /// Whether a packet for this application must wake the pass thread.
    pub fn is_woken_for(&self, app: AppId) -> bool {
        BusyPolling::is_woken_for(self.allocator.cores().held(app), A::PARKS)
    }

    /// Requests a core for each application that has none and whose timer is due or whose packets wait.
    pub(super) fn wake_for_timers_and_packets(&mut self, now_ns: u64) {
        for index in 0..self.members.len() {
            let app = AppId(index as u16);
            if self.allocator.cores().held(app) > 0 {
                continue;
            }
            let timers = self.timers;
            let has_work = self
                .kthreads_of(app)
                .is_some_and(|book| book.next_timer_ns(timers) == Some(0) || book.has_packets());
            if has_work {
                self.allocator.arrived(now_ns, app);
            }
        }
    }

    /// The name of an application.
    pub fn name(&self, app: AppId) -> Option<String> {
        let member = self.members.get(app.index())?.as_ref()?;
        Some(member.name.clone())
    }

    fn kthreads_of(&mut self, app: AppId) -> Option<&mut KthreadsBook> {
        match self.members.get_mut(app.index())? {
            Some(Member {
                work: MemberWork::Kthreads(book),
                ..
            }) => Some(book),
            _ => None,
        }
    }
}

impl KthreadsBook {
    /// Whether the data plane delivered packets that no kthread took yet.
    fn has_packets(&self) -> bool {
        let mut packets = self.kthreads.iter().filter_map(|kept| kept.packets);
        packets.any(|packets| packets.head != packets.tail)
    }

    /// The time until its kthreads' first timer is due by this clock, ns, if any is set.
    pub(super) fn next_timer_ns(&self, timers: Clock) -> Option<u64> {
        let kthreads = 0..self.kthreads.len();
        let set = kthreads.filter_map(|kthread| self.lines.line(kthread).wake_at_ns());
        Some(set.min()?.saturating_sub(timers.now_ns()))
    }
}
