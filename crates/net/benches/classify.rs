//! Time per request of each classifier, through the enum the dispatcher uses.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use headway_net::classify::{AnyClassifier, Classifier};
use headway_net::header::Header;

const CASES: &[(&str, &[u8])] = &[
    ("header", b"\x03\x00\x00\x00\x00\x2a\x00\x00\x00\x00payload"),
    ("offset:at=4,bytes=2", b"abcd\x00\x05def"),
    ("offset:at=4,bytes=2,1=0,2=1,3=2,5=3", b"abcd\x00\x05def"),
    (
        "resp:GET=0,SET=1,DEL=2,SCAN=3",
        b"*2\r\n$4\r\nSCAN\r\n$1\r\n0\r\n",
    ),
    ("resp:GET=0,SET=1,DEL=2,SCAN=3,MGET=4", b"scan 0\r\n"),
    ("memcached", b"get some:ordinary:key\r\n"),
    (
        "memcached:get=1",
        b"\x80\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x03\0\0\0\0\0\0\0\0\0\0\0\0key",
    ),
    ("protobuf:field=1", b"\x08\x02\x12\x07testing"),
    (
        "protobuf:field=3,GET=0,SCAN=1",
        b"\x08\x96\x01\x12\x07testing\x1a\x04SCAN",
    ),
    (
        "protobuf-oneof:3=0,4=1",
        b"\x08\x96\x01\x12\x07testing\x22\x02\x08\x01",
    ),
];

fn classify(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("classify");
    for (spec, request) in CASES {
        let classifier: AnyClassifier = spec.parse().expect("a valid spec");
        group.bench_function(*spec, |bencher| {
            bencher.iter(|| classifier.classify(black_box(request)));
        });
    }
    group.finish();
    criterion.bench_function("header/parse", |bencher| {
        bencher.iter(|| Header::parse(black_box(CASES[0].1)));
    });
}

criterion_group!(benches, classify);
criterion_main!(benches);
