//! Kernel UDP, the datapath that runs everywhere.
//!
//! One socket for a central dispatcher, or one per worker on the same port (`SO_REUSEPORT`), to which the kernel [steers](Steering)
//! datagrams. They are received in batches straight into slots and answered from the same buffers.

pub mod batch;
mod bind;
mod hub;
mod options;
mod rx;
mod steering;
mod tx;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

pub use bind::BindError;
pub use hub::UdpHub;
pub use rx::UdpRx;
pub use steering::{HeaderByte, Steering, SteeringError};
pub use tx::UdpTx;

use crate::datapath::{Datapath, DatapathEnds, Rx, Tx};
use headway_machine::thread::fork::ParentsOnly;

/// A bound UDP port, to be [split](Datapath::split) over threads.
#[derive(Debug)]
pub struct UdpDatapath {
    socket: ParentsOnly<UdpSocket>,
    addr: SocketAddr,
    steering: Steering,
}

impl UdpDatapath {
    /// Binds `addr`; port 0 lets the system choose one. `[::]` also takes IPv4. On `0.0.0.0` and `[::]` a response comes from the address
    /// that its request was sent to.
    ///
    /// # Errors
    ///
    /// [`BindError`], which names the remedy.
    pub fn bind(addr: SocketAddr) -> Result<UdpDatapath, BindError> {
        let socket = bind::exclusive(addr)?;
        let addr = bind::local_addr(&socket, addr)?;
        Ok(UdpDatapath {
            socket: ParentsOnly::new(socket),
            addr,
            steering: Steering::default(),
        })
    }

    /// Chooses how the kernel steers requests to several queues.
    #[must_use]
    pub fn with_steering(self, steering: Steering) -> UdpDatapath {
        UdpDatapath { steering, ..self }
    }

    /// The address bound, with the port the system chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// One socket per queue. The port was bound exclusively, so a second server is refused instead of silently
    /// sharing the requests. Only now further sockets of this user may bind it.
    fn sockets(self, queues: usize) -> io::Result<Vec<Arc<ParentsOnly<UdpSocket>>>> {
        let mut sockets = vec![self.socket];
        if queues > 1 {
            options::share_port(&*sockets[0])?;
            for _ in 1..queues {
                let socket = bind::shared(self.addr).map_err(io::Error::other)?;
                sockets.push(ParentsOnly::new(socket));
            }
            if let Some(mut program) = self.steering.program(queues as u32) {
                options::steer(&*sockets[0], &mut program)
                    .map_err(|error| refused(self.steering, &error))?;
            }
        }
        Ok(sockets.into_iter().map(Arc::new).collect())
    }
}

/// The kernel refused the steering program.
fn refused(steering: Steering, error: &io::Error) -> io::Error {
    let what = format!(
        "the kernel refused the program that steers requests by {steering} (SO_ATTACH_REUSEPORT_CBPF: {error}): steer by flow, which needs \
         none, or allow the program (`headway doctor`, under 'steering to sockets')"
    );
    io::Error::new(error.kind(), what)
}

impl Datapath for UdpDatapath {
    fn split(self: Box<Self>, rx_queues: usize, tx: usize) -> io::Result<DatapathEnds> {
        if rx_queues == 0 {
            let what = "a UDP datapath needs at least one receive queue";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let addr = self.addr;
        let sockets = self.sockets(rx_queues)?;
        let txs = (0..tx)
            .map(|i| {
                let tx = UdpTx::new(Arc::clone(&sockets[i % rx_queues]), addr);
                Box::new(tx) as Box<dyn Tx>
            })
            .collect();
        let rxs = sockets
            .into_iter()
            .map(|socket| {
                let rx = UdpRx::new(socket, addr)?;
                Ok(Arc::new(rx) as Arc<dyn Rx>)
            })
            .collect::<io::Result<_>>()
            .map_err(|error| bind::of_files(addr, error))?;
        Ok(DatapathEnds { rxs, txs })
    }
}

#[cfg(test)]
mod tests;
