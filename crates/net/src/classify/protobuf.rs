//! Classifies by a field of a Protocol Buffers message, without its schema.

use super::spec::{ClassifierSpec, ClassifierSpecError};
use super::{Classifier, NumberTable, WordTable, WordTooLong};

/// Most fields that are walked: a classifier's time must be bounded, and a message should have its
/// type among the first fields.
const MAX_FIELDS: usize = 64;

/// Largest field number of the wire format.
const MAX_FIELD_NUMBER: u64 = (1 << 29) - 1;

/// Classifies a message by the value of one of its top-level fields, or by which member of a
/// `oneof` it holds.
///
/// Fields are walked in the order sent, at most 64 of them. The first occurrence counts, while a
/// decoder takes the last. Serialisers send a field once, and later bytes cannot change the first
/// occurrence. Groups (deprecated since proto2) are unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protobuf {
    select: Select,
    absent: Option<u16>,
    skip_bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Select {
    Value {
        field: u64,
        numbers: NumberTable,
        words: WordTable,
    },
    Oneof {
        members: NumberTable,
    },
}

impl Protobuf {
    /// By the number in `field` (integer, enum or bool).
    #[must_use]
    pub fn by_number(field: u32, numbers: NumberTable) -> Self {
        Self::new(Select::Value {
            field: field.into(),
            numbers,
            words: WordTable::default(),
        })
    }

    /// By the string in `field`, which must equal one of `words`.
    ///
    /// # Errors
    /// [`WordTooLong`] if a word is longer than [`MAX_WORD_BYTES`](super::MAX_WORD_BYTES).
    pub fn by_string<'a>(
        field: u32,
        words: impl IntoIterator<Item = (&'a str, u16)>,
    ) -> Result<Self, WordTooLong> {
        let words = WordTable::case_sensitive(words)?;
        let numbers = NumberTable::from_iter([]);
        Ok(Self::new(Select::Value {
            field: field.into(),
            numbers,
            words,
        }))
    }

    /// By which of the fields in `members`, (field number, class) pairs, comes first.
    #[must_use]
    pub fn by_oneof(members: impl IntoIterator<Item = (u32, u16)>) -> Self {
        let members = members
            .into_iter()
            .map(|(field, class)| (field.into(), class))
            .collect();
        Self::new(Select::Oneof { members })
    }

    /// Gives a message without the field this class. proto3 does not send a field whose
    /// value is 0 or empty, so the first value of an enum needs this.
    ///
    /// A message cut before the field then takes this class too: use it where requests
    /// arrive whole.
    #[must_use]
    pub fn with_absent(self, class: u16) -> Self {
        Self {
            absent: Some(class),
            ..self
        }
    }

    /// Skips bytes in front of the message: 5 for gRPC's length prefix,
    /// [`HEADER_BYTES`](crate::header::HEADER_BYTES) for the wire header.
    #[must_use]
    pub fn with_skip(self, skip_bytes: usize) -> Self {
        Self { skip_bytes, ..self }
    }

    fn new(select: Select) -> Self {
        Self {
            select,
            absent: None,
            skip_bytes: 0,
        }
    }

    pub(super) fn from_spec(spec: &mut ClassifierSpec<'_>) -> Result<Self, ClassifierSpecError> {
        let field = spec
            .required("field", "field=1")?
            .number(1..=MAX_FIELD_NUMBER)?;
        let (absent, skip_bytes) = common_options(spec)?;
        let (numbers, words) = spec.numbers_and_words(0..=u64::MAX)?;
        let words = WordTable::case_sensitive(words).map_err(|e| spec.too_long(e))?;
        Ok(Self {
            select: Select::Value {
                field,
                numbers,
                words,
            },
            absent,
            skip_bytes,
        })
    }

    pub(super) fn oneof_from_spec(
        spec: &mut ClassifierSpec<'_>,
    ) -> Result<Self, ClassifierSpecError> {
        let (absent, skip_bytes) = common_options(spec)?;
        spec.refuse_empty("3=0,4=1")?;
        let members = spec.number_table(&["absent", "skip"], 1..=MAX_FIELD_NUMBER)?;
        Ok(Self {
            select: Select::Oneof { members },
            absent,
            skip_bytes,
        })
    }
}

fn common_options(
    spec: &mut ClassifierSpec<'_>,
) -> Result<(Option<u16>, usize), ClassifierSpecError> {
    let absent = spec.take("absent").map(|e| e.class()).transpose()?;
    let skip = spec
        .take("skip")
        .map(|e| e.number(0..=u64::from(u16::MAX)))
        .transpose()?;
    Ok((absent, skip.unwrap_or(0) as usize))
}

impl Classifier for Protobuf {
    #[inline]
    fn classify(&self, datagram: &[u8]) -> Option<u16> {
        let mut rest = datagram.get(self.skip_bytes..)?;
        for _ in 0..MAX_FIELDS {
            if rest.is_empty() {
                return self.absent;
            }
            let MessageField {
                number: field,
                value,
                after,
            } = next_field(rest)?;
            match &self.select {
                Select::Value {
                    field: wanted,
                    numbers,
                    words,
                } if field == *wanted => {
                    return value.class(numbers, words);
                }
                Select::Oneof { members } => {
                    if let Some(class) = members.get(field) {
                        return Some(class);
                    }
                }
                Select::Value { .. } => {}
            }
            rest = after;
        }
        None
    }
}

/// A complete field of a message.
struct MessageField<'a> {
    number: u64,
    value: FieldValue<'a>,
    /// The bytes after it.
    after: &'a [u8],
}

/// A field's value, in the types of the wire format.
enum FieldValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl FieldValue<'_> {
    #[inline]
    fn class(&self, numbers: &NumberTable, words: &WordTable) -> Option<u16> {
        match *self {
            Self::Number(number) => numbers.get(number),
            Self::Bytes(bytes) => words.get(bytes),
        }
    }
}

/// The field at the start of `message`.
#[inline]
fn next_field(message: &[u8]) -> Option<MessageField<'_>> {
    let (tag, rest) = varint(message)?;
    let number = tag >> 3;
    if !(1..=MAX_FIELD_NUMBER).contains(&number) {
        return None;
    }
    let (value, after) = match tag & 7 {
        0 => varint(rest).map(|(number, after)| (FieldValue::Number(number), after))?,
        1 => {
            let (bytes, after) = rest.split_first_chunk()?;
            (FieldValue::Number(u64::from_le_bytes(*bytes)), after)
        }
        2 => {
            let (len, rest) = varint(rest)?;
            let (bytes, after) = rest.split_at_checked(usize::try_from(len).ok()?)?;
            (FieldValue::Bytes(bytes), after)
        }
        5 => {
            let (bytes, after) = rest.split_first_chunk()?;
            (FieldValue::Number(u32::from_le_bytes(*bytes).into()), after)
        }
        _ => return None,
    };
    Some(MessageField {
        number,
        value,
        after,
    })
}

/// A base-128 number of at most 64 bits (10 bytes), least significant group first.
#[inline]
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (at, &byte) in bytes.iter().take(10).enumerate() {
        // The tenth byte holds the 64th bit and nothing else.
        if at == 9 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7F) << (7 * at);
        if byte < 0x80 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `message Request { Kind kind = 1; string key = 2; }` with kind = 150, key = "testing":
    /// the two examples of the encoding's documentation.
    const KIND_AND_KEY: &[u8] = b"\x08\x96\x01\x12\x07testing";

    #[test]
    fn varints_at_their_limits() {
        assert_eq!(varint(b"\x96\x01rest"), Some((150, &b"rest"[..])));
        assert_eq!(
            varint(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
            Some((u64::MAX, &b""[..]))
        );
        assert_eq!(
            varint(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"),
            None,
            "65 bits"
        );
        assert_eq!(
            varint(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
            None,
            "11 bytes"
        );
        assert_eq!(varint(b"\x80"), None, "cut");
    }

    #[test]
    fn by_the_value_of_a_field() {
        let by_kind = Protobuf::by_number(1, NumberTable::from_iter([(150, 3)]));
        let by_key = Protobuf::by_string(2, [("testing", 4)]).unwrap();
        assert_eq!(by_kind.classify(KIND_AND_KEY), Some(3));
        assert_eq!(by_key.classify(KIND_AND_KEY), Some(4));
        assert_eq!(
            by_key.classify(&KIND_AND_KEY[..11]),
            None,
            "the string is cut"
        );
        assert_eq!(
            by_kind.classify(b"\x08\x07"),
            None,
            "a value not in the table"
        );
        assert_eq!(
            by_kind.classify(b"\x0a\x01x"),
            None,
            "a string where a number belongs"
        );
        assert_eq!(
            by_kind.classify(b"\x0d\x96\x00\x00\x00"),
            Some(3),
            "fixed32"
        );
        assert_eq!(
            by_kind.classify(b"\x09\x96\x00\x00\x00\x00\x00\x00\x00"),
            Some(3),
            "fixed64"
        );
    }

    #[test]
    fn by_the_member_of_a_oneof() {
        let by_member = Protobuf::by_oneof([(2, 0), (3, 1)]);
        assert_eq!(by_member.classify(KIND_AND_KEY), Some(0));
        assert_eq!(
            by_member.classify(b"\x08\x01\x1a\x00"),
            Some(1),
            "an empty member message"
        );
        assert_eq!(by_member.classify(b"\x08\x01"), None);
    }

    #[test]
    fn an_absent_field_is_unknown_unless_given_a_class() {
        let by_kind = Protobuf::by_number(1, NumberTable::identity());
        let proto3 = by_kind.clone().with_absent(0);
        let key_only = &KIND_AND_KEY[3..];
        assert_eq!(by_kind.classify(key_only), None);
        assert_eq!(proto3.classify(key_only), Some(0));
        assert_eq!(
            proto3.classify(b""),
            Some(0),
            "all fields at their defaults"
        );
        assert_eq!(proto3.classify(b"\x12\x07test"), None, "cut inside a field");
    }

    #[test]
    fn bytes_in_front_are_skipped() {
        let grpc = Protobuf::by_number(1, NumberTable::identity()).with_skip(5);
        assert_eq!(grpc.classify(b"\x00\x00\x00\x00\x02\x08\x09"), Some(9));
        assert_eq!(grpc.classify(b"\x00\x00"), None);
    }

    #[test]
    fn malformed_and_endless_messages_are_unknown() {
        let by_kind = Protobuf::by_number(9, NumberTable::identity()).with_absent(1);
        for message in [
            &b"\x00\x01"[..],
            b"\x0b\x0c",
            b"\x0e\x01",
            b"\x0f\x01",
            b"\x12\xff\xff",
        ] {
            assert_eq!(
                by_kind.classify(message),
                None,
                "{}",
                message.escape_ascii()
            );
        }
        assert_eq!(
            by_kind.classify(&b"\x08\x01".repeat(MAX_FIELDS - 1)),
            Some(1)
        );
        assert_eq!(by_kind.classify(&b"\x08\x01".repeat(MAX_FIELDS + 1)), None);
    }
}
