//! Classifies by the command of a memcached request, in the text or the binary protocol.

use super::spec::{ClassifierSpec, ClassifierSpecError};
use super::table::leading_word;
use super::{Classifier, WordTable};

/// A command in both protocols.
struct MemcachedCommand {
    /// Its word in the text protocol, which is also its name in a spec.
    word: &'static str,
    /// Its class by default.
    class: u16,
    /// Its opcodes in the binary protocol, quiet and with-key variants included.
    opcodes: &'static [u8],
}

const fn command(word: &'static str, class: u16, opcodes: &'static [u8]) -> MemcachedCommand {
    MemcachedCommand {
        word,
        class,
        opcodes,
    }
}

const READ: u16 = 0;
const WRITE: u16 = 1;
const ADMIN: u16 = 2;

/// From memcached's `doc/protocol.txt` and `protocol_binary.h`. Two-letter commands are the
/// meta protocol's.
const COMMANDS: &[MemcachedCommand] = &[
    command("get", READ, &[0x00, 0x09, 0x0c, 0x0d]),
    command("gets", READ, &[]),
    command("gat", READ, &[0x1d, 0x1e, 0x23, 0x24]),
    command("gats", READ, &[]),
    command("mg", READ, &[]),
    command("set", WRITE, &[0x01, 0x11]),
    command("add", WRITE, &[0x02, 0x12]),
    command("replace", WRITE, &[0x03, 0x13]),
    command("append", WRITE, &[0x0e, 0x19]),
    command("prepend", WRITE, &[0x0f, 0x1a]),
    command("cas", WRITE, &[]),
    command("delete", WRITE, &[0x04, 0x14]),
    command("incr", WRITE, &[0x05, 0x15]),
    command("decr", WRITE, &[0x06, 0x16]),
    command("touch", WRITE, &[0x1c]),
    command("ms", WRITE, &[]),
    command("md", WRITE, &[]),
    command("ma", WRITE, &[]),
    command("stats", ADMIN, &[0x10]),
    command("flush_all", ADMIN, &[0x08, 0x18]),
    command("version", ADMIN, &[0x0b]),
    command("verbosity", ADMIN, &[0x1b]),
    command("mn", ADMIN, &[0x0a]),
    command("me", ADMIN, &[]),
    command("quit", ADMIN, &[0x07, 0x17]),
];

const BINARY_REQUEST_MAGIC: u8 = 0x80;
const BINARY_HEADER_BYTES: usize = 24;
const UDP_FRAME_BYTES: usize = 8;

/// Classifies memcached requests by their command, in the text protocol (with its meta commands) or
/// the binary one. The first byte distinguishes the two.
///
/// A binary opcode counts as the equivalent text command, so GetKQ is a `get`. A binary
/// compare-and-swap is a `set`, by its opcode. Text commands are in lower case, as memcached has
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memcached {
    words: WordTable,
    opcodes: Box<[Option<u16>; 256]>,
    udp_frame: bool,
}

impl Memcached {
    /// Reads are class 0, writes class 1, administration (stats, flush_all, version,
    /// verbosity, quit, no-ops) class 2.
    #[must_use]
    pub fn by_kind() -> Self {
        Self::new(|command| Some(command.class))
    }

    /// Classifies by `commands`, (text command, class) pairs; other commands are unknown.
    ///
    /// # Errors
    /// The first word that is no memcached command.
    pub fn by_command<'a>(commands: &[(&'a str, u16)]) -> Result<Self, &'a str> {
        if let Some((word, _)) = commands
            .iter()
            .find(|(word, _)| !Self::words().any(|known| known == *word))
        {
            return Err(word);
        }
        Ok(Self::new(|command: &MemcachedCommand| {
            commands
                .iter()
                .rev()
                .find(|(word, _)| *word == command.word)
                .map(|&(_, class)| class)
        }))
    }

    /// Expects memcached's 8-byte UDP frame header in front of each request. Requests that
    /// span several datagrams are unknown: memcached does not serve them either.
    #[must_use]
    pub fn with_udp_frame(self) -> Self {
        Self {
            udp_frame: true,
            ..self
        }
    }

    pub(super) fn from_spec(spec: &mut ClassifierSpec<'_>) -> Result<Self, ClassifierSpecError> {
        let frame = spec
            .take("frame")
            .map(|e| e.choice(&["udp", "none"]))
            .transpose()?;
        let known: Vec<_> = Self::words().chain(["frame"]).collect();
        let classifier = match spec.known_words(&known)?.as_slice() {
            [] => Self::by_kind(),
            commands => Self::new(|command| {
                commands
                    .iter()
                    .find(|(word, _)| *word == command.word)
                    .map(|&(_, class)| class)
            }),
        };
        Ok(if frame == Some("udp") {
            classifier.with_udp_frame()
        } else {
            classifier
        })
    }

    fn words() -> impl Iterator<Item = &'static str> {
        COMMANDS.iter().map(|command| command.word)
    }

    fn new(class_of: impl Fn(&MemcachedCommand) -> Option<u16>) -> Self {
        let mut words = Vec::new();
        let mut opcodes = Box::new([None; 256]);
        for command in COMMANDS {
            let Some(class) = class_of(command) else {
                continue;
            };
            words.push((command.word, class));
            for &opcode in command.opcodes {
                opcodes[usize::from(opcode)] = Some(class);
            }
        }
        let words = WordTable::case_sensitive(words).expect("memcached's commands are short");
        Self {
            words,
            opcodes,
            udp_frame: false,
        }
    }

    #[inline]
    fn text(&self, request: &[u8]) -> Option<u16> {
        self.words.get(leading_word(request, b" \r\n")?)
    }

    #[inline]
    fn binary(&self, request: &[u8]) -> Option<u16> {
        let header = request.first_chunk::<BINARY_HEADER_BYTES>()?;
        self.opcodes[usize::from(header[1])]
    }
}

/// The request behind a UDP frame header: request id, sequence number, number of datagrams,
/// reserved; two bytes each.
#[inline]
fn unframe(datagram: &[u8]) -> Option<&[u8]> {
    let (frame, request) = datagram.split_first_chunk::<UDP_FRAME_BYTES>()?;
    (frame[4..6] == [0, 1]).then_some(request)
}

impl Classifier for Memcached {
    #[inline]
    fn classify(&self, datagram: &[u8]) -> Option<u16> {
        let request = if self.udp_frame {
            unframe(datagram)?
        } else {
            datagram
        };
        match request.first()? {
            &BINARY_REQUEST_MAGIC => self.binary(request),
            _ => self.text(request),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GetKQ of "Hello", as libmemcached sends it.
    const BINARY_GETKQ: &[u8] = b"\x80\x0d\x00\x05\x00\x00\x00\x00\x00\x00\x00\x05\
        \x00\x00\x00\x2a\x00\x00\x00\x00\x00\x00\x00\x00Hello";
    /// Set of "Hello" to "World" with flags and expiration.
    const BINARY_SET: &[u8] = b"\x80\x01\x00\x05\x08\x00\x00\x00\x00\x00\x00\x12\
        \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xde\xad\xbe\xef\x00\x00\x0e\x10HelloWorld";

    #[test]
    fn commands_as_clients_send_them() {
        for (request, class) in [
            (&b"get foo\r\n"[..], Some(READ)),
            (b"gets foo bar baz\r\n", Some(READ)),
            (b"gat 60 foo\r\n", Some(READ)),
            (b"mg foo t f v\r\n", Some(READ)),
            (b"set foo 0 3600 3\r\nbar\r\n", Some(WRITE)),
            (b"cas foo 0 0 3 17\r\nbar\r\n", Some(WRITE)),
            (b"delete foo noreply\r\n", Some(WRITE)),
            (b"incr n 1\r\n", Some(WRITE)),
            (b"touch foo 60\r\n", Some(WRITE)),
            (b"ms foo 3 T0\r\nbar\r\n", Some(WRITE)),
            (b"stats\r\n", Some(ADMIN)),
            (b"flush_all\r\n", Some(ADMIN)),
            (b"version\n", Some(ADMIN)),
            (BINARY_GETKQ, Some(READ)),
            (BINARY_SET, Some(WRITE)),
            (b"GET foo\r\n", None),
            (b"getter foo\r\n", None),
            (b"get", None),
            (b"", None),
            (&BINARY_SET[..23], None),
        ] {
            let found = Memcached::by_kind().classify(request);
            assert_eq!(found, class, "{}", request.escape_ascii());
        }
    }

    #[test]
    fn a_binary_response_is_no_request() {
        let mut response = BINARY_GETKQ.to_vec();
        response[0] = 0x81;
        assert_eq!(Memcached::by_kind().classify(&response), None);
    }

    #[test]
    fn opcodes_are_claimed_once() {
        let mut opcodes: Vec<_> = COMMANDS
            .iter()
            .flat_map(|command| command.opcodes)
            .collect();
        opcodes.sort();
        assert!(opcodes.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn named_commands_cover_both_protocols() {
        let classifier = Memcached::by_command(&[("get", 4), ("set", 5), ("get", 6)]).unwrap();
        assert_eq!(
            classifier.classify(b"get foo\r\n"),
            Some(6),
            "the later pair counts"
        );
        assert_eq!(classifier.classify(BINARY_GETKQ), Some(6));
        assert_eq!(classifier.classify(BINARY_SET), Some(5));
        assert_eq!(classifier.classify(b"gets foo\r\n"), None);
        assert_eq!(
            Memcached::by_command(&[("get", 0), ("fetch", 1)]),
            Err("fetch")
        );
    }

    #[test]
    fn udp_frames() {
        let classifier = Memcached::by_kind().with_udp_frame();
        let framed = |frame: &[u8; 8], request: &[u8]| [frame, request].concat();
        let single = framed(b"\x12\x34\0\0\0\x01\0\0", b"get foo\r\n");
        let spanning = framed(b"\x12\x34\0\0\0\x02\0\0", b"get foo\r\n");
        assert_eq!(classifier.classify(&single), Some(READ));
        assert_eq!(classifier.classify(&spanning), None);
        assert_eq!(classifier.classify(b"get foo\r\n"), None);
        assert_eq!(Memcached::by_kind().classify(&single), None);
    }
}
