//! A property of everything that an application sends to the daemon. `cargo test` checks it on the corpus, and the fuzz target includes this
//! file.

use headway_host::message::{ClientMessage, DaemonMessage, NAME_BYTES_MAX};

/// Any bytes are either a registration that reads back as written, with a name fit for a path and a line, or an error with a text.
pub(crate) fn host_registration(data: &[u8]) {
    match ClientMessage::parse(data) {
        Ok(message) => {
            assert!((1..=NAME_BYTES_MAX).contains(&message.name().len()));
            assert!(!message.name().contains(['/', '\n', '"']));
            assert_eq!(ClientMessage::parse(&message.packet()), Ok(message));
        }
        Err(why) => assert!(!why.is_empty()),
    }
    if let Ok(message) = DaemonMessage::parse(data) {
        assert_eq!(DaemonMessage::parse(&message.packet()), Ok(message));
    }
}
