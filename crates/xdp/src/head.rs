//! The map that says which tables are the newest, and until when they hold.

use crate::layout::{Raw as _, TablesHead};
use aya::maps::{Array, MapData, MapError};

pub(crate) type HeadMap = Array<MapData, [u8; TablesHead::BYTES]>;

pub(crate) fn head_of(head: &HeadMap) -> Result<TablesHead, MapError> {
    let bytes = head.get(&0, 0)?;
    Ok(TablesHead::get(&bytes))
}
