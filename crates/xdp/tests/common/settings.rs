//! The settings of a switch that clones nothing, and its tables for requests of one type.

use headway_policy::ClassHint;
use headway_policy::rack::{Cloning, Demand, Grouping, RackLayout, Shaper, Turns};
use headway_xdp::{Mode, Neighbour, XdpSwitchConfig, XdpTables, tables_of_places};
use std::time::Duration;

/// A switch of both families, whose servers have a minute to answer.
pub(crate) fn settings(mode: Mode) -> XdpSwitchConfig {
    XdpSwitchConfig {
        own_ip4: Some([10, 0, 0, 1].into()),
        own_ip6: Some([0xfd00, 0, 0, 0, 0, 0, 0, 1].into()),
        port: 7777,
        types: 1,
        mode,
        cloning: Cloning::Off,
        overflows: false,
        unfinished_checksums: false,
        answer: Duration::from_secs(60),
    }
}

/// Turns among servers of so many cores each.
pub(crate) fn tables_over(cores: &[usize], servers: &[Neighbour]) -> XdpTables {
    let places: Vec<_> = servers.iter().copied().map(Some).collect();
    tables_over_places(cores, &places)
}

/// The same, where a place may have no server although it has turns.
pub(crate) fn tables_over_places(cores: &[usize], places: &[Option<Neighbour>]) -> XdpTables {
    let demand = Demand::declared(&[ClassHint::new(1e4, 1.0)]);
    let total = cores.iter().sum();
    let layout = RackLayout::new(cores, 1).updated(&[total], &[None]);
    let mut shaper = Shaper::new(1, total, Turns::Even, Cloning::Off, 1);
    shaper.install(&Grouping::new(&[0], &demand), &layout, &demand);
    tables_of_places(&shaper, 1, &[0], places).expect("they fit")
}
