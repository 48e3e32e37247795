//! Replies, as they are written and read.

use fjall::Slice;

use crate::Checksum;

/// What became of a request. It owns what it says, so the buffer the request was in can take it.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// A value, or none. The value is shared with the store, not copied.
    Value(Option<Slice>),
    Scanned {
        entries: u32,
        checksum: Checksum,
        last: Option<Slice>,
    },
    Done,
}

impl Reply {
    /// Writes the body to the front of `room` and returns its length, which is more than `room` has when
    /// it does not fit.
    #[inline]
    pub(crate) fn write(&self, room: &mut [u8]) -> usize {
        match self {
            Self::Done => 0,
            Self::Value(None) => put(room, &[&[0]]),
            Self::Value(Some(value)) => put(room, &[&[1], value]),
            Self::Scanned {
                entries,
                checksum,
                last,
            } => {
                let last = last.as_deref().unwrap_or_default();
                let checksum = checksum.value().to_be_bytes();
                put(room, &[&entries.to_be_bytes(), &checksum, last])
            }
        }
    }
}

#[inline]
fn put(room: &mut [u8], parts: &[&[u8]]) -> usize {
    let len = parts.iter().map(|part| part.len()).sum();
    if len <= room.len() {
        let mut end = 0;
        for part in parts {
            room[end..end + part.len()].copy_from_slice(part);
            end += part.len();
        }
    }
    len
}

/// The reply to a SCAN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanReply<'a> {
    /// How many entries were read.
    pub entries: u32,
    /// [`Checksum`] over their keys and values, in turn.
    pub checksum: u64,
    /// The last key read; empty when there was none.
    pub last: &'a [u8],
}

/// Reads the reply to a GET: the value, if the key has one; `None` for bytes that are no such reply.
#[must_use]
pub fn read_get(body: &[u8]) -> Option<Option<&[u8]>> {
    match body {
        [0] => Some(None),
        [1, value @ ..] => Some(Some(value)),
        _ => None,
    }
}

/// Reads the reply to a SCAN; `None` for bytes that are no such reply.
#[must_use]
pub fn read_scan(body: &[u8]) -> Option<ScanReply<'_>> {
    let (entries, rest) = body.split_first_chunk()?;
    let (checksum, last) = rest.split_first_chunk()?;
    Some(ScanReply {
        entries: u32::from_be_bytes(*entries),
        checksum: u64::from_be_bytes(*checksum),
        last,
    })
}
