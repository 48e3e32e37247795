//! Classifies by the command of a RESP request: Redis and other servers of its protocol.

use super::spec::{ClassifierSpec, ClassifierSpecError};
use super::table::leading_word;
use super::{Classifier, WordTable};

/// Most arguments of a command, as in Redis (`PROTO_MAX_MULTIBULK` of its networking).
const MAX_ARGUMENTS: u32 = 1024 * 1024;

/// Most digits of a length: enough for Redis' largest bulk string (512 MB).
const MAX_DIGITS: usize = 9;

/// Classifies RESP requests by their command word, in either form Redis accepts: an array
/// of bulk strings (`*2\r\n$3\r\nGET\r\n…`, sent by every client library) or an inline
/// command (`GET key\r\n`, typed by hand). Case makes no difference.
///
/// Of several pipelined commands the first counts. Quoted or indented inline commands are
/// unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resp {
    commands: WordTable,
}

impl Resp {
    /// Classifies by `commands`, (word, class) pairs; other commands are unknown.
    ///
    /// # Errors
    /// [`WordTooLong`](super::WordTooLong) if a word is longer than
    /// [`MAX_WORD_BYTES`](super::MAX_WORD_BYTES).
    pub fn new<'a>(
        commands: impl IntoIterator<Item = (&'a str, u16)>,
    ) -> Result<Self, super::WordTooLong> {
        Ok(Self {
            commands: WordTable::case_folded(commands)?,
        })
    }

    pub(super) fn from_spec(spec: &ClassifierSpec<'_>) -> Result<Self, ClassifierSpecError> {
        let commands = spec.nonempty_words("GET=0,SCAN=1")?;
        Ok(Self {
            commands: WordTable::case_folded(commands).map_err(|e| spec.too_long(e))?,
        })
    }
}

impl Classifier for Resp {
    #[inline]
    fn classify(&self, datagram: &[u8]) -> Option<u16> {
        let word = match datagram.split_first()? {
            (b'*', array) => array_command(array)?,
            _ => leading_word(datagram, b" \t\r\n")?,
        };
        self.commands.get(word)
    }
}

/// The first bulk string of an array whose `*` is already read.
fn array_command(array: &[u8]) -> Option<&[u8]> {
    let (arguments, rest) = decimal_line(array)?;
    if !(1..=MAX_ARGUMENTS).contains(&arguments) {
        return None;
    }
    let (len, rest) = decimal_line(rest.strip_prefix(b"$")?)?;
    let (word, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
    rest.starts_with(b"\r\n").then_some(word)
}

/// Decimal digits up to CR LF, and the bytes after them.
fn decimal_line(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut value = 0;
    for (at, &byte) in bytes.iter().take(MAX_DIGITS + 1).enumerate() {
        match byte {
            b'0'..=b'9' if at < MAX_DIGITS => value = value * 10 + u32::from(byte - b'0'),
            b'\r' if at > 0 => return Some((value, bytes[at..].strip_prefix(b"\r\n")?)),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classifier() -> Resp {
        Resp::new([
            ("GET", 0),
            ("set", 1),
            ("SCAN", 2),
            ("PING", 3),
            ("GETSET", 4),
        ])
        .unwrap()
    }

    #[test]
    fn commands_as_clients_send_them() {
        for (request, class) in [
            // redis-cli GET key
            (&b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n"[..], Some(0)),
            // redis-py: set with a binary value
            (
                b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$4\r\n\x00\r\n\xff\r\n",
                Some(1),
            ),
            // go-redis sends lower case
            (b"*2\r\n$4\r\nscan\r\n$1\r\n0\r\n", Some(2)),
            // redis-benchmark's PING_INLINE and PING_MBULK
            (b"PING\r\n", Some(3)),
            (b"*1\r\n$4\r\nPING\r\n", Some(3)),
            // netcat: a bare line feed
            (b"get key\n", Some(0)),
            (b"GETSET key v\r\n", Some(4)),
            // pipelined: the first counts
            (
                b"*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
                Some(3),
            ),
            // a command not in the table
            (b"*2\r\n$3\r\nDEL\r\n$3\r\nkey\r\n", None),
        ] {
            assert_eq!(
                classifier().classify(request),
                class,
                "{}",
                request.escape_ascii()
            );
        }
    }

    #[test]
    fn malformed_requests_are_unknown() {
        for request in [
            &b""[..],
            b"*",
            b"*0\r\n",
            b"*-1\r\n",
            b"*1048577\r\n$3\r\nGET\r\n",
            b"*99999999999999999999\r\n$3\r\nGET\r\n",
            b"*2\n$3\nGET\n",
            b"*2\r\n:3\r\n",
            b"*2\r\n$-1\r\n",
            b"*2\r\n$\r\nGET\r\n",
            b"*2\r\n$4\r\nGET\r\n$3\r\nkey\r\n",
            b"*2\r\n$2\r\nGET\r\n$3\r\nkey\r\n",
            b"\r\n",
            b" GET key\r\n",
            b"GET",
        ] {
            assert_eq!(
                classifier().classify(request),
                None,
                "{}",
                request.escape_ascii()
            );
        }
    }
}
