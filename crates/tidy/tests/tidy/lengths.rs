//! Files are short enough to be read in one sitting, and functions to be seen at one glance.

use crate::assert_tidy;
use crate::tree;

const FILE_LINES: usize = 600;
const FUNCTION_LINES: usize = 70;

#[test]
fn no_source_file_is_too_long() {
    let faults: Vec<String> = tree::files(&["rs", "c", "h", "cpp", "hpp", "cc", "py", "sh"])
        .into_iter()
        .filter_map(|path| {
            let lines = tree::read(&path).lines().count();
            let what = format!("{lines} lines, and {FILE_LINES} at most; part it by its concerns");
            (lines > FILE_LINES).then(|| format!("{path}:{FILE_LINES}: {what}"))
        })
        .collect();
    assert_tidy(&faults);
}

#[test]
fn no_function_is_too_long() {
    let faults: Vec<String> = tree::files(&["rs"])
        .into_iter()
        .filter(|path| !is_test(path))
        .flat_map(|path| {
            let text = tree::read(&path);
            let long = functions(&text).into_iter().filter(Function::is_too_long);
            long.map(|Function { line, name, lines }| {
                format!("{path}:{line}: `{name}` has {lines} lines, and {FUNCTION_LINES} at most; give each of its concerns a function")
            })
            .collect::<Vec<_>>()
        })
        .collect();
    assert_tidy(&faults);
}

fn is_test(path: &str) -> bool {
    path.split('/')
        .any(|part| ["tests", "benches", "tests.rs"].contains(&part))
}

#[derive(Debug, PartialEq)]
struct Function<'a> {
    line: usize,
    name: &'a str,
    /// From the line of its name to that of its last brace.
    lines: usize,
}

impl Function<'_> {
    fn is_too_long(&self) -> bool {
        self.lines > FUNCTION_LINES
    }
}

/// The functions of a formatted file that are more than a line, without its tests and those in assembly: the last brace of each stands as far
/// from the margin as its `fn`.
fn functions(text: &str) -> Vec<Function<'_>> {
    let product = text.split("#[cfg(test)]\nmod tests").next();
    let lines: Vec<&str> = product.unwrap_or_default().lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let Some(name) = declared(code) else { continue };
        let is_assembly = at > 0 && lines[at - 1].trim() == "#[unsafe(naked)]";
        if is_assembly || code.ends_with([';', '}']) {
            continue;
        }
        let margin = &line[..line.len() - code.len()];
        let ends = |line: &&str| {
            let rest = line.strip_prefix(margin).unwrap_or_default();
            rest == "}" || (rest.ends_with(';') && !rest.starts_with(' '))
        };
        let body = lines[at..].iter().position(ends);
        found.push(Function {
            line: at + 1,
            name,
            lines: body.map_or(lines.len() - at, |last| last + 1),
        });
    }
    found
}

/// The name of the function that a line declares.
fn declared(code: &str) -> Option<&str> {
    let (before, after) = match code.strip_prefix("fn ") {
        Some(after) => ("", after),
        None => code.split_once(" fn ")?,
    };
    let is_qualifier = |word: &str| {
        word.starts_with("pub")
            || word.starts_with("in ")
            || word.starts_with('"')
            || ["const", "async", "unsafe", "extern"].contains(&word)
            || word.ends_with(')')
    };
    if !before.split_whitespace().all(is_qualifier) {
        return None;
    }
    after
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
}

#[test]
fn functions_are_measured_to_their_last_brace() {
    let text = "pub(crate) const fn a() {\n    if b() {\n    }\n}\nimpl C {\n    fn d(&self) -> E {\n        F {\n        }\n    }\n    fn g(&self);\n    fn h(\n        i: J,\n    );\n    fn k() {}\n}\n#[unsafe(naked)]\nunsafe extern \"C\" fn l() {\n}\n// a line of fn m() {\n#[cfg(test)]\nmod tests {\n    fn n() {\n    }\n}\n";
    let is = |line: usize, name: &'static str, lines: usize| Function { line, name, lines };
    let expected = [is(1, "a", 4), is(6, "d", 4), is(11, "h", 3)];
    assert_eq!(functions(text), expected);
    let lines = "    x();\n".repeat(FUNCTION_LINES - 2);
    let most = format!("fn a() {{\n{lines}}}\n");
    assert!(!functions(&most)[0].is_too_long());
    let more = format!("fn a() {{\n{lines}    x();\n}}\n");
    assert!(functions(&more)[0].is_too_long());
}
