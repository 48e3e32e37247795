//! The batch program: Monte-Carlo pricing in POSIX threads. It is unaware of the daemon, and counts its work in a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const SOURCE: &str = include_str!("../../../host/examples/shared_cores/pricer.c");
/// Time that the program runs alone, to measure its work on one core.
const ALONE: Duration = Duration::from_millis(700);
/// How long its first work may take. Under a daemon it has only the time that other programs leave, which beside four busy loops is none for seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// The errors of the batch program.
#[derive(thiserror::Error)]
pub enum BatchError {
    /// A file or process is not available.
    #[error("the batch program: {0}")]
    System(#[from] std::io::Error),
    /// The compiler is missing or fails.
    #[error(
        "cc cannot compile the batch program: install a C compiler (apt-get install gcc libc6-dev)"
    )]
    Compiler,
    /// The program counts no work.
    #[error(
        "the batch program counted no work in {0} for a minute: it has the time that other programs leave, so end those, or run it by hand"
    )]
    Idle(PathBuf),
}

headway_words::debug_is_display!(BatchError);

/// The compiled program, and the file with its counter.
#[derive(Debug)]
pub(super) struct BatchProgram {
    pub(super) path: PathBuf,
    pub(super) counter: PathBuf,
    /// Work in a second, alone on one core.
    pub(super) per_core_s: f64,
}

/// The program while it runs alone; killed when it is dropped.
struct SoloProcess(Child);

impl Drop for SoloProcess {
    fn drop(&mut self) {
        // Fails if the process has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl BatchProgram {
    /// Compiles the program in the folder, and measures its work on one core.
    pub(super) fn new(folder: &Path) -> Result<Self, BatchError> {
        let (source, path) = (folder.join("pricer.c"), folder.join("pricer"));
        fs::write(&source, SOURCE)?;
        let compiled = Command::new("cc")
            .args(["-std=gnu11", "-O2", "-pthread", "-o"])
            .args([&path, &source])
            .arg("-lm")
            .stderr(Stdio::null())
            .status();
        if !compiled.is_ok_and(|status| status.success()) {
            return Err(BatchError::Compiler);
        }
        let mut program = Self {
            path,
            counter: folder.join("priced"),
            per_core_s: f64::NAN,
        };
        program.reset()?;
        let spawned = Command::new(&program.path)
            .arg(&program.counter)
            .arg("1")
            .spawn()?;
        let _alone = SoloProcess(spawned);
        program.await_work()?;
        let (before, start) = (program.done(), Instant::now());
        thread::sleep(ALONE);
        let done = program.done() - before;
        program.per_core_s = done as f64 / start.elapsed().as_secs_f64();
        Ok(program)
    }

    /// Sets the counter to 0.
    pub(super) fn reset(&self) -> Result<(), BatchError> {
        Ok(fs::write(&self.counter, [0; 8])?)
    }

    /// The work since the last reset.
    pub(super) fn done(&self) -> u64 {
        let bytes = fs::read(&self.counter).unwrap_or_default();
        bytes.try_into().map_or(0, u64::from_le_bytes)
    }

    /// Waits until the program counts its first work.
    pub(super) fn await_work(&self) -> Result<(), BatchError> {
        let start = Instant::now();
        while self.done() == 0 {
            if start.elapsed() > PATIENCE {
                return Err(BatchError::Idle(self.counter.clone()));
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}
