//! The stack of an application that a host's daemon brings packets.

use std::sync::Arc;

use headway_host::client::HostClient;

use crate::net_stack::{NetStack, StackConfig};
use crate::threads::ThreadParking;

/// Why an application has no stack.
#[derive(thiserror::Error)]
pub enum HostStackError {
    /// It registered without packets.
    #[error("the application has no packets: set `network` in its `ClientOptions`")]
    NoNetwork,
    /// Its lanes have another owner.
    #[error("the application's lanes are taken: it has a stack already")]
    LanesTaken,
    /// The system gives no random number, from which ports and sequence numbers begin.
    #[error("the system gives no random number: {0}")]
    NoRandom(getrandom::Error),
}

headway_words::debug_is_display!(HostStackError);

impl<T: ThreadParking> NetStack<T> {
    /// The stack of a registered application, over its lanes and with the address of the daemon's settings. It wakes a sleeping daemon when it sends. A
    /// socket buffers up to `buffer_bytes` in each direction.
    ///
    /// # Errors
    /// [`HostStackError`].
    pub fn of_host(
        client: &Arc<HostClient>,
        buffer_bytes: usize,
        threads: T,
    ) -> Result<Arc<Self>, HostStackError> {
        let network = client.network().ok_or(HostStackError::NoNetwork)?;
        let random = || getrandom::u64().map_err(HostStackError::NoRandom);
        let seed = [random()?, random()?];
        let lanes = network.take_lanes().ok_or(HostStackError::LanesTaken)?;
        let place = network.place();
        let config = StackConfig {
            gateway: place.gateway,
            mtu: place.mtu,
            buffer_bytes,
            ..StackConfig::new(place.mac, place.ip, place.prefix, seed)
        };
        let stack = Self::new(&config, lanes, threads);
        let bell = Arc::clone(client);
        stack.ring(move || bell.packets_sent());
        Ok(stack)
    }
}
