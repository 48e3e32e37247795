//! The engine in virtual time: every allocator, and applications that keep to the protocol, refuse, lie or die.

mod corpus;
mod fakes;
mod liars;
mod packets;
mod promises;
mod unusable;
