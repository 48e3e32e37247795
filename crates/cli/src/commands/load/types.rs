//! The type in the wire header for each class.

use crate::error::{nearest, usage};
use anyhow::Result;

/// The types of `classes`, by `--map CLASS=TYPE,…`.
pub(super) fn mapped(map: &[String], classes: &[&str]) -> Result<Vec<u8>> {
    let mut types = vec![None; classes.len()];
    for entry in map {
        let (class, wire_type) = pair(entry)?;
        let index = index(class, classes)?;
        if types[index].replace(wire_type).is_some() {
            return Err(usage("--map", format!("class '{class}' has two types")));
        }
    }
    let typed = types.into_iter().enumerate();
    typed
        .map(|(index, wire_type)| {
            wire_type.ok_or_else(|| {
                let class = classes[index];
                usage(
                    "--map",
                    format!("class '{class}' has no type: add {class}=N"),
                )
            })
        })
        .collect()
}

fn pair(entry: &str) -> Result<(&str, u8)> {
    let wrong = || {
        let text = format!("'{entry}' is not CLASS=TYPE, with a type of 0 to 255 such as lookup=0");
        usage("--map", text)
    };
    let (class, number) = entry.rsplit_once('=').ok_or_else(wrong)?;
    Ok((class.trim(), number.trim().parse().map_err(|_| wrong())?))
}

/// The index of the class of that name.
pub(super) fn index(class: &str, classes: &[&str]) -> Result<usize> {
    let found = classes.iter().position(|&known| known == class);
    found.ok_or_else(|| {
        let hint = match nearest(class, classes) {
            Some(known) => format!("did you mean '{known}'?"),
            None => format!("there are {}", classes.join(", ")),
        };
        usage(
            "--map",
            format!("the workload has no class '{class}'; {hint}"),
        )
    })
}

/// Types and classes in a line, in the format of `serve`: 0 short, 1 long.
pub(crate) fn line(types: &[u8], classes: &[impl AsRef<str>]) -> String {
    let mut pairs: Vec<(u8, &str)> = types
        .iter()
        .copied()
        .zip(classes.iter().map(AsRef::as_ref))
        .collect();
    pairs.sort_by_key(|&(wire_type, _)| wire_type);
    let shown = pairs
        .iter()
        .map(|(wire_type, class)| format!("{wire_type} {class}"));
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(map: &[&str]) -> Result<Vec<u8>> {
        let map: Vec<String> = map.iter().map(|&entry| entry.to_owned()).collect();
        mapped(&map, &["lookup", "search"])
    }

    #[test]
    fn every_class_has_the_type_it_is_given() {
        assert_eq!(given(&["search=1", "lookup=200"]).unwrap(), [200, 1]);
        for (map, part) in [
            (&["lookup=0"][..], "search=N"),
            (&["lookup=0", "lookup=1", "search=1"], "two types"),
            (&["lokup=0", "search=1"], "did you mean 'lookup'"),
            (&["lookup=256", "search=1"], "0 to 255"),
            (&["lookup", "search=1"], "CLASS=TYPE"),
        ] {
            let error = given(map).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn they_are_told_in_the_order_of_types() {
        assert_eq!(line(&[4, 0], &["search", "lookup"]), "0 lookup, 4 search");
    }
}
