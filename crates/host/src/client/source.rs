//! An application's cores, from a daemon.

use super::join::{self, ClientError, DaemonConnection};
use super::links::{ClientOptions, Links};
use super::network::ClientNetwork;
use super::signal;
use headway_kthread::{CoreSource, Grant, KthreadLine, OrderLine};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A registered application.
#[derive(Debug)]
pub struct HostClient {
    links: Arc<Links>,
    connection: Arc<DaemonConnection>,
    path: PathBuf,
    /// The kthreads whose threads have entered and not ended.
    entered: AtomicUsize,
}

impl HostClient {
    /// Registers with the daemon at this socket.
    ///
    /// The daemon sends SIGUSR1 to kthreads that must leave, unless they registered with `probes`. The handler is installed for the whole process in any case,
    /// and replaces another one. The registration ends when the source is dropped, or when it was closed and its last kthread has ended.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn register(path: impl AsRef<Path>, options: &ClientOptions) -> Result<Self, ClientError> {
        let path = path.as_ref();
        signal::install().map_err(|source| ClientError::System {
            what: "install the handler of SIGUSR1",
            source,
        })?;
        let (links, socket) = join::register(path, options)?;
        let links = Arc::new(links);
        let connection = Arc::new(DaemonConnection::new(socket));
        join::watch(Arc::clone(&links), path.into(), Arc::clone(&connection))?;
        Ok(Self {
            links,
            connection,
            path: path.into(),
            entered: AtomicUsize::new(0),
        })
    }

    /// The daemon's socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its place in the network and its lanes, if it asked for packets.
    pub fn network(&self) -> Option<&ClientNetwork> {
        self.links.network.as_ref()
    }

    /// Announces packets in a lane: it wakes a daemon without a core of its own, which sends them. [`leave`](CoreSource::leave) does so too.
    #[inline]
    pub fn packets_sent(&self) {
        self.links.packets_sent();
    }
}

impl CoreSource for HostClient {
    fn kthreads(&self) -> usize {
        self.links.lines.kthreads()
    }

    #[inline]
    fn line(&self, kthread: usize) -> &KthreadLine {
        self.links.lines.line(kthread)
    }

    #[inline]
    fn orders(&self, kthread: usize) -> &OrderLine {
        self.links.lines.orders(kthread)
    }

    fn enter(&self, kthread: usize) -> Grant {
        self.entered.fetch_add(1, Ordering::AcqRel);
        signal::come(&self.links, kthread);
        self.links.come(kthread)
    }

    fn leave(
        &self,
        kthread: usize,
        grant: Grant,
        finds_nothing: &mut dyn FnMut() -> bool,
    ) -> Grant {
        self.links.leave(kthread, grant, finds_nothing)
    }

    #[inline]
    fn notify(&self) {
        self.links.notify();
    }

    fn put(&self, entries: u64) {
        let line = self.links.lines.app();
        line.shared_tail.fetch_add(entries, Ordering::Release);
    }

    fn took(&self, entries: u64) {
        let line = self.links.lines.app();
        line.shared_head.fetch_add(entries, Ordering::Release);
    }

    #[inline]
    fn is_daemons_core(&self, kthread: usize) -> bool {
        self.links.is_daemons_core(kthread)
    }

    fn exit(&self) {
        signal::go();
        // A runtime with handles of ended threads keeps its source for ever.
        if self.entered.fetch_sub(1, Ordering::AcqRel) == 1 && self.links.is_closed() {
            self.connection.shut_down();
        }
    }

    fn close(&self) {
        self.links.close();
    }
}

impl Drop for HostClient {
    fn drop(&mut self) {
        self.links.close();
        self.connection.shut_down();
    }
}
