//! A property of every file of a key. `cargo test` checks it on the corpus, and the fuzz target includes this file.

use headway_rack::agent::AgentKey;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

/// A file is a key if the bytes between its spaces are neither too few nor too many; else an error that names the file.
pub(crate) fn key_file(data: &[u8]) {
    let path = std::env::temp_dir().join(format!("headway-key-file-{}", std::process::id()));
    fs::write(&path, data).expect("a temporary file");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("its own file");
    let key = AgentKey::read(&path);
    fs::remove_file(&path).expect("it is there");
    let length = data.trim_ascii().len();
    let is_right = (AgentKey::BYTES_MIN..=AgentKey::BYTES_MAX).contains(&length);
    match key {
        Ok(_) => assert!(is_right, "{length} bytes"),
        Err(error) => {
            let is_cut = data.len() > AgentKey::BYTES_MAX;
            assert!(!is_right || is_cut, "{error}");
            assert!(error.to_string().contains("headway-key-file"), "{error}");
        }
    }
}
