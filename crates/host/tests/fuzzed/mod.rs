//! What must hold for anything that an application sends to the daemon. Checked on the corpus by `cargo test`, and by the fuzz target, which
//! includes this file.

use headway_host::message::{ClientMessage, DaemonMessage, NAME_BYTES_MAX};

/// Any bytes are a registration that reads back as written, under a name that can stand in a path and in a line, or an error that says something.
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
