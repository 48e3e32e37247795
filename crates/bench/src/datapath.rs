//! Measures the cost of a request's path through the kernel's UDP sockets on this machine.
//!
//! [`calibrate`](crate::calibrate) measures scheduling with a replayed schedule, without a network. Behind a socket the
//! dispatcher also receives each request, and the worker also sends each reply. This module measures both on a loopback
//! socket by the datapath's own calls, in batches as a busy dispatcher finds them.

use headway_machine::Clock;
use headway_net::datapath::{Datapath, DatapathEnds};
use headway_net::header::{Flag, Header};
use headway_net::pool::{SlotId, SlotPool};
use headway_net::udp::UdpDatapath;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

/// Requests received together.
const BATCH: usize = 16;
/// Number of batches; the result is their median.
const BATCHES: usize = 501;
/// Timeout after which a batch counts as lost.
const PATIENCE_NS: u64 = 100_000_000;

/// Medians per request, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatapathCosts {
    /// The dispatcher's time to receive the request; the worker's time where there is no dispatcher.
    pub receive_ns: u64,
    /// The worker's time to send the reply.
    pub send_ns: u64,
}

/// Measures both, in some tens of milliseconds.
///
/// # Errors
/// When the system refuses the sockets or the slots, or loses the requests.
pub fn udp() -> io::Result<DatapathCosts> {
    let datapath =
        UdpDatapath::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).map_err(io::Error::other)?;
    let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    client.connect(datapath.local_addr())?;
    client.set_nonblocking(true)?;
    let DatapathEnds { rxs, mut txs } = Box::new(datapath).split(1, 1)?;
    let (pool, mut free) = SlotPool::new(2 * BATCH).map_err(io::Error::other)?;
    let (rx, tx) = (&rxs[0], &mut txs[0]);
    let clock = Clock::global();
    let mut scratch = rx.scratch();
    let mut slots: Vec<SlotId> = Vec::with_capacity(BATCH);
    let (mut receive_ns, mut send_ns) = (Vec::new(), Vec::new());
    for batch in 0..BATCHES {
        ask(&client, batch)?;
        let deadline_ns = clock.now_ns() + PATIENCE_NS;
        let mut spent_ns = 0;
        while slots.len() < BATCH {
            let from_ns = clock.now_ns();
            let wanted = BATCH - slots.len();
            let received = rx.poll(from_ns, &mut scratch, &pool, &mut free, &mut slots, wanted);
            let to_ns = clock.now_ns();
            // An empty poll is the dispatcher's idle time.
            if received > 0 {
                spent_ns += to_ns - from_ns;
            } else if to_ns > deadline_ns {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "requests on a loopback socket were lost",
                ));
            }
        }
        receive_ns.push(spent_ns / BATCH as u64);
        let from_ns = clock.now_ns();
        for slot in &mut slots {
            tx.send(&pool, slot, from_ns)?;
        }
        send_ns.push((clock.now_ns() - from_ns) / BATCH as u64);
        slots.drain(..).for_each(|slot| free.give(slot));
        forget_replies(&client);
    }
    Ok(DatapathCosts {
        receive_ns: median(receive_ns),
        send_ns: median(send_ns),
    })
}

/// Sends a batch of requests.
fn ask(client: &UdpSocket, batch: usize) -> io::Result<()> {
    let header = Header {
        class: 0,
        flag: Flag::REQUEST,
        index: batch as u32,
        time_ns: 0,
    };
    let request = header.encode();
    for _ in 0..BATCH {
        client.send(&request)?;
    }
    Ok(())
}

fn forget_replies(client: &UdpSocket) {
    let mut reply = [0; 64];
    while client.recv(&mut reply).is_ok() {}
}

fn median(mut times_ns: Vec<u64>) -> u64 {
    times_ns.sort_unstable();
    times_ns[times_ns.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_through_the_kernel_is_not_free() {
        let udp = udp().unwrap();
        assert!(udp.receive_ns > 50 && udp.send_ns > 50, "{udp:?}");
    }
}
