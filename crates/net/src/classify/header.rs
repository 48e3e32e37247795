//! Classifies by the type byte of the wire header, which the client sets.

use super::Classifier;
use super::spec::{ClassifierSpec, ClassifierSpecError};
use crate::header::{Flag, HEADER_BYTES, UNKNOWN};

/// Classifies by the [wire header](crate::header)'s type byte.
///
/// Type 255 is always [`UNKNOWN`], and so is a datagram too short for a
/// header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireType {
    classes: Box<[Option<u16>; 256]>,
}

impl WireType {
    /// Each type, 0 to 254, is its own class.
    #[must_use]
    pub fn identity() -> Self {
        (0..UNKNOWN).map(|byte| (byte, u16::from(byte))).collect()
    }

    pub(super) fn from_spec(spec: &ClassifierSpec<'_>) -> Result<Self, ClassifierSpecError> {
        if spec.is_empty() {
            return Ok(Self::identity());
        }
        let pairs = spec.numbers(&[], 0..=u64::from(UNKNOWN - 1))?;
        Ok(pairs
            .into_iter()
            .map(|(byte, class)| (byte as u8, class))
            .collect())
    }
}

/// Collects (type, class) pairs; other types are unknown.
impl FromIterator<(u8, u16)> for WireType {
    fn from_iter<I: IntoIterator<Item = (u8, u16)>>(pairs: I) -> Self {
        let mut classes = Box::new([None; 256]);
        for (byte, class) in pairs {
            classes[usize::from(byte)] = Some(class);
        }
        classes[usize::from(UNKNOWN)] = None;
        Self { classes }
    }
}

impl Classifier for WireType {
    #[inline]
    fn classify(&self, datagram: &[u8]) -> Option<u16> {
        let header = datagram.first_chunk::<HEADER_BYTES>()?;
        self.classes[usize::from(header[0])]
    }

    #[inline]
    fn is_request(&self, datagram: &[u8]) -> bool {
        datagram
            .get(1)
            .is_none_or(|&bits| !Flag::from_bits(bits).is_response())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Header, Status};

    fn datagram(class: u8) -> [u8; HEADER_BYTES] {
        Header {
            class,
            flag: Flag::REQUEST,
            index: 77,
            time_ns: 0,
        }
        .encode()
    }

    #[test]
    fn identity_knows_every_type_but_the_reserved_one() {
        let classifier = WireType::identity();
        for class in 0..UNKNOWN {
            assert_eq!(
                classifier.classify(&datagram(class)),
                Some(u16::from(class))
            );
        }
        assert_eq!(classifier.classify(&datagram(UNKNOWN)), None);
    }

    #[test]
    fn a_table_renames_types_and_cannot_name_the_reserved_one() {
        let classifier = WireType::from_iter([(10, 0), (20, 1), (UNKNOWN, 2)]);
        assert_eq!(classifier.classify(&datagram(20)), Some(1));
        assert_eq!(classifier.classify(&datagram(0)), None);
        assert_eq!(classifier.classify(&datagram(UNKNOWN)), None);
    }

    #[test]
    fn an_incomplete_header_has_no_class() {
        let whole = datagram(0);
        for len in 0..HEADER_BYTES {
            assert_eq!(WireType::identity().classify(&whole[..len]), None);
        }
    }

    #[test]
    fn a_response_is_no_request() {
        let request = Header {
            class: 1,
            flag: Flag::REQUEST,
            index: 7,
            time_ns: 0,
        };
        let response = request.response(Status::Ok, 5);
        assert!(WireType::identity().is_request(&request.encode()));
        assert!(!WireType::identity().is_request(&response.encode()));
    }
}
