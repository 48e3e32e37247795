//! The maps of a loaded program, which its loader does not show.

use aya::maps::MapData;
use aya::programs::loaded_programs;
use headway_xdp::XdpSwitch;
use std::os::fd::{AsFd as _, AsRawFd as _};

/// The program's map of this name.
pub(crate) fn map_of(switch: &mut XdpSwitch, name: &str) -> MapData {
    let program = switch.program_fd().expect("it is loaded").as_fd();
    let of_fd = format!("/proc/self/fdinfo/{}", program.as_raw_fd());
    let of_fd = std::fs::read_to_string(of_fd).expect("its description");
    let id = of_fd
        .lines()
        .find_map(|line| line.strip_prefix("prog_id:"))
        .expect("its number");
    let id: u32 = id.trim().parse().expect("a number");
    let mut programs = loaded_programs().flatten();
    let program = programs
        .find(|program| program.id() == id)
        .expect("it is there");
    let maps = program.map_ids().expect("its maps").expect("their numbers");
    let mut maps = maps
        .into_iter()
        .map(|map| MapData::from_id(map).expect("its map"));
    let has_name = |map: &MapData| {
        let info = map.info().expect("what it is");
        info.name_as_str() == Some(name)
    };
    maps.find(has_name)
        .unwrap_or_else(|| panic!("no map {name}"))
}
