//! The descriptors that the pass thread sleeps on: doorbells of applications, with a limit on each application's rings, orders, devices and a timer.

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::collections::HashMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

/// The most rings of an application in a window: twice the rate of core moves on a busy host.
pub(super) const RINGS_MAX: u32 = 32;
/// The limit for an application with packets, which also rings for packets that it sends and for cores that it leaves: a round trip of 8 µs has two.
pub(super) const PACKET_RINGS_MAX: u32 = 256;
/// The length of a window, ns.
pub(super) const WINDOW_NS: u64 = 1_000_000;

/// What wakes the thread, in the events of `epoll`: neither is the number of an application.
const NO_APPLICATION: u64 = 0;
const TIMER: u64 = u64::MAX;

/// The rings of an application in this window. The daemon mutes one that exceeds its limit until the window ends; every look still reads
/// its queues.
#[derive(Clone, Copy, Debug, Default)]
struct RingWindow {
    begin_ns: u64,
    rings: u32,
}

impl RingWindow {
    /// Counts a ring; returns whether the application stays below its limit.
    fn rang(&mut self, now_ns: u64, most: u32) -> bool {
        if now_ns >= self.end_ns() {
            *self = Self {
                begin_ns: now_ns,
                rings: 0,
            };
        }
        self.rings += 1;
        self.rings < most
    }

    fn end_ns(&self) -> u64 {
        self.begin_ns + WINDOW_NS
    }
}

struct Doorbell {
    bell: OwnedFd,
    window: RingWindow,
    /// The most rings in a window.
    most: u32,
    muted: bool,
}

/// The descriptors that wake the pass thread from its sleep.
pub(super) struct Doors {
    /// All but the device.
    epoll: Epoll,
    /// The device, and the other set.
    with_device: Epoll,
    doorbells: HashMap<u64, Doorbell>,
    muted: usize,
    timer: TimerFd,
    /// When the timer fires, at the latest; `None` when it has fired.
    timer_ns: Option<u64>,
}

impl Doors {
    /// Watches the descriptor of the order queue, which has no application's number and no limit.
    pub(super) fn new(orders: BorrowedFd<'_>) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(orders, EpollEvent::new(EpollFlags::EPOLLIN, NO_APPLICATION))?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        epoll.add(&timer, heard(TIMER))?;
        let with_device = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        with_device.add(
            &epoll.0,
            EpollEvent::new(EpollFlags::EPOLLIN, NO_APPLICATION),
        )?;
        Ok(Self {
            epoll,
            with_device,
            doorbells: HashMap::new(),
            muted: 0,
            timer,
            timer_ns: None,
        })
    }

    /// Sleeps until something wakes the thread, at most for this long, ns. It may wake earlier. `by_device`: whether packets wake it.
    pub(super) fn wait(&mut self, now: &impl Fn() -> u64, patience_ns: u64, by_device: bool) {
        let now_ns = now();
        let until_ns = now_ns.saturating_add(patience_ns);
        let again_ns = self.listen_again(now_ns).unwrap_or(u64::MAX);
        let is_set = self.set_timer(now_ns, until_ns.min(again_ns)).is_ok();
        let mut timeout = if is_set {
            EpollTimeout::NONE
        } else {
            EpollTimeout::from(1_u8)
        };
        if by_device {
            let mut events = [EpollEvent::empty(); 1];
            let _ = self.with_device.wait(&mut events, timeout);
            timeout = EpollTimeout::ZERO;
        }
        self.hear(now, timeout);
    }

    /// Sets the timer, unless it fires before this time anyway. Setting one costs a virtual machine up to 20 µs, and so does clearing it: a timeout of each
    /// sleep would cost more than the sleep.
    fn set_timer(&mut self, now_ns: u64, until_ns: u64) -> nix::Result<()> {
        if self.timer_ns.is_some_and(|timer_ns| timer_ns <= until_ns) {
            return Ok(());
        }
        let patience = Duration::from_nanos(until_ns.saturating_sub(now_ns).max(1));
        let once = Expiration::OneShot(TimeSpec::from_duration(patience));
        self.timer.set(once, TimerSetTimeFlags::empty())?;
        self.timer_ns = Some(until_ns);
        Ok(())
    }

    /// Wakes the thread, if it waits for the device, while this descriptor of the device is readable.
    pub(super) fn watch(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        Ok(self.with_device.add(
            descriptor,
            EpollEvent::new(EpollFlags::EPOLLIN, NO_APPLICATION),
        )?)
    }

    /// Adds an application's doorbell with a limit of `most` rings in a window.
    pub(super) fn add(&mut self, id: u64, bell: OwnedFd, most: u32) {
        // An application whose doorbell fails here is seen at the next look.
        let _ = self.epoll.add(&bell, heard(id));
        let window = RingWindow::default();
        let muted = false;
        self.doorbells.insert(
            id,
            Doorbell {
                bell,
                window,
                most,
                muted,
            },
        );
    }

    pub(super) fn remove(&mut self, id: u64) {
        if let Some(doorbell) = self.doorbells.remove(&id) {
            self.muted -= usize::from(doorbell.muted);
            let _ = self.epoll.delete(&doorbell.bell);
        }
    }

    /// Waits for events, and mutes applications over their limit.
    fn hear(&mut self, now: &impl Fn() -> u64, timeout: EpollTimeout) {
        // Doorbells are edge-triggered: the thread never reads one, so none can block it.
        let mut events = [EpollEvent::empty(); 16];
        let count = self.epoll.wait(&mut events, timeout).unwrap_or(0);
        for event in &events[..count] {
            if event.data() == TIMER {
                self.timer_ns = None;
            }
            let Some(doorbell) = self.doorbells.get_mut(&event.data()) else {
                continue;
            };
            if !doorbell.window.rang(now(), doorbell.most) {
                let mut none = EpollEvent::new(EpollFlags::empty(), event.data());
                doorbell.muted = self.epoll.modify(&doorbell.bell, &mut none).is_ok();
                self.muted += usize::from(doorbell.muted);
            }
        }
    }

    /// Unmutes applications whose window is over. Returns when the next window ends.
    fn listen_again(&mut self, now_ns: u64) -> Option<u64> {
        if self.muted == 0 {
            return None;
        }
        let mut next_ns = None;
        for (&id, doorbell) in &mut self.doorbells {
            let end_ns = doorbell.window.end_ns();
            if !doorbell.muted {
                continue;
            }
            if now_ns >= end_ns {
                // A ring during the mute becomes an edge now.
                let _ = self.epoll.modify(&doorbell.bell, &mut heard(id));
                doorbell.muted = false;
                self.muted -= 1;
            } else {
                next_ns = Some(next_ns.map_or(end_ns, |next_ns: u64| next_ns.min(end_ns)));
            }
        }
        next_ns
    }
}

fn heard(id: u64) -> EpollEvent {
    EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::eventfd::{EfdFlags, EventFd};
    use std::os::fd::AsFd;

    fn is_woken(doors: &Doors) -> bool {
        let descriptor = AsFd::as_fd(&doors.epoll.0);
        let mut fds = [nix::poll::PollFd::new(
            descriptor,
            nix::poll::PollFlags::POLLIN,
        )];
        nix::poll::poll(&mut fds, nix::poll::PollTimeout::ZERO).unwrap() > 0
    }

    #[test]
    fn who_rings_without_end_is_heard_again_in_the_next_window_and_others_always() {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let bell = || EventFd::from_value_and_flags(0, flags).unwrap();
        let (orders, endless, calm) = (bell(), bell(), bell());
        let mut doors = Doors::new(orders.as_fd()).unwrap();
        doors.add(2, endless.as_fd().try_clone_to_owned().unwrap(), RINGS_MAX);
        doors.add(4, calm.as_fd().try_clone_to_owned().unwrap(), RINGS_MAX);
        let mut heard = 0;
        for round in 0..10 * RINGS_MAX {
            endless.write(1).unwrap();
            heard += u32::from(is_woken(&doors));
            doors.hear(&|| 5 * WINDOW_NS + u64::from(round), EpollTimeout::ZERO);
        }
        assert_eq!(heard, RINGS_MAX);
        calm.write(1).unwrap();
        assert!(is_woken(&doors), "another one is heard");
        doors.hear(&|| 5 * WINDOW_NS + 400, EpollTimeout::ZERO);
        let end_ns = doors
            .listen_again(5 * WINDOW_NS + 500)
            .expect("one is muted");
        assert!(!is_woken(&doors), "the window is not over");
        assert_eq!(end_ns, 6 * WINDOW_NS);
        assert_eq!(doors.listen_again(end_ns), None);
        assert!(is_woken(&doors), "it rang meanwhile");
        doors.hear(&|| end_ns, EpollTimeout::ZERO);
        assert!(!is_woken(&doors));
        endless.write(1).unwrap();
        doors.remove(2);
        assert!(!is_woken(&doors), "it is gone");
    }

    #[test]
    fn the_timer_is_set_for_an_earlier_time_only_and_again_after_it_fired() {
        let orders = EventFd::from_flags(EfdFlags::EFD_NONBLOCK).unwrap();
        let mut doors = Doors::new(orders.as_fd()).unwrap();
        for (until_ns, timer_ns) in [(1 << 40, 1 << 40), (1 << 41, 1 << 40), (9, 9), (50, 9)] {
            doors.set_timer(7, until_ns).unwrap();
            assert_eq!(doors.timer_ns, Some(timer_ns));
        }
        doors.hear(&|| 9, EpollTimeout::NONE);
        assert_eq!(doors.timer_ns, None, "it fired");
        doors.set_timer(9, 50).unwrap();
        assert_eq!(doors.timer_ns, Some(50));
    }

    #[test]
    fn a_packet_wakes_only_who_waits_for_the_device() {
        let bell = || EventFd::from_flags(EfdFlags::EFD_NONBLOCK).unwrap();
        let (orders, device) = (bell(), bell());
        let mut doors = Doors::new(orders.as_fd()).unwrap();
        doors.watch(device.as_fd()).unwrap();
        device.write(1).unwrap();
        let hour_ns = 3600 * 1_000_000_000;
        doors.wait(&|| 5, hour_ns, true);
        assert_eq!(doors.timer_ns, Some(5 + hour_ns), "the packet woke it");
        doors.wait(&|| 5, 1_000_000, false);
        assert_eq!(doors.timer_ns, None, "the timer woke it");
        orders.write(1).unwrap();
        for by_device in [true, false] {
            doors.wait(&|| 5, hour_ns, by_device);
            assert_eq!(doors.timer_ns, Some(5 + hour_ns), "an order woke it");
        }
    }
}
