//! Requests, as they are written and read.

/// What a request asks for. The number is the first byte of its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operation {
    /// Read one value.
    Get = 0,
    /// Read consecutive entries.
    Scan = 1,
    /// Write one value.
    Put = 2,
    /// Remove one key.
    Delete = 3,
}

impl Operation {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Get, Self::Scan, Self::Put, Self::Delete];

    /// The name, in capitals.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Scan => "SCAN",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }

    /// The operation of this name, in capitals or not.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|operation: &Self| operation.name().eq_ignore_ascii_case(name))
    }

    const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Get),
            1 => Some(Self::Scan),
            2 => Some(Self::Put),
            3 => Some(Self::Delete),
            _ => None,
        }
    }
}

/// A request. Keys are not empty, but for a SCAN's first key, where empty means from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// The value of a key.
    Get {
        /// The key.
        key: &'a [u8],
    },
    /// The first `count` entries from `first` on.
    Scan {
        /// Where to begin; the key itself need not exist.
        first: &'a [u8],
        /// The most entries to read.
        count: u32,
    },
    /// Sets a key's value.
    Put {
        /// The key.
        key: &'a [u8],
        /// The value; may be empty.
        value: &'a [u8],
    },
    /// Removes a key; one that does not exist is fine.
    Delete {
        /// The key.
        key: &'a [u8],
    },
}

/// Why a body is no request.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The first byte names no operation.
    #[error("operation {0} does not exist: GET is 0, SCAN 1, PUT 2, DELETE 3")]
    UnknownOperation(u8),
    /// The body ends too early.
    #[error("the body ends inside its {0}")]
    Truncated(&'static str),
    /// The body goes on after its end.
    #[error("{0} bytes follow the end of the request")]
    TrailingBytes(usize),
    /// Only a SCAN may have no key.
    #[error("the key is empty")]
    EmptyKey,
}

headway_words::debug_is_display!(Malformed);

/// The request is longer than the buffer, or its key than 65 535 bytes.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a request of {needed} bytes does not fit into {room}, or its key is over 65535 bytes")]
pub struct NoRoom {
    /// Bytes of the request.
    pub needed: usize,
    /// Bytes of the buffer.
    pub room: usize,
}

headway_words::debug_is_display!(NoRoom);

impl<'a> Request<'a> {
    /// What it asks for.
    #[must_use]
    pub const fn operation(&self) -> Operation {
        match self {
            Self::Get { .. } => Operation::Get,
            Self::Scan { .. } => Operation::Scan,
            Self::Put { .. } => Operation::Put,
            Self::Delete { .. } => Operation::Delete,
        }
    }

    /// Reads a body.
    ///
    /// # Errors
    /// [`Malformed`] for everything that [`encode`](Self::encode) would not have written.
    #[inline]
    pub fn decode(body: &'a [u8]) -> Result<Self, Malformed> {
        let (&byte, rest) = body
            .split_first()
            .ok_or(Malformed::Truncated("operation"))?;
        let operation = Operation::from_byte(byte).ok_or(Malformed::UnknownOperation(byte))?;
        let (key, rest) = take_key(rest)?;
        if key.is_empty() && operation != Operation::Scan {
            return Err(Malformed::EmptyKey);
        }
        match operation {
            Operation::Put => Ok(Self::Put { key, value: rest }),
            Operation::Scan => {
                let (count, rest) = rest
                    .split_first_chunk()
                    .ok_or(Malformed::Truncated("count"))?;
                let count = u32::from_be_bytes(*count);
                at_end(rest, Self::Scan { first: key, count })
            }
            Operation::Get => at_end(rest, Self::Get { key }),
            Operation::Delete => at_end(rest, Self::Delete { key }),
        }
    }

    /// Writes the body to the front of `buffer` and returns its length.
    ///
    /// # Errors
    /// [`NoRoom`] when it does not fit; part of it may be written then.
    #[inline]
    pub fn encode(&self, buffer: &mut [u8]) -> Result<usize, NoRoom> {
        let room = buffer.len();
        let Operands { key, count, value } = self.operands();
        let parts: [&[u8]; 5] = [
            &[self.operation() as u8],
            &(key.len() as u16).to_be_bytes(),
            key,
            count.as_ref().map_or(&[], |count| count.as_slice()),
            value,
        ];
        let needed = parts.iter().map(|part| part.len()).sum();
        if needed > room || key.len() > usize::from(u16::MAX) {
            return Err(NoRoom { needed, room });
        }
        let mut end = 0;
        for part in parts {
            buffer[end..end + part.len()].copy_from_slice(part);
            end += part.len();
        }
        Ok(end)
    }

    fn operands(&self) -> Operands<'a> {
        let (key, count, value): (_, _, &[u8]) = match *self {
            Self::Get { key } | Self::Delete { key } => (key, None, &[]),
            Self::Scan { first, count } => (first, Some(count.to_be_bytes()), &[]),
            Self::Put { key, value } => (key, None, value),
        };
        Operands { key, count, value }
    }
}

/// What an operation works on, as it is sent.
struct Operands<'a> {
    /// Of a scan, the first key.
    key: &'a [u8],
    /// Of a scan alone.
    count: Option<[u8; 4]>,
    /// Of a PUT alone; else empty.
    value: &'a [u8],
}

fn take_key(bytes: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let (len, rest) = bytes
        .split_first_chunk()
        .ok_or(Malformed::Truncated("key length"))?;
    let len = usize::from(u16::from_be_bytes(*len));
    rest.split_at_checked(len)
        .ok_or(Malformed::Truncated("key"))
}

fn at_end<'a>(rest: &[u8], request: Request<'a>) -> Result<Request<'a>, Malformed> {
    match rest.len() {
        0 => Ok(request),
        trailing => Err(Malformed::TrailingBytes(trailing)),
    }
}
