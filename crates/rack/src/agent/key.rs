//! The key that a rack and its agents share.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of the code at the end of each packet.
pub(crate) const MAC_BYTES: usize = 32;

/// Why a file is refused as a key. Its display names the remedy.
#[derive(thiserror::Error)]
pub enum KeyError {
    /// The file is unreadable.
    #[error("cannot read the key {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It is a pipe, a device or a folder.
    #[error("the key {} is no plain file: write the key to a file of mode 600", path.display())]
    NoFile {
        /// What was named.
        path: PathBuf,
    },
    /// Users other than its owner may read the file.
    #[error(
        "others may read the key {} (its mode is {mode:o}): run 'chmod 600 {}', and make a new key if others use this machine",
        path.display(),
        path.display()
    )]
    ReadByOthers {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The key is too short to be secret, or longer than the limit.
    #[error(
        "the key {} has {bytes} bytes: it takes {} to {}, such as those of 'openssl rand -hex 32'",
        path.display(),
        AgentKey::BYTES_MIN,
        AgentKey::BYTES_MAX
    )]
    Length {
        /// The file.
        path: PathBuf,
        /// The key's length in bytes, without the spaces at either end; the file's, if it has too many with them.
        bytes: usize,
    },
}

headway_words::debug_is_display!(KeyError);

/// A key that a rack and its agents share. HMAC-SHA-256 under it makes a packet authentic.
#[derive(Clone)]
pub struct AgentKey(Hmac<Sha256>);

impl AgentKey {
    /// The fewest bytes of a key.
    pub const BYTES_MIN: usize = 16;
    /// The most.
    pub const BYTES_MAX: usize = 4096;

    /// Reads a key from a file that only its owner may read, of at most [`BYTES_MAX`](Self::BYTES_MAX) bytes. It strips spaces and line ends around the key.
    ///
    /// # Errors
    /// [`KeyError`], which names the remedy.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let unreadable = |source| KeyError::Unreadable {
            path: path.into(),
            source,
        };
        // To open a pipe would wait for its writer.
        if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(KeyError::NoFile { path: path.into() });
        }
        let file = File::open(path).map_err(unreadable)?;
        let found = file.metadata().map_err(unreadable)?;
        let mode = found.mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(KeyError::ReadByOthers {
                path: path.into(),
                mode,
            });
        }
        let mut bytes = Vec::new();
        let most = Self::BYTES_MAX as u64 + 1;
        file.take(most)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        let wrong = |bytes| KeyError::Length {
            path: path.into(),
            bytes,
        };
        // What was read may be another key than the whole file.
        if bytes.len() > Self::BYTES_MAX {
            return Err(wrong(found.len() as usize));
        }
        let key = bytes.trim_ascii();
        Self::new(key).ok_or_else(|| wrong(key.len()))
    }

    /// The key of these bytes; `None` unless they are [`BYTES_MIN`](Self::BYTES_MIN) to [`BYTES_MAX`](Self::BYTES_MAX).
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let is_long_enough = (Self::BYTES_MIN..=Self::BYTES_MAX).contains(&bytes.len());
        // Cannot fail: HMAC takes keys of any length.
        let keyed = Hmac::new_from_slice(bytes).ok()?;
        is_long_enough.then_some(Self(keyed))
    }

    /// The message with its code behind it.
    #[must_use]
    pub fn seal(&self, mut message: Vec<u8>) -> Vec<u8> {
        let code = self.0.clone().chain_update(&message).finalize();
        message.extend_from_slice(&code.into_bytes());
        message
    }

    /// The message of a packet whose code is right. The comparison takes the same time whatever the bytes are.
    pub(crate) fn open<'a>(&self, packet: &'a [u8]) -> Option<&'a [u8]> {
        let (message, code) = packet.split_at_checked(packet.len().checked_sub(MAC_BYTES)?)?;
        let keyed = self.0.clone().chain_update(message);
        keyed.verify_slice(code).is_ok().then_some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test case 1.
    #[test]
    fn a_pipe_is_refused_and_waits_for_nobody() {
        let folder = std::env::temp_dir().join(format!("headway-key-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("key");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let refused = AgentKey::read(&path).err().unwrap();
        assert!(refused.to_string().contains("no plain file"), "{refused}");
        let refused = AgentKey::read(&folder).err().unwrap();
        assert!(refused.to_string().contains("no plain file"), "{refused}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_code_is_hmac_sha_256() {
        let key = AgentKey::new(&[0x0b; 20]).unwrap();
        let sealed = key.seal(b"Hi There".to_vec());
        let code: String = sealed[8..]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            code,
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        );
        assert_eq!(key.open(&sealed), Some(&b"Hi There"[..]));
        for at in 0..sealed.len() {
            let mut forged = sealed.clone();
            forged[at] ^= 1;
            assert_eq!(key.open(&forged), None);
        }
        assert_eq!(key.open(&sealed[..31]), None);
        assert!(AgentKey::new(&[0; 15]).is_none() && AgentKey::new(&[0; 5000]).is_none());
    }
}
