//! A classifier selected by name at start-up.

use std::str::FromStr;

use super::spec::{ClassifierSpec, ClassifierSpecError};
use super::{Classifier, FixedField, Memcached, Protobuf, Resp, WireType};

/// Any of the classifiers, selected by a spec string; it costs a predictable branch per request.
///
/// A spec is a name, then after a colon `key=value` pairs separated by commas. Classes are 0
/// to 65535; numbers may be hexadecimal (`0x1f`).
///
/// | spec | class is |
/// |---|---|
/// | `header` | the wire header's type, 0 to 254 |
/// | `header:7=0,9=1` | 0 for type 7, 1 for type 9 |
/// | `offset:at=4,bytes=2` | the big-endian number in bytes 4 and 5 |
/// | `offset:at=0,bytes=4,endian=little,mask=0xf0,1=0,2=1` | from four of its bits, by table |
/// | `resp:GET=0,SCAN=1` | from the Redis command, in any case |
/// | `memcached` | 0 for reads, 1 for writes, 2 for administration |
/// | `memcached:get=0,set=1,frame=udp` | from the command, behind memcached's UDP frame |
/// | `protobuf:field=1` | the number in field 1 |
/// | `protobuf:field=1,7=0,scan=1,absent=2,skip=5` | from field 1, number or string, by table |
/// | `protobuf-oneof:3=0,4=1` | from which of fields 3 and 4 comes first |
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnyClassifier {
    /// The wire header's type byte.
    Header(WireType),
    /// A number at a fixed offset.
    Fixed(FixedField),
    /// The Redis command.
    Resp(Resp),
    /// The memcached command.
    Memcached(Memcached),
    /// A field of a Protocol Buffers message.
    Protobuf(Protobuf),
}

const NAMES: &[&str] = &[
    "header",
    "offset",
    "resp",
    "memcached",
    "protobuf",
    "protobuf-oneof",
];

impl FromStr for AnyClassifier {
    type Err = ClassifierSpecError;

    fn from_str(text: &str) -> Result<Self, ClassifierSpecError> {
        let mut spec = ClassifierSpec::parse(text)?;
        match spec.name(NAMES)? {
            "header" => WireType::from_spec(&spec).map(Self::Header),
            "offset" => FixedField::from_spec(&mut spec).map(Self::Fixed),
            "resp" => Resp::from_spec(&spec).map(Self::Resp),
            "memcached" => Memcached::from_spec(&mut spec).map(Self::Memcached),
            "protobuf" => Protobuf::from_spec(&mut spec).map(Self::Protobuf),
            _ => Protobuf::oneof_from_spec(&mut spec).map(Self::Protobuf),
        }
    }
}

impl Classifier for AnyClassifier {
    #[inline]
    fn classify(&self, datagram: &[u8]) -> Option<u16> {
        match self {
            Self::Header(classifier) => classifier.classify(datagram),
            Self::Fixed(classifier) => classifier.classify(datagram),
            Self::Resp(classifier) => classifier.classify(datagram),
            Self::Memcached(classifier) => classifier.classify(datagram),
            Self::Protobuf(classifier) => classifier.classify(datagram),
        }
    }

    #[inline]
    fn is_request(&self, datagram: &[u8]) -> bool {
        match self {
            Self::Header(classifier) => classifier.is_request(datagram),
            Self::Fixed(_) | Self::Resp(_) | Self::Memcached(_) | Self::Protobuf(_) => true,
        }
    }
}
