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
    /// What it becomes.
    type Path: Datapath<Rx: 'static, Tx: 'static>;

    /// The datapath, and the address it listens on, if it does.
    ///
    /// # Errors
    /// [`BindError`] when it cannot listen.
    fn open(self) -> Result<(Self::Path, Option<SocketAddr>), BindError>;

    /// How requests are steered to the workers' receive queues, if that was chosen: only workers with queues of their own heed it.
    fn steering(&self) -> Option<Steering>;
}

/// A UDP address to listen on.
#[derive(Clone, Copy, Debug)]
pub struct Udp {
    pub(super) addr: SocketAddr,
    pub(super) steering: Option<Steering>,
}

impl Source for Udp {
    type Path = UdpDatapath;

    fn open(self) -> Result<(UdpDatapath, Option<SocketAddr>), BindError> {
        let steering = self.steering.unwrap_or_default();
        let datapath = UdpDatapath::bind(self.addr)?.with_steering(steering);
        let addr = datapath.local_addr();
        Ok((datapath, Some(addr)))
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

impl<D: Datapath<Rx: 'static, Tx: 'static>> Source for Custom<D> {
    type Path = D;

    fn open(self) -> Result<(D, Option<SocketAddr>), BindError> {
        Ok((self.datapath, self.addr))
    }

    fn steering(&self) -> Option<Steering> {
        None
    }
}
