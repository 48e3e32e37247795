//! The bodies of requests after the wire header: files, in which `{key}` stands for a drawn key.

use super::types;
use crate::error::usage;
use anyhow::Result;
use headway_kv::KvWorkload;
use headway_load::{Body, MAX_BODY_BYTES};
use std::sync::Arc;

const FLAG: &str = "--body-file";

/// The bodies of `classes`, from `[CLASS=]FILE`. With `keys`, which draws numbers below its second part, the files are templates.
pub(super) fn of_files(
    files: &[String],
    classes: &[&str],
    keys: Option<(KvWorkload, u64)>,
) -> Result<Body> {
    let count = keys.as_ref().map(|&(_, count)| count);
    let mut bodies: Vec<Option<Template>> = classes.iter().map(|_| None).collect();
    for given in files {
        let (class, path) = which(given, classes)?;
        let template = read(path, count)?;
        let places = match class {
            Some(index) => &mut bodies[index..=index],
            None => &mut bodies[..],
        };
        for place in places {
            if place.replace(template.clone()).is_some() {
                return Err(usage(
                    FLAG,
                    format!("'{given}': its class has a body already"),
                ));
            }
        }
    }
    let bodies = bodies.into_iter().zip(classes).map(|(body, class)| {
        body.ok_or_else(|| {
            usage(
                FLAG,
                format!("class '{class}' has no body: add {class}=FILE"),
            )
        })
    });
    let bodies: Vec<Template> = bodies.collect::<Result<_>>()?;
    if count.is_some() && !bodies.iter().any(Template::has_key) {
        return Err(usage(
            "--keys",
            "no body has a place for a key: write {key}, or {key:12} for twelve digits",
        ));
    }
    // Without keys a file has no placeholder.
    let numbers = keys.map_or_else(|| KvWorkload::new(1, 0), |(numbers, _)| numbers);
    Ok(Arc::new(move |class, index, room: &mut [u8]| {
        bodies[usize::from(class)].write(numbers.key_number(index), room)
    }))
}

/// The class, where one is named, and the path.
fn which<'a>(given: &'a str, classes: &[&str]) -> Result<(Option<usize>, &'a str)> {
    match given.split_once('=') {
        Some((class, path)) if classes.contains(&class) => {
            Ok((Some(types::index(class, classes)?), path))
        }
        Some((class, _)) if !std::path::Path::new(given).exists() => {
            let known = classes.join(", ");
            Err(usage(
                FLAG,
                format!(
                    "'{class}' is no class of the workload ({known}), and there is no file {given}"
                ),
            ))
        }
        _ => Ok((None, given)),
    }
}

fn read(path: &str, keys: Option<u64>) -> Result<Template> {
    let refused = |why: String| usage(FLAG, format!("{path}: {why}"));
    let bytes = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
    let template = match keys {
        Some(_) => Template::parse(&bytes).map_err(refused)?,
        None => Template(vec![TemplatePiece::Bytes(bytes)]),
    };
    let longest = template.longest(keys.unwrap_or(1));
    if longest > MAX_BODY_BYTES {
        let why =
            format!("a request has at most {MAX_BODY_BYTES} bytes after its header, not {longest}");
        return Err(refused(why));
    }
    Ok(template)
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Template(Vec<TemplatePiece>);

#[derive(Clone, PartialEq, Eq, Debug)]
enum TemplatePiece {
    Bytes(Vec<u8>),
    /// The key's number, padded with zeros to `digits`.
    Key {
        digits: usize,
    },
}

/// Digits of the largest number.
const DIGITS_MAX: usize = 20;

impl Template {
    /// Bytes with `{key}` or `{key:DIGITS}` among them; all other bytes stand for themselves.
    fn parse(mut bytes: &[u8]) -> Result<Self, String> {
        const OPEN: &[u8] = b"{key";
        let mut pieces = Vec::new();
        while let Some(at) = find(bytes, OPEN) {
            let rest = &bytes[at + OPEN.len()..];
            let close = rest.iter().position(|&byte| byte == b'}');
            let digits = match close.map(|close| (&rest[..close], close)) {
                Some((b"", _)) => Some(0),
                Some(([b':', digits @ ..], _)) => std::str::from_utf8(digits)
                    .ok()
                    .and_then(|digits| digits.parse().ok())
                    .filter(|digits| (1..=DIGITS_MAX).contains(digits)),
                _ => None,
            };
            let (Some(digits), Some(close)) = (digits, close) else {
                return Err(format!(
                    "a key is written {{key}} or {{key:DIGITS}}, with 1 to {DIGITS_MAX} digits"
                ));
            };
            pieces.push(TemplatePiece::Bytes(bytes[..at].to_vec()));
            pieces.push(TemplatePiece::Key { digits });
            bytes = &rest[close + 1..];
        }
        pieces.push(TemplatePiece::Bytes(bytes.to_vec()));
        Ok(Self(pieces))
    }

    fn has_key(&self) -> bool {
        let mut pieces = self.0.iter();
        pieces.any(|piece| matches!(piece, TemplatePiece::Key { .. }))
    }

    /// The most bytes it may have with keys below `keys`.
    fn longest(&self, keys: u64) -> usize {
        let needed = (keys - 1).checked_ilog10().unwrap_or(0) as usize + 1;
        self.0
            .iter()
            .map(|piece: &TemplatePiece| match piece {
                TemplatePiece::Bytes(bytes) => bytes.len(),
                TemplatePiece::Key { digits } => needed.max(*digits),
            })
            .sum()
    }

    /// Writes the body with this key and returns its length. Allocates nothing.
    fn write(&self, key: u64, room: &mut [u8]) -> usize {
        let mut end = 0;
        for piece in &self.0 {
            end += match piece {
                TemplatePiece::Bytes(bytes) => {
                    room[end..end + bytes.len()].copy_from_slice(bytes);
                    bytes.len()
                }
                TemplatePiece::Key { digits } => decimal(key, *digits, &mut room[end..]),
            };
        }
        end
    }
}

/// Writes a number with at least `at_least` digits, and returns how many it has.
fn decimal(mut number: u64, at_least: usize, room: &mut [u8]) -> usize {
    let mut text = [b'0'; DIGITS_MAX];
    let mut from = DIGITS_MAX;
    while number > 0 {
        from -= 1;
        text[from] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    let from = from.min(DIGITS_MAX - at_least.max(1));
    let digits = &text[from..];
    room[..digits.len()].copy_from_slice(digits);
    digits.len()
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(template: &str, key: u64) -> String {
        let mut room = [0; 64];
        let len = Template::parse(template.as_bytes())
            .unwrap()
            .write(key, &mut room);
        String::from_utf8(room[..len].to_vec()).unwrap()
    }

    #[test]
    fn keys_stand_where_the_template_says() {
        assert_eq!(written("get user:{key}\n", 0), "get user:0\n");
        assert_eq!(written("{key}{key:4}{k}", 123), "1230123{k}");
        assert_eq!(written("{key:2}", 12_345), "12345");
        assert_eq!(written("{key}", u64::MAX), u64::MAX.to_string());
        for wrong in ["{key", "{key:}", "{key:0}", "{key:21}", "{keys}"] {
            assert!(Template::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_longest_body_has_the_largest_key() {
        for (text, keys) in [
            ("a{key}b", 1),
            ("{key}", 10),
            ("{key}", 11),
            ("{key:5}{key}", 1_000),
        ] {
            let template = Template::parse(text.as_bytes()).unwrap();
            let longest = template.write(keys - 1, &mut [0; 64]);
            assert_eq!(template.longest(keys), longest, "{text} below {keys}");
        }
    }

    #[test]
    fn files_are_for_one_class_or_for_all_that_have_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (get, scan) = (file("get", "g{key}"), file("scan", "s"));
        let classes = ["get", "scan"];
        let keys = || Some((KvWorkload::new(10, 1), 10));
        let of = |files: &[String], keys| of_files(files, &classes, keys);
        let body = of(&[format!("get={get}"), format!("scan={scan}")], keys()).unwrap();
        let mut room = [0; 8];
        assert_eq!((body(0, 3, &mut room), room[0]), (2, b'g'));
        assert!(room[1].is_ascii_digit());
        assert_eq!((body(1, 3, &mut room), room[0]), (1, b's'));
        // Without keys a template is what it says.
        let body = of(std::slice::from_ref(&get), None).unwrap();
        assert_eq!(body(1, 3, &mut room), 6);
        assert_eq!(&room[..6], b"g{key}");
        for (files, keys, part) in [
            (vec![format!("get={get}")], None, "scan=FILE"),
            (vec![get.clone(), format!("scan={scan}")], None, "already"),
            (vec![scan], keys(), "{key}"),
            (vec![format!("gt={get}")], None, "no class"),
            (vec!["/nowhere".to_owned()], None, "/nowhere"),
        ] {
            let Err(error) = of(&files, keys) else {
                panic!("{files:?} are refused");
            };
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
