//! `headway rack detach`: the end of a switch that a killed process left in the kernel.

use super::args::DetachArgs;
use crate::error::usage;
use crate::output;
use anyhow::{Context, Result};
use headway_xdp::{PinsError, pinned_switches};
use std::io::Write;
use std::process::ExitCode;

impl DetachArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let found = pinned_switches(self.at).context("cannot tell this network namespace")?;
        if found.is_empty() {
            let why = "no process left a switch of this network namespace in the kernel: root alone sees those that there are";
            return Err(usage("detach", why));
        }
        let mut writer = output::open(None)?;
        for pins in found {
            match pins {
                Ok(pins) => {
                    let name = pins.name();
                    pins.remove();
                    writeln!(writer, "the switch {name} is detached")?;
                }
                Err(error @ PinsError::InUse { .. }) => {
                    let why =
                        format!("{error}: end that one by SIGTERM, which detaches the switch");
                    return Err(usage("detach", why));
                }
                Err(error) => return Err(usage("detach", error)),
            }
        }
        writer.flush()?;
        Ok(ExitCode::SUCCESS)
    }
}
