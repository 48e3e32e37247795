//! The property of any input that a client of the control socket sends. `cargo test` checks it on the corpus, and the fuzz target includes
//! this file.

#[path = "../../../ops/src/protocol.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the library exports it, and the command uses the rest"
)]
mod protocol;

use protocol::{CtlRequest, REQUEST_BYTES_MAX, parse_response, read_line, response_line};

/// Any bytes are lines. Each line is a request that reads back as written, or yields a non-empty error of one line.
pub(crate) fn ctl_request(data: &[u8]) {
    let mut rest = data;
    while let Ok(Some(line)) = read_line(&mut rest, REQUEST_BYTES_MAX) {
        match CtlRequest::parse(&line) {
            Ok(request) => {
                let again = CtlRequest::parse(request.line().as_bytes());
                assert_eq!(again.as_ref(), Ok(&request));
            }
            Err(error) => {
                assert!(!error.is_empty());
                let said = response_line(&Err(error.clone()));
                assert_eq!(said.matches('\n').count(), 1, "{said}");
                assert_eq!(parse_response(said.as_bytes()), Ok(Err(error)));
            }
        }
        let _ = parse_response(&line);
    }
}
