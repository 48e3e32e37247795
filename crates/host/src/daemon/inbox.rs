//! The order queue of the pass thread, which it reads between two passes.

use super::event::event;
use super::network::NewNetwork;
use crate::arbiter::{AdmissionError, HostReport, Newcomer};
use crate::peer::PeerProcess;
use headway_policy::spec::Spec;
use nix::sys::eventfd::EventFd;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};

/// An order, with the channel for its answer.
pub(super) enum DaemonOrder {
    Admit {
        newcomer: Box<Newcomer<PeerProcess>>,
        doorbell: OwnedFd,
        network: Option<NewNetwork>,
        claim: AdmissionClaim,
        answer: SyncSender<Result<(), AdmissionError>>,
    },
    Retire(u64),
    Report {
        since_ns: u64,
        most: usize,
        answer: SyncSender<HostReport>,
    },
    /// Replaces the allocator.
    Policy(Spec),
    /// Retires every application.
    Stop(SyncSender<()>),
}

/// What says whether a newcomer still waits: either it is taken in, or it has given up.
#[derive(Clone, Debug, Default)]
pub(super) struct AdmissionClaim(Arc<AtomicBool>);

impl AdmissionClaim {
    /// Takes it, to admit the newcomer or to give up; returns whether nobody had.
    pub(super) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

/// A sending end; there may be several.
#[derive(Clone)]
pub(super) struct DaemonOutbox {
    orders: Sender<DaemonOrder>,
    pending: Arc<AtomicUsize>,
    wakes: Arc<EventFd>,
}

/// The receiving end.
pub(super) struct DaemonInbox {
    orders: Receiver<DaemonOrder>,
    pending: Arc<AtomicUsize>,
    wakes: Arc<EventFd>,
}

pub(super) fn pair() -> io::Result<(DaemonOutbox, DaemonInbox)> {
    let (sender, receiver) = channel();
    let pending = Arc::new(AtomicUsize::new(0));
    let wakes = Arc::new(event()?);
    let outbox = DaemonOutbox {
        orders: sender,
        pending: Arc::clone(&pending),
        wakes: Arc::clone(&wakes),
    };
    let inbox = DaemonInbox {
        orders: receiver,
        pending,
        wakes,
    };
    Ok((outbox, inbox))
}

impl DaemonOutbox {
    /// Sends an order; returns whether the receiving end exists.
    pub(super) fn send(&self, order: DaemonOrder) -> bool {
        let sent = self.orders.send(order).is_ok();
        self.pending.fetch_add(1, Ordering::Release);
        // The counter is full only if the bell has rung already.
        let _ = self.wakes.write(1);
        sent
    }
}

impl DaemonInbox {
    /// The next order. An empty queue costs one load.
    #[inline]
    pub(super) fn next(&self) -> Option<DaemonOrder> {
        if self.pending.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.pending.fetch_sub(1, Ordering::AcqRel);
        let _ = self.wakes.read();
        self.orders.try_recv().ok()
    }

    pub(super) fn wakes(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }
}
