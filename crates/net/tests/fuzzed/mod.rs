//! The properties of parsing any bytes. Checked three ways: on random bytes and on the corpus by
//! `cargo test`, and by the fuzz targets, which include this file.

use headway_net::classify::{AnyClassifier, Classifier};
use headway_net::header::{CloneRole, HEADER_BYTES, Header, HeaderError, UNKNOWN};

/// Specs that between them reach every branch of every classifier. All are prefix-stable:
/// none gives absent fields a class.
pub(crate) const SPECS: &[&str] = &[
    "header",
    "header:0=9,71=8,128=7",
    "offset:at=2,bytes=1,mask=0x78",
    "offset:at=3,bytes=2,endian=little",
    "offset:at=0,bytes=4,0x2a320d0a=1,0=2",
    "resp:GET=0,SET=1,SCAN=2,GETSET=3,PING=4,GEORADIUSBYMEMBER_RO=5",
    "memcached",
    "memcached:frame=udp,get=4,gets=5,set=6",
    "protobuf:field=1",
    "protobuf:field=2,150=0,GET=1,SCAN=2,skip=5",
    "protobuf-oneof:1=1,3=0,4=1,536870911=2",
];

/// A header parses exactly when ten bytes are there, and writes back as it was.
pub(crate) fn header(datagram: &[u8]) {
    match Header::parse(datagram) {
        Err(error) => {
            assert!(datagram.len() < HEADER_BYTES);
            assert_eq!(
                error,
                HeaderError::Truncated {
                    found: datagram.len()
                }
            );
        }
        Ok((header, payload)) => {
            assert_eq!([&header.encode(), payload].concat(), datagram);
            response_mirrors(header);
        }
    }
}

fn response_mirrors(request: Header) {
    let response = request.response(request.flag.status(), u64::from(request.time_ns));
    assert_eq!(
        (response.class, response.index, response.time_ns),
        (request.class, request.index, request.time_ns)
    );
    assert!(response.flag.is_response());
    assert_eq!(response.flag.status(), request.flag.status());
    let role = request.flag.clone_role();
    assert_eq!(response.flag.clone_role(), role);
    assert_eq!(
        response.flag.with_clone_role(CloneRole::None).clone_role(),
        CloneRole::None
    );
}

/// No classifier panics, and none changes its mind when more bytes arrive. The reserved
/// type has no class.
pub(crate) fn classifiers(datagram: &[u8]) {
    for spec in SPECS {
        let classifier: AnyClassifier = spec.parse().expect("a spec of this file");
        prefix_stable(spec, &classifier, datagram);
    }
    if datagram.first() == Some(&UNKNOWN) {
        let header: AnyClassifier = "header".parse().expect("a spec of this file");
        assert_eq!(header.classify(datagram), None);
    }
}

/// The class of the datagram's start is the class of the whole.
fn prefix_stable(spec: &str, classifier: &AnyClassifier, datagram: &[u8]) {
    let whole = classifier.classify(datagram);
    // Longer prefixes change nothing a classifier looks at but in protobuf's long fields.
    for len in 0..datagram.len().min(256) {
        let prefix = classifier.classify(&datagram[..len]);
        assert!(
            prefix.is_none() || prefix == whole,
            "{spec}: {prefix:?} after {len} bytes, then {whole:?}: {}",
            datagram.escape_ascii(),
        );
    }
}

/// Any text is a classifier or an error that points into it; a classifier that parses
/// classifies without panicking.
pub(crate) fn spec(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    match text.parse::<AnyClassifier>() {
        Ok(classifier) => {
            classifier.classify(text.as_bytes());
        }
        Err(error) => assert!(
            (1..=text.chars().count() + 1).contains(&error.column),
            "{error}"
        ),
    }
}
