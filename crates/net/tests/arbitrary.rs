//! The fuzz targets' properties on random bytes, on random edits of real requests, and on
//! every truncation of real requests.

use crate::fuzzed;
use headway_net::classify::{AnyClassifier, Classifier};
use proptest::prelude::*;
use proptest::sample::select;

/// Whole requests with their class and the spec that recognises them.
const REQUESTS: &[(&str, &[u8], u16)] = &[
    (
        "header",
        b"\x03\x00\x00\x00\x00\x2a\x00\x00\x00\x00payload",
        3,
    ),
    ("offset:at=3,bytes=2,endian=little", b"abc\x05\x00def", 5),
    (
        "resp:GET=0,GETSET=1,SET=2",
        b"*3\r\n$6\r\nGETSET\r\n$1\r\nk\r\n$1\r\nv\r\n",
        1,
    ),
    ("resp:GET=0,GETSET=1,SET=2", b"GETSET k v\r\n", 1),
    ("resp:G=0,GE=1,GET=2", b"get k\r\n", 2),
    (
        "memcached:get=0,gets=1,gat=2,gats=3",
        b"gats 60 foo bar\r\n",
        3,
    ),
    (
        "memcached",
        b"\x80\x01\x00\x03\x08\0\0\0\0\0\0\x0c\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x0e\x10keyv",
        1,
    ),
    (
        "memcached:frame=udp",
        b"\x12\x34\0\0\0\x01\0\0get foo\r\n",
        0,
    ),
    (
        "protobuf:field=3",
        b"\x0a\x05hello\x15\x01\x02\x03\x04\x18\x96\x01",
        150,
    ),
    (
        "protobuf:field=2,GET=0,GETSET=1",
        b"\x08\x96\x01\x12\x06GETSET",
        1,
    ),
    ("protobuf-oneof:1=0,3=1", b"\x12\x03key\x1a\x02\x08\x01", 1),
];

#[test]
fn every_truncation_has_the_same_class_or_none() {
    for &(spec, request, class) in REQUESTS {
        let classifier: AnyClassifier = spec.parse().unwrap();
        assert_eq!(classifier.classify(request), Some(class), "{spec}");
        let first = (0..request.len()).find(|&len| classifier.classify(&request[..len]).is_some());
        for len in 0..request.len() {
            let expected = first.is_some_and(|first| len >= first).then_some(class);
            assert_eq!(
                classifier.classify(&request[..len]),
                expected,
                "{spec}, {len} bytes"
            );
        }
    }
}

prop_compose! {
    /// A real request with a few bytes overwritten and others appended.
    fn edited()(
        request in select(REQUESTS).prop_map(|(_, request, _)| request.to_vec()),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        tail in prop::collection::vec(any::<u8>(), 0..16),
    ) -> Vec<u8> {
        let mut datagram = request;
        for (at, byte) in edits {
            let at = at.index(datagram.len());
            datagram[at] = byte;
        }
        datagram.extend(tail);
        datagram
    }
}

proptest! {
    #[test]
    fn headers_of_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        fuzzed::header(&bytes);
    }

    #[test]
    fn classes_of_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        fuzzed::classifiers(&bytes);
    }

    #[test]
    fn classes_of_edited_requests(bytes in edited()) {
        fuzzed::classifiers(&bytes);
    }

    #[test]
    fn specs_of_any_text(text in "\\PC{0,40}") {
        fuzzed::spec(text.as_bytes());
    }

    #[test]
    fn specs_of_edited_specs(spec in select(fuzzed::SPECS), at in any::<prop::sample::Index>(), with in "[a-zé0-9=,:]{0,2}") {
        let at = at.index(spec.len());
        fuzzed::spec([&spec[..at], &with, &spec[at..]].concat().as_bytes());
    }
}
