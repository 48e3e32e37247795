//! Cores that an application is granted and may not use: its cpuset had them when it registered, and has them no more.

use super::member::{Member, MemberWork};
use crate::peer::HostPeer;

/// The interval between two looks, ns. A look asks the kernel once for each kthread.
const LOOK_NS: u64 = 1_000_000_000;

/// A core that an application was granted and may not use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnusableCore {
    /// The application's name.
    pub app: String,
    /// The core, by the kernel's number.
    pub core: usize,
}

/// The looks for such cores, and the ones that nobody was told of.
#[derive(Debug, Default)]
pub(super) struct UnusableCores {
    looked_ns: u64,
    untold: Vec<UnusableCore>,
}

impl UnusableCores {
    /// Compares the cores to which kthreads are confined with those on which the kernel lets them run.
    pub(super) fn look<P: HostPeer>(&mut self, members: &mut [Option<Member<P>>], now_ns: u64) {
        if now_ns < self.looked_ns + LOOK_NS {
            return;
        }
        self.looked_ns = now_ns;
        for member in members.iter_mut().flatten() {
            let MemberWork::Kthreads(book) = &mut member.work else {
                continue;
            };
            for kthread in &book.kthreads {
                let (Some(tid), Some(core)) = (kthread.tid, kthread.pinned) else {
                    continue;
                };
                let cores = &mut book.unusable;
                if member.peer.may_run_on(tid, core) {
                    cores.retain(|&other| other != core);
                } else if !cores.contains(&core) {
                    cores.push(core);
                    // One sentence an application: it may shrink and widen its cpuset all day.
                    if !std::mem::replace(&mut book.had_unusable, true) {
                        let app = member.name.clone();
                        self.untold.push(UnusableCore { app, core });
                    }
                }
            }
        }
    }

    /// Those that were found since the last call, one of each application.
    pub(super) fn take(&mut self) -> Vec<UnusableCore> {
        std::mem::take(&mut self.untold)
    }
}
