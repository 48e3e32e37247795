//! Where a server's requests come from.

use std::net::SocketAddr;

use headway_net::datapath::Datapath;
use headway_net::udp::{BindError, Steering, UdpDatapath};

/// Stands for the place where requests come from, which a [`Builder`](super::Builder) has not been told yet: [`listen_udp`](super::Builder::listen_udp) and
/// [`datapath`](super::Builder::datapath) do.
#[derive(Clone, Copy, Debug)]
pub struct NoSource;

/// Something that becomes a datapath when the server starts.
#[diagnostic::on_unimplemented(
    message = "the server is not told where its requests come from",
    label = "no requests come from `{Self}`",
    note = "call `.listen_udp(address)` or `.datapath(…)` on the builder before `.start()`"
)]
pub trait Source {
    /// Opens the datapath.
    ///
    /// # Errors
    /// [`BindError`] when it cannot listen.
    fn open(self: Box<Self>) -> Result<OpenDatapath, BindError>;

    /// How requests are steered to the workers' receive queues, if that was chosen: only workers with queues of their own heed it.
    fn steering(&self) -> Option<Steering>;
}

/// A datapath that can be divided among a server's threads.
pub struct OpenDatapath {
    pub(super) datapath: Box<dyn Datapath>,
    /// The address it listens on, if it does.
    pub(super) addr: Option<SocketAddr>,
}

/// A UDP address to listen on.
#[derive(Clone, Copy, Debug)]
pub struct Udp {
    pub(super) addr: SocketAddr,
    pub(super) steering: Option<Steering>,
}

impl Source for Udp {
    fn open(self: Box<Self>) -> Result<OpenDatapath, BindError> {
        let steering = self.steering.unwrap_or_default();
        let datapath = UdpDatapath::bind(self.addr)?.with_steering(steering);
        Ok(OpenDatapath {
            addr: Some(datapath.local_addr()),
            datapath: Box::new(datapath),
        })
    }

    fn steering(&self) -> Option<Steering> {
        self.steering
    }
}

/// A datapath made elsewhere, and the address that it listens on, if it does.
#[derive(Clone, Copy, Debug)]
pub struct Custom<D> {
    pub(super) datapath: D,
    pub(super) addr: Option<SocketAddr>,
}

impl<D: Datapath + 'static> Source for Custom<D> {
    fn open(self: Box<Self>) -> Result<OpenDatapath, BindError> {
        Ok(OpenDatapath {
            datapath: Box::new(self.datapath),
            addr: self.addr,
        })
    }

    fn steering(&self) -> Option<Steering> {
        None
    }
}
