//! The mapping of type bytes to types: declared types by number, others in their order of appearance.

use headway_policy::ClassId;

/// The types that a switch distinguishes: the declared ones, and others as they appear, while there is room.
#[derive(Clone, Debug)]
pub struct TypeTable {
    /// The class of each byte; [`Self::NONE`] until the byte appears.
    classes: [u16; 256],
    /// The bytes of the classes that are known.
    bytes: Vec<u8>,
    room: usize,
}

impl TypeTable {
    const NONE: u16 = u16::MAX;
    /// This byte says that the type is unknown.
    const UNKNOWN: u8 = 255;

    /// The bytes 0 to `declared` − 1 are types; `undeclared` others may become types.
    #[must_use]
    pub fn new(declared: usize, undeclared: usize) -> Self {
        let room = declared + undeclared;
        let mut classes = [Self::NONE; 256];
        let mut bytes = Vec::with_capacity(room);
        for byte in 0..declared as u8 {
            classes[usize::from(byte)] = u16::from(byte);
            bytes.push(byte);
        }
        Self {
            classes,
            bytes,
            room,
        }
    }

    /// The type of a byte; `None` when it is UNKNOWN and there is no room for one more type.
    #[inline]
    pub fn class(&mut self, byte: u8) -> Option<ClassId> {
        match self.classes[usize::from(byte)] {
            Self::NONE => self.enter(byte),
            class => Some(ClassId(class)),
        }
    }

    #[cold]
    fn enter(&mut self, byte: u8) -> Option<ClassId> {
        if byte == Self::UNKNOWN || self.bytes.len() == self.room {
            return None;
        }
        let class = self.bytes.len() as u16;
        self.classes[usize::from(byte)] = class;
        self.bytes.push(byte);
        Some(ClassId(class))
    }

    /// UNKNOWN, the class after all types.
    #[inline]
    #[must_use]
    pub fn unknown(&self) -> ClassId {
        ClassId(self.room as u16)
    }

    /// The bytes of the known types, by class.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undeclared_bytes_become_types_while_there_is_room() {
        let mut types = TypeTable::new(2, 2);
        assert_eq!(types.class(1), Some(ClassId(1)));
        assert_eq!(types.class(200), Some(ClassId(2)));
        assert_eq!(types.class(255), None, "it says that it is unknown");
        assert_eq!(types.class(7), Some(ClassId(3)));
        assert_eq!(types.class(8), None, "there is no room");
        assert_eq!(types.class(200), Some(ClassId(2)));
        assert_eq!(
            (types.bytes(), types.unknown()),
            (&[0, 1, 200, 7][..], ClassId(4))
        );
    }
}
