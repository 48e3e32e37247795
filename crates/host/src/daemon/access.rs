//! Who may connect to the daemon's socket: its own user, root, and the users and groups that the settings name.
#![expect(
    unsafe_code,
    reason = "an access list and the user's number have no wrappers"
)]

use super::settings::AppRule;
use std::ffi::{CStr, CString};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The attribute of a file's access list, acl(5), and its format's version.
const ATTRIBUTE: &CStr = c"system.posix_acl_access";
const VERSION: u32 = 2;

/// Kinds of entries (`<linux/posix_acl.h>`).
const OWNER: u16 = 0x01;
const USER: u16 = 0x02;
const OWNERS_GROUP: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

const READ_WRITE: u16 = 6;
const NOTHING: u16 = 0;
/// The entry names nobody.
const NOBODY: u32 = u32::MAX;

/// The user as whom the daemon acts.
pub(super) fn own_uid() -> u32 {
    // SAFETY: it takes and changes nothing.
    unsafe { libc::geteuid() }
}

/// Lets those connect that the rules name, and nobody else. Where the file system has no access lists everybody may connect, and the daemon, which looks at
/// who it is, hangs up.
///
/// # Errors
/// The system's.
pub(super) fn open_to(path: &Path, rules: &[AppRule]) -> io::Result<()> {
    let named = |of: fn(&AppRule) -> &Vec<u32>| {
        let mut named: Vec<u32> = rules.iter().flat_map(of).copied().collect();
        named.sort_unstable();
        named.dedup();
        named
    };
    let (users, groups) = (named(|rule| &rule.users), named(|rule| &rule.groups));
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    if users.is_empty() && groups.is_empty() {
        return set_list(path, &list(&[], &[])).or(Ok(()));
    }
    set_list(path, &list(&users, &groups))
        .or_else(|_| fs::set_permissions(path, Permissions::from_mode(0o666)))
}

/// An access list, its entries in the order that the kernel asks for.
fn list(users: &[u32], groups: &[u32]) -> Vec<u8> {
    let of = |kind: u16, ids: &[u32]| ids.iter().map(move |&id| (kind, READ_WRITE, id)).collect();
    let (users, groups): (Vec<_>, Vec<_>) = (of(USER, users), of(GROUP, groups));
    let is_named = !users.is_empty() || !groups.is_empty();
    let entries = [(OWNER, READ_WRITE, NOBODY)]
        .into_iter()
        .chain(users)
        .chain([(OWNERS_GROUP, NOTHING, NOBODY)])
        .chain(groups)
        .chain(is_named.then_some((MASK, READ_WRITE, NOBODY)))
        .chain([(OTHER, NOTHING, NOBODY)]);
    let mut bytes = VERSION.to_le_bytes().to_vec();
    for (kind, rights, id) in entries {
        bytes.extend(kind.to_le_bytes());
        bytes.extend(rights.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

fn set_list(path: &Path, list: &[u8]) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: both names end with a zero, and the list has this length; all outlive the call.
    let set = unsafe {
        libc::lsetxattr(
            path.as_ptr(),
            ATTRIBUTE.as_ptr(),
            list.as_ptr().cast(),
            list.len(),
            0,
        )
    };
    match set {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
