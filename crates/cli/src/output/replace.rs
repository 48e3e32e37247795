//! Atomic output: the file is written beside its place and then moved there, so a full disk or a kill leaves the old file.

use super::wrap::Wrapped;
use crate::error::usage;
use anyhow::Result;
use nix::libc::{ENXIO, O_NONBLOCK};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Stdout, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::{NamedTempFile, TempPath};

/// Of the names of files that are not complete.
const PREFIX: &str = ".headway-";

/// Standard output, a file to be replaced, or a device or pipe. [`flush`](Write::flush) completes it: a file is in its place only then.
/// Dropped before, it leaves what was there.
pub(crate) struct Output {
    sink: OutputSink,
    /// The path that an error names.
    place: String,
}

enum OutputSink {
    Standard(BufWriter<Stdout>),
    /// Standard output, for people.
    Terminal(Wrapped<BufWriter<Stdout>>),
    /// Has no old content to keep.
    Device(BufWriter<File>),
    /// A file beside its place, until the first flush.
    File {
        writer: BufWriter<File>,
        moves: Option<(TempPath, PathBuf)>,
    },
}

impl Output {
    pub(super) fn standard() -> Self {
        Self {
            sink: OutputSink::Standard(BufWriter::new(io::stdout())),
            place: "standard output".into(),
        }
    }

    /// Standard output, where it is a terminal.
    pub(super) fn terminal() -> Option<Self> {
        let (terminal_size::Width(columns), _) = terminal_size::terminal_size_of(io::stdout())?;
        let writer = Wrapped::new(BufWriter::new(io::stdout()), usize::from(columns));
        Some(Self {
            sink: OutputSink::Terminal(writer),
            ..Self::standard()
        })
    }

    /// The same for what only programs read, so that its lines pass as they are on a terminal too. Nothing is written yet.
    pub(super) fn verbatim(self) -> Self {
        match self.sink {
            OutputSink::Terminal(_) => Self::standard(),
            _ => self,
        }
    }

    /// The file at `path`, or the device or pipe there.
    ///
    /// # Errors
    /// A usage error that names `flag`, when it cannot be written.
    pub(super) fn create(flag: &str, path: &Path) -> Result<Self> {
        // Opened by its name it would be cut off at its beginning, were it a file.
        if path == Path::new("/dev/stdout") {
            return Ok(Self::standard());
        }
        let shown = path.display();
        let sink = sink(flag, path)
            .map_err(|error| usage(flag, format!("cannot write {shown}: {error}")))?;
        Ok(Self {
            sink,
            place: format!("{flag}: {shown}"),
        })
    }

    fn named(&self, error: &io::Error) -> io::Error {
        let kept = match &self.sink {
            OutputSink::File { moves: Some(_), .. } => "; what was there before is unchanged",
            _ => "",
        };
        io::Error::new(
            error.kind(),
            format!("cannot write {}: {error}{kept}", self.place),
        )
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.sink {
            OutputSink::Standard(writer) => writer.write(bytes),
            OutputSink::Terminal(writer) => writer.write(bytes),
            OutputSink::Device(writer) | OutputSink::File { writer, .. } => writer.write(bytes),
        };
        written.map_err(|error| self.named(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = match &mut self.sink {
            OutputSink::Standard(writer) => writer.flush(),
            OutputSink::Terminal(writer) => writer.flush(),
            OutputSink::Device(writer) => writer.flush(),
            OutputSink::File { writer, moves } => complete(writer, moves),
        };
        flushed.map_err(|error| self.named(&error))
    }
}

fn sink(flag: &str, path: &Path) -> io::Result<OutputSink> {
    let old = match fs::metadata(path) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if let Some(old) = old.as_ref().filter(|old| !old.is_file()) {
        let device = if old.file_type().is_fifo() {
            open_pipe(flag, path)?
        } else {
            OpenOptions::new().write(true).open(path)?
        };
        return Ok(OutputSink::Device(BufWriter::new(device)));
    }
    // A link stays one, and what it leads to is replaced.
    let place = match &old {
        Some(_) => fs::canonicalize(path)?,
        None => path.to_owned(),
    };
    let beside = folder_of(&place);
    // The folder is no place for a file where nobody may write, or where the file is one of another file system (a container's bind mount).
    let is_mounted =
        |old: &fs::Metadata| fs::metadata(beside).is_ok_and(|it| it.dev() != old.dev());
    let made = match &old {
        Some(old) if is_mounted(old) => in_temporary(&place)?,
        Some(_) => beside_of(&place).or_else(|error| in_temporary(&place).map_err(|_| error))?,
        None => beside_of(&place)?,
    };
    let (file, beside) = made.into_parts();
    if let Some(old) = old {
        file.set_permissions(old.permissions())?;
    }
    Ok(OutputSink::File {
        writer: BufWriter::new(file),
        moves: Some((beside, place)),
    })
}

/// The named pipe at `path`. Waits for its reader, as a shell does, and says so.
fn open_pipe(flag: &str, path: &Path) -> io::Result<File> {
    let open = |flags| {
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(flags).open(path)
    };
    let held = match open(O_NONBLOCK) {
        Err(error) if error.raw_os_error() == Some(ENXIO) => {
            let pipe = path.display();
            eprintln!("{flag}: {pipe} is a pipe that nobody reads: this waits for a reader");
            None
        }
        opened => Some(opened?),
    };
    let pipe = open(0)?;
    // Closed only now: a pipe without a writer has ended for its reader.
    drop(held);
    Ok(pipe)
}

fn folder_of(place: &Path) -> &Path {
    match place.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A file beside its place. It is locked while this process lives, so that others see which ones a killed process left behind.
fn beside_of(place: &Path) -> io::Result<NamedTempFile> {
    let folder = folder_of(place);
    fs::metadata(folder)?;
    clear_left_behind(folder);
    loop {
        let named = made_in(folder)?;
        // Without locks (some network file systems) nothing is cleared either.
        let _ = named.as_file().try_lock();
        // Between making and locking it, another process may have taken it for one left behind.
        if named.as_file().metadata()?.nlink() > 0 {
            return Ok(named);
        }
    }
}

/// A file for a place that is written in place at the end.
fn in_temporary(place: &Path) -> io::Result<NamedTempFile> {
    OpenOptions::new().write(true).open(place)?;
    made_in(&std::env::temp_dir())
}

fn made_in(folder: &Path) -> io::Result<NamedTempFile> {
    let made = tempfile::Builder::new()
        .prefix(PREFIX)
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder);
    Ok(made.map_err(|error| error.kind())?)
}

/// Removes the files that killed processes left in a folder: those that nobody has locked.
fn clear_left_behind(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let is_file = || entry.file_type().is_ok_and(|kind| kind.is_file());
        if ours && is_file() && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Has all of it on the disk before it replaces anything: some file systems say only then that there is no room.
fn complete(
    writer: &mut BufWriter<File>,
    moves: &mut Option<(TempPath, PathBuf)>,
) -> io::Result<()> {
    writer.flush()?;
    if let Some((beside, place)) = moves {
        writer.get_ref().sync_all()?;
        match fs::rename(&*beside, &*place) {
            // Moved away, there is nothing to remove.
            Ok(()) => {
                if let Some((beside, _)) = moves.take() {
                    drop(beside.keep());
                }
            }
            // Of another file system, or mounted itself, which a container does to single files: it can only be written in place.
            Err(error) if is_fixed(&error) => {
                let mut fixed = OpenOptions::new()
                    .write(true)
                    .truncate(true)
                    .open(&*place)?;
                io::copy(&mut File::open(&*beside)?, &mut fixed)?;
                fixed.sync_all()?;
                *writer = BufWriter::new(fixed);
                *moves = None;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_fixed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ResourceBusy | io::ErrorKind::CrossesDevices
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_cleared_and_what_a_living_one_has_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        fs::write(folder.path().join(".headway-killed"), "half").unwrap();
        let first = Output::create("--output", &path).unwrap();
        let second = Output::create("--output", &path).unwrap();
        assert_eq!(names(folder.path()).len(), 2, "{:?}", names(folder.path()));
        assert!(!folder.path().join(".headway-killed").exists());
        drop((first, second));
        assert!(names(folder.path()).is_empty());
    }

    /// As a file that is mounted: it cannot be replaced.
    #[test]
    fn a_file_of_another_file_system_is_written_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        fs::write(&path, "something longer").unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        let named = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempfile_in("/dev/shm");
        let Ok(named) = named else {
            println!("SKIPPED a file of another file system: there is no /dev/shm");
            return;
        };
        let (file, beside) = named.into_parts();
        let mut writer = BufWriter::new(file);
        writer.write_all(b"new").unwrap();
        let mut moves = Some((beside, path.clone()));
        complete(&mut writer, &mut moves).unwrap();
        writer.write_all(b" and more").unwrap();
        complete(&mut writer, &mut moves).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new and more");
        if fs::metadata("/dev/shm").unwrap().dev() != fs::metadata(folder.path()).unwrap().dev() {
            assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
        }
    }

    /// Everything in a folder, by name.
    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        fs::write(&path, "old").unwrap();
        let mut given_up = Output::create("--output", &path).unwrap();
        given_up.write_all(b"half").unwrap();
        drop(given_up);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(
            names(folder.path()),
            ["result"],
            "nothing is left beside it"
        );

        let mut whole = Output::create("--output", &path).unwrap();
        whole.write_all(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        whole.flush().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        whole.write_all(b" and more").unwrap();
        whole.flush().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new and more");
        assert_eq!(names(folder.path()), ["result"]);
    }

    #[test]
    fn a_link_stays_one_and_permissions_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("result"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let mut output = Output::create("--output", &link).unwrap();
        output.write_all(b"new").unwrap();
        output.flush().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }

    #[test]
    fn a_full_device_is_named_and_a_folder_is_refused() {
        let mut full = Output::create("--hlog", Path::new("/dev/full")).unwrap();
        full.write_all(b"something").unwrap();
        let error = full.flush().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().contains("--hlog: /dev/full"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        assert!(Output::create("--output", folder.path()).is_err());
    }
}
