//! The channel between a rack's control plane and the agents of its servers: capacity, heartbeats and duties over UDP, under a shared key.
//!
//! Agents speak, the rack answers. A report without a session is answered with the session that the rack would accept next; the first report
//! that names it begins the session and ends the one before. Within a session counters only grow, and every answer names the report that it
//! answers. Neither end therefore accepts a recorded packet again, and the rack keeps no state for packets that it refuses.
//!
//! | concern | file |
//! |---|---|
//! | the key, and what makes a packet authentic | [`AgentKey`] |
//! | bytes of reports and answers | `message.rs` |
//! | the server's end | [`AgentSession`], [`RackAgent`], [`run_agent`] |
//! | the rack's end | [`AgentRegistry`], [`RackAgents`], [`AgentHub`] |

mod hub;
mod key;
mod message;
mod orders;
mod registry;
mod server;
mod session;

pub use hub::{AdmitServer, AgentHub, HubRack, RackAgents};
pub use key::{AgentKey, KeyError};
pub use message::{
    AGENT_PACKET_BYTES_MAX, AgentReport, MessageError, OrderedDuty, OrderedPart, RackAnswer,
    TypeBytes,
};
pub use orders::DutyOrders;
pub use registry::{AgentCounts, AgentNews, AgentRegistry, AgentState, AnnouncedServer};
pub use server::{AgentError, AgentEvents, AgentStep, RackAgent, connect_agent, run_agent};
pub use session::{AgentSession, ServerStatus};
