//! docs/fibers.md says of each thread-local variable of the product whose it is: a request may run with a thread's variables of its own.

use crate::assert_tidy;
use crate::tree;

const PAGE: &str = "docs/fibers.md";

#[test]
fn every_thread_local_variable_stands_with_its_owner() {
    let page = tree::read(PAGE);
    let mut faults = Vec::new();
    for path in tree::files(&["rs"]) {
        let is_product = path.starts_with("crates/") && path.split('/').nth(2) == Some("src");
        if !is_product {
            continue;
        }
        for (line, name) in variables(&tree::read(&path)) {
            if !page.contains(&format!("`{name}`")) {
                faults.push(format!(
                    "{path}:{line}: `{name}` is a thread's, and {PAGE} does not say whose it is where a request owns a thread's state; add it to the table there"
                ));
            }
        }
    }
    assert_tidy(&faults);
}

/// The thread-local variables of a file's product part, by line. Models of loom are not in a program.
fn variables(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut is_inside = false;
    for (index, line) in text.lines().enumerate() {
        let code = line.trim_start();
        if code.starts_with("#[cfg(") && code.contains("test") && !code.contains("not(test") {
            break;
        }
        if code.starts_with("//") {
            continue;
        }
        if code.contains("thread_local!") && !code.contains("loom::") {
            is_inside = true;
        }
        let declared = code.split_once("static ").filter(|_| is_inside);
        if let Some((_, rest)) = declared {
            let name = rest.split(':').next().unwrap_or_default().trim();
            found.push((index + 1, name.to_owned()));
        }
        if is_inside && (code.starts_with('}') || code.ends_with(");")) {
            is_inside = false;
        }
    }
    found
}

#[test]
fn variables_are_found_and_those_of_tests_and_models_are_not() {
    let text = "thread_local! {\n    /// Mine.\n    static OWN: Cell<u8> = x;\n}\nthread_local!(static ONE: u8 = 1);\nstatic NOT: u8 = 1;\nloom::thread_local! {\n    static M: u8 = 1;\n}\n#[cfg(test)]\nmod tests {\n    thread_local! {\n        static T: u8 = 1;\n    }\n}\n";
    let names: Vec<String> = variables(text).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["OWN", "ONE"]);
}
