//! What `headway ctl stacks` is answered: where the suspended requests of a server stand.
//!
//! The server tells addresses in files. Who asks finds the names: that takes the files' tables, which may be large.

use serde_json::{Value, json};

use super::unwind::{LoadedModule, Modules};
use crate::server::observer::Observer;

/// A server's suspended requests and their frames.
///
/// # Errors
/// In a sentence: the kernel refuses.
pub(super) fn stacks(observer: &Observer) -> Result<Value, String> {
    let mut modules = Modules::loaded();
    let mut requests = Vec::new();
    let names = observer.class_names();
    let at_home = observer.suspended(|request, stack| {
        let frames = modules.frames(stack).into_iter();
        let frames = frames
            .map(|frame| json!({ "module": frame.module, "address": frame.address }))
            .collect::<Vec<_>>();
        requests.push(json!({
            "request": request.request,
            "class": names.get(request.class),
            "worker": request.worker,
            "suspended_ns": request.suspended_ns,
            "ran_ns": request.ran_ns,
            "cut": stack.is_cut(),
            "frames": frames,
        }));
    });
    let at_home = at_home.map_err(|error| {
        format!(
            "the system does not let the server copy its own stacks (process_vm_readv): {error}"
        )
    })?;
    let module =
        |module: &LoadedModule| json!({ "path": module.path, "build_id": module.build_id });
    Ok(json!({
        "pid": std::process::id(),
        "requests": requests,
        "at_home": at_home,
        "modules": modules.loaded.iter().map(module).collect::<Vec<_>>(),
    }))
}
