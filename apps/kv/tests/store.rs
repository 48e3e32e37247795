//! What is stored is found: now, after a restart, and by a SCAN in order.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use headway_kv::{Checksum, Kv, KvError, Request, Store, key_of, read_get, read_scan};
use headway_net::header::Status;
use proptest::prelude::*;

fn ask(kv: &Kv, request: Request<'_>) -> Vec<u8> {
    let (mut body, mut room) = ([0; 2048], [0; 2048]);
    let len = request.encode(&mut body).unwrap();
    let len = kv.answer(&body[..len], &mut room).unwrap();
    room[..len].to_vec()
}

fn get(kv: &Kv, key: &[u8]) -> Option<Vec<u8>> {
    let reply = ask(kv, Request::Get { key });
    read_get(&reply).unwrap().map(<[u8]>::to_vec)
}

fn scan(kv: &Kv, first: &[u8], count: u32) -> (u32, u64, Vec<u8>) {
    let reply = ask(kv, Request::Scan { first, count });
    let scan = read_scan(&reply).unwrap();
    (scan.entries, scan.checksum, scan.last.to_vec())
}

#[test]
fn a_filled_store_has_its_keys_and_the_seed_decides_their_values() {
    let filled = |seed| Kv::filled(1_000, 100, seed).unwrap();
    let (one, same, other) = (filled(1), filled(1), filled(2));
    assert_eq!(one.store().len().unwrap(), 1_000);
    assert_eq!(get(&one, &key_of(999)).unwrap().len(), 100);
    assert_eq!(get(&one, &key_of(1_000)), None);
    let everything = |kv| scan(kv, b"", u32::MAX);
    assert_eq!(everything(&one), everything(&same));
    assert_ne!(everything(&one), everything(&other));
}

#[test]
fn what_was_written_is_found_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Kv::new(Store::open(folder.path()).unwrap());
    let before = open();
    before.store().fill(500, 50, 7).unwrap();
    ask(
        &before,
        Request::Put {
            key: b"extra",
            value: b"kept",
        },
    );
    ask(&before, Request::Delete { key: &key_of(3) });
    let all = scan(&before, b"", u32::MAX);
    drop(before);
    let after = open();
    assert_eq!(get(&after, b"extra").unwrap(), b"kept");
    assert_eq!(get(&after, &key_of(3)), None);
    assert_eq!(scan(&after, b"", u32::MAX), all);
    assert_eq!(all.0, 500);
}

#[test]
fn a_store_that_is_complete_or_of_others_is_served_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let open = |keys| Kv::open_filled(folder.path(), keys, 10, 1);
    let kv = open(Some(200)).unwrap();
    ask(&kv, Request::Delete { key: &key_of(3) });
    drop(kv);
    assert_eq!(open(None).unwrap().store().len().unwrap(), 199);
    assert_eq!(open(Some(200)).unwrap().store().len().unwrap(), 199);
    let error = open(Some(300)).unwrap_err();
    assert!(
        matches!(
            error,
            KvError::OtherKeys {
                found: 200,
                asked: 300,
                ..
            }
        ),
        "{error}"
    );
    let others = tempfile::tempdir().unwrap();
    let kv = Kv::new(Store::open(others.path()).unwrap());
    ask(
        &kv,
        Request::Put {
            key: b"theirs",
            value: b"kept",
        },
    );
    drop(kv);
    let kv = Kv::open_filled(others.path(), None, 10, 1).unwrap();
    assert_eq!(kv.store().len().unwrap(), 1);
}

#[test]
fn a_temporary_store_leaves_nothing_behind() {
    let store = Store::temporary().unwrap();
    let text = format!("{store:?}");
    let path = text.split('"').nth(1).unwrap().to_owned();
    store.fill(10, 10, 1).unwrap();
    assert!(std::fs::exists(&path).unwrap());
    drop(store);
    assert!(!std::fs::exists(&path).unwrap());
}

#[test]
fn a_folder_that_cannot_be_one_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = Store::open(file.path()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(file.path().to_str().unwrap()), "{text}");
    assert!(text.contains("writable"), "{text}");
}

#[test]
fn a_value_longer_than_the_room_is_too_large_and_an_empty_one_is_a_value() {
    let kv = Kv::new(Store::temporary().unwrap());
    ask(
        &kv,
        Request::Put {
            key: b"long",
            value: &[1; 100],
        },
    );
    ask(
        &kv,
        Request::Put {
            key: b"empty",
            value: &[],
        },
    );
    let get_long = [&[0, 0, 4][..], b"long"].concat();
    assert_eq!(kv.answer(&get_long, &mut [0; 100]), Err(Status::TooLarge));
    assert_eq!(kv.answer(&get_long, &mut [0; 101]), Ok(101));
    assert_eq!(get(&kv, b"empty"), Some(Vec::new()));
}

#[test]
fn calibrated_scans_fit_the_store_or_say_how_many_keys_they_need() {
    let kv = Kv::filled(20_000, 100, 1).unwrap();
    assert!(kv.measure_get().unwrap() > 0);
    let entries = kv.calibrate_scan(Duration::from_micros(20)).unwrap();
    assert!((1..=20_000).contains(&entries));
    let error = kv.calibrate_scan(Duration::from_secs(3600)).unwrap_err();
    assert!(
        matches!(error, KvError::TooFewEntries { found: 20_000, .. }),
        "{error}"
    );
    let empty = Kv::new(Store::temporary().unwrap());
    assert!(matches!(empty.measure_get(), Err(KvError::Empty)));
}

/// Puts, or deletes where there is no value.
fn writes() -> impl Strategy<Value = Vec<(Vec<u8>, Option<Vec<u8>>)>> {
    let key = prop::collection::vec(0_u8..4, 1..4);
    let value = prop::option::weighted(0.8, prop::collection::vec(any::<u8>(), 0..40));
    prop::collection::vec((key, value), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn the_store_is_an_ordered_map(
        writes in writes(),
        first in prop::collection::vec(0_u8..5, 0..4),
        count in 0_u32..80,
    ) {
        let kv = Kv::new(Store::temporary().unwrap());
        let mut model = BTreeMap::new();
        for (key, value) in &writes {
            if let Some(value) = value {
                ask(&kv, Request::Put { key, value });
                model.insert(key.clone(), value.clone());
            } else {
                ask(&kv, Request::Delete { key });
                model.remove(key);
            }
        }
        for (key, _) in &writes {
            prop_assert_eq!(get(&kv, key), model.get(key).cloned());
        }
        let range = (Bound::Included(&first), Bound::Unbounded);
        let mut expected = (0, Checksum::default(), Vec::new());
        for (key, value) in model.range::<Vec<u8>, _>(range).take(count as usize) {
            expected.0 += 1;
            expected.1.add(key);
            expected.1.add(value);
            expected.2 = key.clone();
        }
        prop_assert_eq!(scan(&kv, &first, count), (expected.0, expected.1.value(), expected.2));
    }

    #[test]
    fn arbitrary_bodies_never_panic(body in prop::collection::vec(any::<u8>(), 0..64)) {
        let kv = Kv::new(Store::temporary().unwrap());
        let expected = Request::decode(&body).map_err(|_| Status::BadRequest);
        prop_assert_eq!(kv.answer(&body, &mut [0; 2048]).err(), expected.err());
    }
}
