//! Replies, as a client reads them.

/// The reply to a SCAN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanReply<'a> {
    /// How many entries were read.
    pub entries: u32,
    /// [`Checksum`](crate::Checksum) over their keys and values, in turn.
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
