//! Objects that were compiled before, by sources and kernel: a start then needs neither clang nor headers, nor seconds.

use crate::{Compiler, ObjectError};
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// How an object begins.
const ELF: &[u8] = b"\x7fELF";
/// The folder of the system's own services.
const SYSTEM: &str = "/var/cache/headway";

/// The objects of [`Compiler::compile`]: those that an earlier call left in this user's cache for the same sources and kernel, or compiled now
/// and left there. `HEADWAY_CLANG` has them compiled in any case. The folder is what `CACHE_DIRECTORY` names, as systemd's
/// `CacheDirectory=` sets it; else `/var/cache/headway` for root, or `headway` in `XDG_CACHE_HOME` or `~/.cache`; objects are loaded as they are, so a folder into which others may write is not used.
///
/// # Errors
/// As [`Compiler::find`] and [`Compiler::compile`].
pub fn objects<const N: usize>(
    sources: &[(&str, &str)],
    programs: [&str; N],
) -> Result<[Vec<u8>; N], ObjectError> {
    let named = std::env::var_os("HEADWAY_CLANG").is_some();
    let folder = folder().filter(|_| !named);
    objects_in(folder.as_deref(), sources, programs, || {
        Compiler::find()?.compile(sources, programs)
    })
}

fn objects_in<const N: usize>(
    folder: Option<&Path>,
    sources: &[(&str, &str)],
    programs: [&str; N],
    compile: impl FnOnce() -> Result<[Vec<u8>; N], ObjectError>,
) -> Result<[Vec<u8>; N], ObjectError> {
    let Some(folder) = folder.filter(|folder| is_own(folder)) else {
        return compile();
    };
    let key = key(sources);
    let paths = programs.map(|program| folder.join(format!("{program}-{key:016x}.o")));
    let mut found = paths.each_ref().map(|path| kept(path));
    if found.iter().all(Option::is_some) {
        return Ok(found
            .each_mut()
            .map(|object| object.take().unwrap_or_default()));
    }
    let objects = compile()?;
    for (path, object) in paths.iter().zip(&objects) {
        // A full disk costs the next start its seconds, and nothing else.
        let _ = keep(folder, path, object);
    }
    Ok(objects)
}

/// The object in a file; none if a crash of the machine left something else there.
fn kept(path: &Path) -> Option<Vec<u8>> {
    let object = fs::read(path).ok()?;
    object.starts_with(ELF).then_some(object)
}

/// Writes under another name first, and to the disk: whoever reads finds all of it or nothing.
fn keep(folder: &Path, path: &Path, object: &[u8]) -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(object)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// What an object depends on. The kernel's headers may change with the kernel.
fn key(sources: &[(&str, &str)]) -> u64 {
    let mut hasher = DefaultHasher::new();
    sources.hash(&mut hasher);
    fs::read("/proc/sys/kernel/osrelease")
        .unwrap_or_default()
        .hash(&mut hasher);
    std::env::consts::ARCH.hash(&mut hasher);
    hasher.finish()
}

/// This user's folder, made if it is missing.
fn folder() -> Option<PathBuf> {
    let folder = if let Some(given) = std::env::var_os("CACHE_DIRECTORY") {
        given.into()
    } else if own_uid()? == 0 {
        PathBuf::from(SYSTEM)
    } else {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
        cache.or_else(home)?.join("headway")
    };
    let mut make = fs::DirBuilder::new();
    make.recursive(true).mode(0o700).create(&folder).ok()?;
    Some(folder)
}

/// The user of this process.
fn own_uid() -> Option<u32> {
    fs::metadata("/proc/self").map(|about| about.uid()).ok()
}

/// Whether nobody but this user and root writes into the folder: a real one, not a link.
fn is_own(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|about| {
        about.is_dir() && Some(about.uid()) == own_uid() && about.mode() & 0o022 == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn object(text: &str) -> Vec<u8> {
        [ELF, text.as_bytes()].concat()
    }

    fn asked(folder: &Path, text: &str, compiled: &mut u32) -> Vec<u8> {
        let [object] = objects_in(Some(folder), &[("a.c", text)], ["a"], || {
            *compiled += 1;
            Ok([object(text)])
        })
        .unwrap();
        object
    }

    #[test]
    fn an_object_is_compiled_once_for_the_same_sources() {
        let folder = tempfile::tempdir().unwrap();
        let mut compiled = 0;
        for (text, so_far) in [("one", 1), ("one", 1), ("two", 2), ("one", 2)] {
            assert_eq!(asked(folder.path(), text, &mut compiled), object(text));
            assert_eq!(compiled, so_far);
        }
    }

    #[test]
    fn what_a_crash_left_of_an_object_is_compiled_anew() {
        let folder = tempfile::tempdir().unwrap();
        let mut compiled = 0;
        asked(folder.path(), "one", &mut compiled);
        let file = fs::read_dir(folder.path()).unwrap().next();
        let file = file.unwrap().unwrap();
        for (left, so_far) in [(&b""[..], 2), (&[0; 7][..], 3)] {
            fs::write(file.path(), left).unwrap();
            for _ in 0..2 {
                assert_eq!(asked(folder.path(), "one", &mut compiled), object("one"));
            }
            assert_eq!(compiled, so_far);
        }
    }

    #[test]
    fn a_folder_into_which_others_write_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let mut compiled = 0;
        asked(folder.path(), "one", &mut compiled);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        asked(folder.path(), "one", &mut compiled);
        assert_eq!(compiled, 2);
    }
}
