//! The stacks of a server's suspended requests as text, with the names that the files of its code know.
//!
//! The names are found here and not in the server, which goes on meanwhile: the tables of a large program take time and memory.

use addr2line::{Loader, demangle_auto};
use headway_words::escaped;
use headway_workload::duration;
use object::read::{Object, ReadCache};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Adds to each frame of the server's answer the functions that it is in, the innermost of those inlined into one another first, each with its place in the source, where
/// they are known.
pub(super) fn with_names(mut stacks: Value) -> Value {
    let pid = stacks["pid"].as_u64().unwrap_or_default();
    let modules = stacks["modules"].take();
    let modules = modules.as_array().map_or(&[][..], Vec::as_slice);
    let mut names = Names::of(modules, pid);
    let requests = stacks["requests"].as_array_mut().into_iter().flatten();
    let frames = requests.filter_map(|request| request["frames"].as_array_mut());
    for frame in frames.flatten() {
        let (module, address) = (frame["module"].as_u64(), frame["address"].as_u64());
        let module = module.map(|index| index as usize);
        frame["functions"] = match (module, address) {
            (Some(module), Some(address)) => names.functions(module, address),
            _ => json!([]),
        };
        let file = module.and_then(|index| modules.get(index));
        frame["module"] = file.map_or(Value::Null, |file| file["path"].clone());
    }
    if let Some(fields) = stacks.as_object_mut() {
        fields.remove("modules");
    }
    stacks
}

/// A paragraph for each request.
pub(super) fn text(stacks: &Value) -> String {
    let requests = stacks["requests"].as_array().map_or(&[][..], Vec::as_slice);
    let mut paragraphs: Vec<_> = requests.iter().map(request).collect();
    if paragraphs.is_empty() {
        paragraphs.push("no request is suspended".to_owned());
    }
    match stacks["at_home"].as_u64() {
        None | Some(0) => {}
        Some(others) => paragraphs.push(format!(
            "{others} more, which were interrupted, run in their own threads, headway-donor: a debugger shows them"
        )),
    }
    paragraphs.join("\n\n")
}

fn request(request: &Value) -> String {
    let word = |field: &str| match &request[field] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let time = |field: &str| duration::format(request[field].as_u64().unwrap_or_default());
    let mut text = format!(
        "{}, request {}, begun by worker {}: suspended for {}, after {} of work",
        word("class"),
        word("request"),
        word("worker"),
        time("suspended_ns"),
        time("ran_ns"),
    );
    for frame in request["frames"].as_array().into_iter().flatten() {
        text += &frame_lines(frame);
    }
    if request["cut"].as_bool() == Some(true) {
        text += "\n  … and more: the stack is deeper than what is copied";
    }
    text
}

fn frame_lines(frame: &Value) -> String {
    let functions = frame["functions"].as_array().map_or(&[][..], Vec::as_slice);
    if functions.is_empty() {
        let module = frame["module"].as_str().unwrap_or("?");
        let address = frame["address"].as_u64().unwrap_or_default();
        return format!("\n  {module}+{address:#x}");
    }
    let line = |function: &Value| {
        let name = function["name"].as_str().unwrap_or("?");
        match function["at"].as_str() {
            Some(at) => format!("\n  {name} ({at})"),
            None => format!("\n  {name}"),
        }
    };
    functions.iter().map(line).collect()
}

/// The names of functions in the files of a process's code. A file is read when it is first asked.
struct Names<'m> {
    modules: &'m [Value],
    pid: u64,
    loaded: HashMap<usize, Option<Loader>>,
}

impl<'m> Names<'m> {
    fn of(modules: &'m [Value], pid: u64) -> Self {
        Self {
            modules,
            pid,
            loaded: HashMap::new(),
        }
    }

    fn functions(&mut self, module: usize, address: u64) -> Value {
        let (modules, pid) = (self.modules, self.pid);
        let loader = self
            .loaded
            .entry(module)
            .or_insert_with(|| load(modules.get(module)?, pid));
        let Some(loader) = loader else {
            return json!([]);
        };
        let mut functions = Vec::new();
        if let Ok(mut frames) = loader.find_frames(address) {
            while let Ok(Some(frame)) = frames.next() {
                let name = frame
                    .function
                    .as_ref()
                    .and_then(|name| name.demangle().ok());
                let at = frame
                    .location
                    .as_ref()
                    .and_then(|at| Some(format!("{}:{}", escaped(at.file?), at.line?)));
                if let Some(name) = name {
                    functions.push(json!({ "name": escaped(&name), "at": at }));
                }
            }
        }
        if functions.is_empty()
            && let Some(symbol) = loader.find_symbol(address)
        {
            let name = demangle_auto(Cow::Borrowed(symbol), None);
            functions.push(json!({ "name": escaped(&name), "at": null }));
        }
        json!(functions)
    }
}

/// The module's file, if it is still the one that the process loaded.
fn load(module: &Value, pid: u64) -> Option<Loader> {
    let path = module["path"].as_str()?;
    let seen_by_process = PathBuf::from(format!("/proc/{pid}/root{path}"));
    let wanted = module["build_id"].as_str();
    [seen_by_process.as_path(), Path::new(path)]
        .into_iter()
        .filter(|path| wanted.is_none() || build_id(path).as_deref() == wanted)
        .find_map(|path| Loader::new(path).ok())
}

/// The identity that the linker gave a file, in hexadecimal digits.
fn build_id(path: &Path) -> Option<String> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let id = file.build_id().ok()??;
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
}
