//! Writes the compiled XDP programs into a folder: `make xdp`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::{fs, io};

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1).map(PathBuf::from) else {
        eprintln!("name the folder to write rack.bpf.o and bare.bpf.o to");
        return ExitCode::from(2);
    };
    let objects = match headway_xdp::compile() {
        Ok(objects) => objects,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    match write(&folder, &objects) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write to {}: {error}", folder.display());
            ExitCode::from(2)
        }
    }
}

fn write(folder: &PathBuf, objects: &headway_xdp::XdpObjects) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("rack.bpf.o"), &objects.rack)?;
    fs::write(folder.join("bare.bpf.o"), &objects.bare)
}
