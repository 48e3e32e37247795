//! Entries in the syntax of bmv2's command line.

use crate::entries::Entry;

/// Lines for `simple_switch_CLI`, one per entry. The register `generation` selects the copy of the tables in use.
#[must_use]
pub fn simple_switch_commands(entries: &[Entry]) -> String {
    let mut lines = String::new();
    for Entry {
        table,
        keys,
        action,
        params,
    } in entries
    {
        let params = words(params);
        let line = if keys.is_empty() {
            format!("table_set_default {table} {action}{params}\n")
        } else {
            format!("table_add {table} {action}{} =>{params}\n", words(keys))
        };
        lines.push_str(&line);
    }
    lines
}

fn words(values: &[u64]) -> String {
    values.iter().map(|value| format!(" {value}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_line() {
        let entry = Entry {
            table: "limits",
            keys: vec![1, 3],
            action: "set_limits",
            params: vec![40, 80, 4],
        };
        let default = Entry {
            table: "types",
            keys: Vec::new(),
            action: "set_class",
            params: vec![2],
        };
        assert_eq!(
            simple_switch_commands(&[entry, default]),
            "table_add limits set_limits 1 3 => 40 80 4\ntable_set_default types set_class 2\n"
        );
    }
}
