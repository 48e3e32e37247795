//! What became of each request, and what must hold of responses.

use std::collections::HashMap;
use std::net::SocketAddr;

use headway_net::header::Header;

/// What became of each request: what must hold of responses.
#[derive(Default)]
pub(super) struct RequestBook {
    /// Deliveries at the switch, and its responses, by client and index.
    pub(super) requests: HashMap<(SocketAddr, u32), (u32, u32)>,
    pub(super) deliveries: u64,
    pub(super) responses: u64,
}

impl RequestBook {
    pub(super) fn delivered(&mut self, client: SocketAddr, index: u32) {
        self.requests.entry((client, index)).or_default().0 += 1;
        self.deliveries += 1;
    }

    /// A response on its way to a client: says what is wrong with it.
    pub(super) fn responded(
        &mut self,
        client: SocketAddr,
        header: Header,
        body: &[u8],
    ) -> Option<String> {
        self.responses += 1;
        let index = header.index;
        let Some((delivered, responded)) = self.requests.get_mut(&(client, index)) else {
            return Some(format!(
                "{client} gets a response to {index}, and never asked"
            ));
        };
        *responded += 1;
        if responded > delivered {
            return Some(format!(
                "{client} asked {index} {delivered} times, and gets response {responded}"
            ));
        }
        let is_own = body.is_empty() || body == identity(client, index);
        (!is_own).then(|| format!("{client} gets another's response as that to {index}"))
    }
}

/// The body of a request, which its server echoes.
pub(super) fn identity(client: SocketAddr, index: u32) -> [u8; 6] {
    let [a, b] = client.port().to_be_bytes();
    let [c, d, e, f] = index.to_be_bytes();
    [a, b, c, d, e, f]
}
