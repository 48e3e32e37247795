//! The command `headway`.

use std::process::ExitCode;

fn main() -> ExitCode {
    headway_cli::main()
}
