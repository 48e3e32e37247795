//! The frames of suspended requests, from copies of their stacks and the tables of this process's modules.
#![expect(
    unsafe_code,
    reason = "reads the loaded modules' tables where the loader says that they are"
)]

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::slice;
use std::sync::Arc;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use headway_fiber::StackCopy;

/// A stack is no deeper than this here: one that is damaged may have no end.
const MOST_FRAMES: usize = 256;

/// How `.eh_frame_hdr` tells where `.eh_frame` is: 4 bytes, relative to themselves (Linux Standard Base, section 10.6.2).
const RELATIVE_IN_FOUR_BYTES: u8 = 0x1b;

/// The type of a note that holds the build's identity.
const NT_GNU_BUILD_ID: u32 = 3;

/// A file of this process's code, as it is loaded.
#[derive(Clone, Debug)]
pub(super) struct LoadedModule {
    pub(super) path: String,
    /// The identity that the linker gave the file, in hexadecimal digits.
    pub(super) build_id: Option<String>,
    /// What is added to the file's addresses.
    bias: u64,
    addresses: Range<u64>,
    tables: Option<UnwindTables>,
}

/// A module's tables for unwinding, and their addresses in the file.
#[derive(Clone, Debug)]
struct UnwindTables {
    header: (u64, Arc<[u8]>),
    frames: (u64, Arc<[u8]>),
}

/// A place in the code of a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CodePlace {
    /// The module's index; `None` outside of all.
    pub(super) module: Option<usize>,
    /// The address in the module's file, or in memory outside of all.
    pub(super) address: u64,
}

/// This process's modules, and what unwinds through them.
pub(super) struct Modules {
    pub(super) loaded: Vec<LoadedModule>,
    unwinder: UnwinderX86_64<Arc<[u8]>>,
    cache: CacheX86_64,
}

impl Modules {
    /// Those that are loaded now. Their tables are copied, while the loader keeps them: a module may be closed at any time.
    pub(super) fn loaded() -> Self {
        let mut loaded: Vec<LoadedModule> = Vec::new();
        // SAFETY: calls `add` for each module, with the list.
        unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut loaded).cast()) };
        if let (Some(program), Ok(path)) = (loaded.first_mut(), std::env::current_exe()) {
            program.path = path.display().to_string();
        }
        let mut unwinder = UnwinderX86_64::new();
        for module in &loaded {
            if let Some(tables) = &module.tables {
                unwinder.add_module(module.for_unwinder(tables));
            }
        }
        Self {
            loaded,
            unwinder,
            cache: CacheX86_64::new(),
        }
    }

    /// The frames of a suspended request, the innermost first: where each goes on.
    pub(super) fn frames(&mut self, stack: &StackCopy) -> Vec<CodePlace> {
        let registers = UnwindRegsX86_64::new(
            stack.instruction_pointer(),
            stack.stack_pointer(),
            stack.frame_pointer(),
        );
        let mut read = |address| stack.word_at(address).ok_or(());
        let mut walk = self.unwinder.iter_frames(
            stack.instruction_pointer(),
            registers,
            &mut self.cache,
            &mut read,
        );
        let mut addresses = Vec::new();
        // The walk ends where the stack does, at the frame below the request's first, whose caller is elsewhere: that is an error for it.
        while addresses.len() < MOST_FRAMES
            && let Ok(Some(frame)) = walk.next()
        {
            addresses.push(match frame {
                // The instruction before the one at which a caller goes on is the call.
                FrameAddress::ReturnAddress(at) => at.get() - 1,
                FrameAddress::InstructionPointer(at) => at - 1,
            });
        }
        addresses.into_iter().map(|at| self.place(at)).collect()
    }

    fn place(&self, at: u64) -> CodePlace {
        let module = self
            .loaded
            .iter()
            .position(|module| module.addresses.contains(&at));
        CodePlace {
            module,
            address: at - module.map_or(0, |index| self.loaded[index].bias),
        }
    }
}

impl LoadedModule {
    fn for_unwinder(&self, tables: &UnwindTables) -> Module<Arc<[u8]>> {
        let range = |(at, bytes): &(u64, Arc<[u8]>)| *at..*at + bytes.len() as u64;
        let sections = ExplicitModuleSectionInfo {
            eh_frame_hdr_svma: Some(range(&tables.header)),
            eh_frame_hdr: Some(Arc::clone(&tables.header.1)),
            eh_frame_svma: Some(range(&tables.frames)),
            eh_frame: Some(Arc::clone(&tables.frames.1)),
            ..ExplicitModuleSectionInfo::default()
        };
        Module::new(
            self.path.clone(),
            self.addresses.clone(),
            self.bias,
            sections,
        )
    }
}

/// Adds a module to the list.
///
/// # Safety
/// Called by the loader, with a module of this process's, which stays during the call, and the list.
unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, list: *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    let (info, list) = unsafe { (&*info, &mut *list.cast::<Vec<LoadedModule>>()) };
    // SAFETY: as many headers as it says.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let path = if info.dlpi_name.is_null() {
        String::new()
    } else {
        // SAFETY: the module's name.
        unsafe { CStr::from_ptr(info.dlpi_name) }
            .to_string_lossy()
            .into_owned()
    };
    let segments = || {
        headers
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD)
    };
    let start = segments().map(|segment| segment.p_vaddr).min();
    let end = segments()
        .map(|segment| segment.p_vaddr + segment.p_memsz)
        .max();
    let (Some(start), Some(end)) = (start, end) else {
        return 0;
    };
    let bias = info.dlpi_addr;
    let of_type = |wanted| headers.iter().filter(move |header| header.p_type == wanted);
    list.push(LoadedModule {
        path,
        bias,
        addresses: bias.wrapping_add(start)..bias.wrapping_add(end),
        // SAFETY: segments of a module that is loaded.
        build_id: of_type(libc::PT_NOTE)
            .find_map(|notes| build_id(unsafe { bytes(bias, notes.p_vaddr, notes.p_memsz) })),
        tables: of_type(libc::PT_GNU_EH_FRAME).next().and_then(|header| {
            // SAFETY: as above.
            let header_bytes = unsafe { bytes(bias, header.p_vaddr, header.p_memsz) };
            let frames = frames_at(header.p_vaddr, header_bytes)?;
            let segment = segments().find(|segment| {
                (segment.p_vaddr..segment.p_vaddr + segment.p_filesz).contains(&frames)
            })?;
            let end = segment.p_vaddr + segment.p_filesz;
            // SAFETY: as above, to the end of its segment: the header says where each entry is.
            let frames_bytes = unsafe { bytes(bias, frames, end - frames) };
            Some(UnwindTables {
                header: (header.p_vaddr, header_bytes.into()),
                frames: (frames, frames_bytes.into()),
            })
        }),
    });
    0
}

/// Bytes of a module.
///
/// # Safety
/// They belong to a segment of a module that stays loaded while they are used.
unsafe fn bytes<'a>(bias: u64, address: u64, count: u64) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { slice::from_raw_parts(bias.wrapping_add(address) as *const u8, count as usize) }
}

/// The address of `.eh_frame`, by its header at this address.
fn frames_at(header_at: u64, header: &[u8]) -> Option<u64> {
    let [1, RELATIVE_IN_FOUR_BYTES, _, _, distance @ ..] = header else {
        return None;
    };
    let distance = i32::from_ne_bytes(distance.first_chunk().copied()?);
    header_at
        .checked_add(4)?
        .checked_add_signed(distance.into())
}

/// The build's identity in a segment of notes: each has three lengths, a name and a description, both in whole words.
fn build_id(mut notes: &[u8]) -> Option<String> {
    loop {
        let word = |index: usize| {
            let bytes = notes.get(4 * index..4 * index + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?))
        };
        let (name_bytes, bytes, kind) = (word(0)? as usize, word(1)? as usize, word(2)?);
        let name = notes.get(12..12 + name_bytes)?;
        let at = 12 + name_bytes.next_multiple_of(4);
        let description = notes.get(at..at + bytes)?;
        if kind == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return Some(
                description
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect(),
            );
        }
        notes = notes.get(at + bytes.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_a_module_whose_tables_are_found() {
        let modules = Modules::loaded();
        let here = the_program_is_a_module_whose_tables_are_found as fn() as usize as u64;
        let place = modules.place(here);
        let module = &modules.loaded[place.module.expect("this code is in a module")];
        assert_eq!(
            module.path,
            std::env::current_exe().unwrap().display().to_string()
        );
        assert!(module.tables.is_some(), "{:?}", module.path);
        assert_eq!(modules.place(0).module, None);
    }

    #[test]
    fn an_identity_is_read_behind_other_notes() {
        let note = |kind: u32, name: &[u8], description: &[u8]| {
            let mut bytes = Vec::new();
            for word in [name.len() as u32, description.len() as u32, kind] {
                bytes.extend(word.to_ne_bytes());
            }
            for part in [name, description] {
                bytes.extend(part);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            bytes
        };
        let other = note(1, b"stapsdt\0", &[9, 9, 9]);
        let id = note(NT_GNU_BUILD_ID, b"GNU\0", &[0xab, 0x01]);
        assert_eq!(
            build_id(&[other.clone(), id].concat()).as_deref(),
            Some("ab01")
        );
        assert_eq!(build_id(&other), None);
        assert_eq!(build_id(&[4, 0, 0]), None);
    }
}
