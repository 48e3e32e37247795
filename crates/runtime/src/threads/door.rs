//! The door of a receive queue: a thread that sees what waits there while no worker looks, and tells the arbiter that grants the workers' cores.
//!
//! It sees two things: a request that comes when no worker has a core, and one that comes while all workers run long ones.

use std::time::Duration;

use headway_machine::Clock;
use headway_machine::thread::stay_responsive;

use crate::queue::rx_waker::RxWaker;
use crate::threads::hosted::HostedCores;
use headway_sync::world::step;

/// How long a request may wait at a receive queue that no worker polls until the door tells of it, ns.
const UNPOLLED_NS: u64 = 100_000;

/// The longest that a door sleeps, ns; all that matters wakes it earlier.
const SLEEP_NS: u64 = 1_000_000_000;

/// The door of one receive queue.
pub(crate) struct Door<'a> {
    cores: &'a HostedCores,
    queue: usize,
    rx_waker: &'a RxWaker,
    /// Whether to look at the queue while workers have cores: where requests run to their ends, or are
    /// interrupted in their long parts only, no worker may poll it for long.
    looks: bool,
    clock: Clock,
    /// Since when the door has seen workers with cores, ns; `None` while none has one.
    attended_since_ns: Option<u64>,
}

/// What a door waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DoorWait {
    /// The last worker with a core to go, for so long at most, ns.
    LastGoes(u64),
    /// A worker to get a core, for so long at most, ns: the arbiter knows of a request.
    WorkerComes(u64),
    /// A request, for so long at most, ns: no worker has a core.
    RequestComes(u64),
}

impl<'a> Door<'a> {
    pub(crate) fn new(
        cores: &'a HostedCores,
        queue: usize,
        rx_waker: &'a RxWaker,
        looks: bool,
        clock: Clock,
    ) -> Self {
        Self {
            cores,
            queue,
            rx_waker,
            looks,
            clock,
            attended_since_ns: None,
        }
    }

    /// Watches the queue until the server stops.
    pub(crate) fn watch(mut self) {
        // It mostly sleeps, beside batch threads that compute. A kernel with lazy preemption would let it wait for their next tick, 4 ms at 250 Hz, and
        // with it every request that finds no worker here.
        let _ = stay_responsive();
        while let Some(wait) = self.step() {
            self.wait(wait);
        }
    }

    /// Looks once, and tells the arbiter of what waits. Blocks nowhere. Returns what to wait for until the next look; `None` once the server stops.
    fn step(&mut self) -> Option<DoorWait> {
        if self.cores.is_closed() {
            return None;
        }
        if self.cores.has_active() {
            return Some(DoorWait::LastGoes(self.attend()));
        }
        self.attended_since_ns = None;
        step();
        if self.rx_waker.rx().backlog_hint() == 0 {
            return Some(DoorWait::RequestComes(SLEEP_NS));
        }
        self.cores.ask_for_core();
        Some(DoorWait::WorkerComes(UNPOLLED_NS))
    }

    /// A look while workers have cores. Returns when the next one is due, in ns.
    fn attend(&mut self) -> u64 {
        if !self.looks {
            return SLEEP_NS;
        }
        let now_ns = self.clock.now_ns();
        let since_ns = *self.attended_since_ns.get_or_insert(now_ns);
        let seen_ns = self.cores.polled_ns(self.queue).max(since_ns);
        let is_unpolled = now_ns.saturating_sub(seen_ns) >= UNPOLLED_NS;
        if is_unpolled && self.rx_waker.rx().backlog_hint() > 0 {
            self.cores.tell_of_unpolled(self.queue);
        }
        UNPOLLED_NS
    }

    fn wait(&self, wait: DoorWait) {
        let (cores, most_ns) = (self.cores, wait.most_ns());
        let most = Duration::from_nanos(most_ns);
        match wait {
            DoorWait::LastGoes(_) => {
                cores.sleep_at_door(most, || cores.has_active() && !cores.is_closed());
            }
            DoorWait::WorkerComes(_) => {
                cores.sleep_at_door(most, || !cores.has_active() && !cores.is_closed());
            }
            DoorWait::RequestComes(_) => {
                let is_over = || cores.has_active() || cores.is_closed();
                self.rx_waker.sleep_unless(most_ns, is_over);
            }
        }
    }
}

impl DoorWait {
    fn most_ns(self) -> u64 {
        match self {
            Self::LastGoes(ns) | Self::WorkerComes(ns) | Self::RequestComes(ns) => ns,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::Cell;
    use std::net::UdpSocket;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use headway_kthread::{CoreSource, Grant, KthreadLine, OrderLine, Standalone};
    use headway_net::datapath::{Datapath, Rx};
    use headway_net::udp::UdpDatapath;

    use super::*;
    use crate::threads::hosted::{ServerCores, WorkerCore};

    thread_local! {
        static NOW_NS: Cell<u64> = const { Cell::new(1_000) };
    }

    fn clock() -> Clock {
        Clock::given(|| NOW_NS.get())
    }

    fn pass(ns: u64) {
        NOW_NS.set(NOW_NS.get() + ns);
    }

    /// Kthreads that have cores whenever they want, and what an arbiter would hear of the server.
    struct Heard {
        source: Standalone,
        notices: AtomicU64,
        put: AtomicU64,
        took: AtomicU64,
    }

    impl CoreSource for Heard {
        fn kthreads(&self) -> usize {
            self.source.kthreads()
        }

        fn line(&self, kthread: usize) -> &KthreadLine {
            self.source.line(kthread)
        }

        fn orders(&self, kthread: usize) -> &OrderLine {
            self.source.orders(kthread)
        }

        fn enter(&self, kthread: usize) -> Grant {
            self.source.enter(kthread)
        }

        fn leave(&self, kthread: usize, grant: Grant, look: &mut dyn FnMut() -> bool) -> Grant {
            self.source.leave(kthread, grant, look)
        }

        fn notify(&self) {
            self.notices.fetch_add(1, Ordering::Relaxed);
        }

        fn put(&self, entries: u64) {
            self.put.fetch_add(entries, Ordering::Relaxed);
        }

        fn took(&self, entries: u64) {
            self.took.fetch_add(entries, Ordering::Relaxed);
        }

        fn is_daemons_core(&self, _kthread: usize) -> bool {
            false
        }

        fn exit(&self) {}

        fn close(&self) {}
    }

    /// A server of one worker, its receive queue, and a client.
    struct Doorway {
        heard: Arc<Heard>,
        cores: Arc<HostedCores>,
        rx_waker: RxWaker,
        client: UdpSocket,
    }

    impl Doorway {
        fn new() -> Self {
            let heard = Arc::new(Heard {
                source: Standalone::new(1),
                notices: AtomicU64::new(0),
                put: AtomicU64::new(0),
                took: AtomicU64::new(0),
            });
            let source = ServerCores(Arc::clone(&heard) as Arc<dyn CoreSource>);
            let socket = UdpDatapath::bind("127.0.0.1:0".parse().unwrap()).expect("a socket");
            let client = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            client.connect(socket.local_addr()).expect("an address");
            let mut ends = Box::new(socket).split(1, 1).expect("one queue");
            let rx: Arc<dyn Rx> = ends.rxs.remove(0);
            Self {
                heard,
                cores: Arc::new(HostedCores::new(&source, 1, 1, clock())),
                rx_waker: RxWaker::new(rx),
                client,
            }
        }

        fn door(&self, looks: bool) -> Door<'_> {
            Door::new(&self.cores, 0, &self.rx_waker, looks, clock())
        }

        fn notices(&self) -> u64 {
            self.heard.notices.load(Ordering::Relaxed)
        }

        fn put(&self) -> u64 {
            self.heard.put.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_door_asks_for_a_core_again_and_again_while_no_worker_has_one() {
        let doorway = Doorway::new();
        let mut door = doorway.door(true);
        assert_eq!(door.step(), Some(DoorWait::RequestComes(SLEEP_NS)));
        assert_eq!(doorway.notices(), 0, "nothing waits");
        doorway.client.send(b"request").expect("it is sent");
        for asked in 1..=2 {
            assert_eq!(door.step(), Some(DoorWait::WorkerComes(UNPOLLED_NS)));
            assert_eq!(doorway.notices(), asked);
        }
        let core = WorkerCore::enter(&doorway.cores, 0);
        assert_eq!(door.step(), Some(DoorWait::LastGoes(UNPOLLED_NS)));
        assert_eq!(doorway.notices(), 2, "a worker looks at the queue now");
        drop(core);
        assert_eq!(door.step(), Some(DoorWait::WorkerComes(UNPOLLED_NS)));
        doorway.cores.close();
        assert_eq!(door.step(), None);
    }

    #[test]
    fn a_door_tells_once_of_a_queue_that_no_worker_polls() {
        let doorway = Doorway::new();
        let _core = WorkerCore::enter(&doorway.cores, 0);
        doorway.client.send(b"request").expect("it is sent");
        let mut door = doorway.door(true);
        assert!(door.step().is_some());
        pass(UNPOLLED_NS - 1);
        assert!(door.step().is_some());
        assert_eq!(doorway.put(), 0, "a worker may poll yet");
        pass(1);
        assert!(door.step().is_some());
        assert_eq!((doorway.put(), doorway.notices()), (1, 1));
        pass(UNPOLLED_NS);
        assert!(door.step().is_some());
        assert_eq!((doorway.put(), doorway.notices()), (1, 2), "told already");
        doorway.cores.polled(0, NOW_NS.get());
        assert_eq!(doorway.heard.took.load(Ordering::Relaxed), 1);
        pass(UNPOLLED_NS - 1);
        assert!(door.step().is_some());
        assert_eq!(doorway.put(), 1, "a worker has just polled");
    }

    #[test]
    fn a_door_leaves_a_queue_to_workers_that_poll_while_they_work() {
        let doorway = Doorway::new();
        let _core = WorkerCore::enter(&doorway.cores, 0);
        doorway.client.send(b"request").expect("it is sent");
        let mut door = doorway.door(false);
        for _ in 0..3 {
            assert_eq!(door.step(), Some(DoorWait::LastGoes(SLEEP_NS)));
            pass(10 * UNPOLLED_NS);
        }
        assert_eq!((doorway.put(), doorway.notices()), (0, 0));
    }
}
