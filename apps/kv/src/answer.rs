//! Replies, as the service writes them.

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
