//! `headway completions` and `headway man`: generated from the definition of the command line.

use crate::output;
use anyhow::{Context, Result};
use clap_complete::Shell;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

#[derive(clap::Args)]
pub(crate) struct Man {
    /// Folder to write headway.1 and a page for each command into
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

impl Completions {
    pub(crate) fn run(self, mut command_line: clap::Command) -> Result<ExitCode> {
        let mut writer = output::verbatim();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command_line, "headway", &mut script);
        writer.write_all(&script)?;
        writer.flush()?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Man {
    pub(crate) fn run(self, command_line: clap::Command) -> Result<ExitCode> {
        match self.dir {
            Some(dir) => {
                std::fs::create_dir_all(&dir)
                    .with_context(|| format!("cannot make {}", dir.display()))?;
                clap_mangen::generate_to(command_line, &dir)
                    .with_context(|| format!("cannot write into {}", dir.display()))?;
            }
            None => {
                let mut writer = output::verbatim();
                clap_mangen::Man::new(command_line).render(&mut writer)?;
                writer.flush()?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
