//! Cursors, rings and lanes.
#![cfg(not(loom))]

mod cursor;
mod lane;
mod ring;
