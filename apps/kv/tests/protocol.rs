//! What is written reads back; what is not a request is refused; nothing panics.

use headway_kv::{Malformed, NoRoom, Operation, Request, read_get, read_scan};
use proptest::prelude::*;

/// A request, owned.
type Parts = (Operation, Vec<u8>, Vec<u8>, u32);

fn request((operation, key, value, count): &Parts) -> Request<'_> {
    match operation {
        Operation::Get => Request::Get { key },
        Operation::Scan => Request::Scan {
            first: key,
            count: *count,
        },
        Operation::Put => Request::Put { key, value },
        Operation::Delete => Request::Delete { key },
    }
}

fn parts() -> impl Strategy<Value = Parts> {
    let operation = prop::sample::select(&Operation::ALL);
    let bytes = |min| prop::collection::vec(any::<u8>(), min..300);
    (operation, bytes(1), bytes(0), any::<u32>())
}

proptest! {
    #[test]
    fn requests_read_back_as_written(parts in parts()) {
        let request = request(&parts);
        let mut buffer = [0xAA; 1024];
        let len = request.encode(&mut buffer).unwrap();
        prop_assert_eq!(Request::decode(&buffer[..len]), Ok(request));
        prop_assert_eq!(buffer[0], request.operation() as u8);
        prop_assert!(buffer[len..].iter().all(|byte| *byte == 0xAA));
    }

    #[test]
    fn a_request_that_does_not_fit_is_refused(parts in parts(), room in 0_usize..700) {
        let request = request(&parts);
        let needed = request.encode(&mut [0; 1024]).unwrap();
        let expected = if needed <= room { Ok(needed) } else { Err(NoRoom { needed, room }) };
        prop_assert_eq!(request.encode(&mut vec![0; room]), expected);
    }

    #[test]
    fn every_cut_of_a_request_is_refused_but_of_a_value(parts in parts()) {
        let request = request(&parts);
        let mut buffer = [0; 1024];
        let len = request.encode(&mut buffer).unwrap();
        let value_len = if let Request::Put { value, .. } = request { value.len() } else { 0 };
        for cut in 0..len - value_len {
            prop_assert!(Request::decode(&buffer[..cut]).is_err(), "cut at {}", cut);
        }
    }

    #[test]
    fn arbitrary_bytes_are_a_request_exactly_if_it_would_be_written_so(
        mut body in prop::collection::vec(any::<u8>(), 0..400),
        operation in prop::option::of(0_u8..6),
        key_len in prop::option::of(0_u8..60),
    ) {
        // Steered towards requests: random length fields rarely fit.
        if let (Some(byte), Some(operation)) = (body.first_mut(), operation) {
            *byte = operation;
        }
        if let (Some(len), Some(key_len)) = (body.get_mut(1..3), key_len) {
            len.copy_from_slice(&[0, key_len]);
        }
        if let Ok(request) = Request::decode(&body) {
            let mut buffer = [0; 1024];
            let len = request.encode(&mut buffer).unwrap();
            prop_assert_eq!(&buffer[..len], &body[..]);
        }
    }

    #[test]
    fn arbitrary_replies_never_panic(body in prop::collection::vec(any::<u8>(), 0..64)) {
        prop_assert_eq!(read_scan(&body).is_some(), body.len() >= 12);
        if let Some(Some(value)) = read_get(&body) {
            prop_assert_eq!(value, &body[1..]);
        }
    }
}

#[test]
fn what_is_wrong_with_a_body_is_said() {
    use Malformed::*;
    let cases: [(&[u8], Malformed); 8] = [
        (&[], Truncated("operation")),
        (&[4], UnknownOperation(4)),
        (&[0, 0], Truncated("key length")),
        (&[0, 0, 2, b'a'], Truncated("key")),
        (&[0, 0, 1, b'a', b'b', b'c'], TrailingBytes(2)),
        (&[0, 0, 0], EmptyKey),
        (&[1, 0, 1, b'a', 0, 0, 1], Truncated("count")),
        (&[2, 0, 0, b'v'], EmptyKey),
    ];
    for (body, expected) in cases {
        assert_eq!(Request::decode(body), Err(expected), "{body:?}");
    }
}

#[test]
fn only_a_scan_may_begin_at_the_beginning() {
    let body = [1, 0, 0, 0, 0, 0, 7];
    let everything = Request::Scan {
        first: &[],
        count: 7,
    };
    assert_eq!(Request::decode(&body), Ok(everything));
}

#[test]
fn keys_longer_than_their_length_field_are_refused() {
    let key = vec![b'k'; 65_536];
    let error = Request::Get { key: &key }
        .encode(&mut vec![0; 70_000])
        .unwrap_err();
    assert!(error.to_string().contains("over 65535 bytes"));
}
