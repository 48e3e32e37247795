//! Kthreads that were moved to the shared core in the middle of something. They finish it there, and get only idle time if they go on.

use super::member::{Member, MemberWork};
use crate::peer::HostPeer;
use headway_kthread::Grant;
use headway_policy::host::Tenant;

/// The kthreads that were moved away, until they leave or are late.
#[derive(Debug, Default)]
pub(super) struct EvictedKthreads(Vec<Evicted>);

#[derive(Clone, Copy, Debug)]
struct Evicted {
    who: Tenant,
    /// The registration of its application.
    id: u64,
    /// The grant that it does not leave.
    grant: Grant,
    /// Until when it keeps its weight, ns.
    until_ns: u64,
}

impl EvictedKthreads {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Gives a kthread that was just moved away the time to finish what it does.
    pub(super) fn let_finish<P: HostPeer>(
        &mut self,
        who: Tenant,
        members: &mut [Option<Member<P>>],
        now_ns: u64,
    ) {
        if let Some(Member {
            id,
            shape,
            work: MemberWork::Kthreads(book),
            ..
        }) = &members[who.app.index()]
        {
            self.0.push(Evicted {
                who,
                id: *id,
                grant: book.kthreads[who.kthread.index()].grant,
                until_ns: now_ns + shape.kind.finishes_ns(),
            });
        }
        self.demote_late(members, now_ns);
    }

    /// Gives those whose time is over only the idle time of their core.
    pub(super) fn demote_late<P: HostPeer>(
        &mut self,
        members: &mut [Option<Member<P>>],
        now_ns: u64,
    ) {
        self.0.retain(|one| {
            let Some(Member {
                id,
                work: MemberWork::Kthreads(book),
                peer,
                ..
            }) = &mut members[one.who.app.index()]
            else {
                return false;
            };
            let kept = &mut book.kthreads[one.who.kthread.index()];
            let line = book.lines.line(one.who.kthread.index());
            if *id != one.id || kept.grant != one.grant || line.left() >= one.grant {
                return false;
            }
            if now_ns < one.until_ns {
                return true;
            }
            if let Some(tid) = kept.tid {
                peer.demote(tid, true);
                kept.demoted = true;
            }
            false
        });
    }
}
