//! The same with smoltcp, for comparison: a round trip with one socket in the set, with many, and with an interface for each connection.
//! `cargo bench -p headway-stack --bench smoltcp`.

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Loopback, Medium};
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpAddress, IpCidr};

const ROUNDS: usize = 5;

/// An interface that speaks with itself.
struct LoopedInterface {
    iface: Interface,
    device: Loopback,
    sockets: SocketSet<'static>,
    begun: std::time::Instant,
    pair: [SocketHandle; 2],
}

fn socket() -> Socket<'static> {
    let buffer = || SocketBuffer::new(vec![0; 4096]);
    let mut socket = Socket::new(buffer(), buffer());
    socket.set_nagle_enabled(false);
    socket.set_ack_delay(None);
    socket
}

impl LoopedInterface {
    /// A connection beside idle sockets.
    fn new(others: usize) -> Self {
        let mut device = Loopback::new(Medium::Ethernet);
        let address = HardwareAddress::Ethernet(EthernetAddress([2, 0, 0, 0, 0, 1]));
        let mut iface = Interface::new(Config::new(address), &mut device, Instant::ZERO);
        let own = IpAddress::v4(127, 0, 0, 1);
        iface.update_ip_addrs(|addresses| {
            let _ = addresses.push(IpCidr::new(own, 8));
        });
        let mut sockets = SocketSet::new(Vec::new());
        for port in 0..others {
            let mut idle = socket();
            idle.listen(2000 + port as u16).expect("a port");
            sockets.add(idle);
        }
        let pair = [0, 1].map(|_| sockets.add(socket()));
        sockets
            .get_mut::<Socket<'_>>(pair[0])
            .listen(80)
            .expect("a port");
        let client = sockets.get_mut::<Socket<'_>>(pair[1]);
        client
            .connect(iface.context(), (own, 80), 49_152)
            .expect("a port");
        let mut looped = Self {
            iface,
            device,
            sockets,
            begun: std::time::Instant::now(),
            pair,
        };
        while !pair
            .iter()
            .all(|handle| looped.sockets.get::<Socket<'_>>(*handle).may_send())
        {
            looped.poll();
        }
        looped
    }

    fn poll(&mut self) {
        let now = Instant::from_micros(self.begun.elapsed().as_micros() as i64);
        self.iface.poll(now, &mut self.device, &mut self.sockets);
    }

    fn trip(&mut self) {
        for (from, to) in [(1, 0), (0, 1)] {
            let sender = self.sockets.get_mut::<Socket<'_>>(self.pair[from]);
            sender.send_slice(&[7; 64]).expect("it is open");
            while !self.sockets.get::<Socket<'_>>(self.pair[to]).can_recv() {
                self.poll();
            }
            let receiver = self.sockets.get_mut::<Socket<'_>>(self.pair[to]);
            receiver.recv_slice(&mut [0; 64]).expect("it is open");
        }
    }
}

fn trips_ns(trips: usize, mut trip: impl FnMut(usize)) -> f64 {
    let begun = std::time::Instant::now();
    (0..trips).for_each(&mut trip);
    begun.elapsed().as_nanos() as f64 / trips as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut alone = LoopedInterface::new(0);
    let mut beside = LoopedInterface::new(10_000);
    let mut each: Vec<_> = (0..2_000).map(|_| LoopedInterface::new(0)).collect();
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        times[0].push(trips_ns(20_000, |_| alone.trip()));
        times[1].push(trips_ns(20, |_| beside.trip()));
        times[2].push(trips_ns(20_000, |number| each[number % 2_000].trip()));
    }
    let [alone, beside, each] = times.map(median);
    println!("a round trip of one connection: {alone:.0} ns");
    println!(
        "beside 10000 sockets: {beside:.0} ns, {:.1} of it",
        beside / alone
    );
    println!(
        "of 2000 connections in turn, each with an interface: {each:.0} ns, {:.2} of it",
        each / alone
    );
    println!(
        "an interface: {} bytes, a socket without buffers: {}",
        size_of::<Interface>(),
        size_of::<Socket<'_>>()
    );
}
