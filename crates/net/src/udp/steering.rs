//! How the kernel chooses the receive queue of a datagram, where each worker has one.

use std::fmt::{self, Display};
use std::str::FromStr;

use super::options::{Instruction, load_byte, load_random, modulo, return_accumulator};
use crate::header::HEADER_BYTES;

/// How the kernel chooses the receive queue of a datagram, where each worker has one.
///
/// As text, `flow`, `random`, `class` or `byte=N`:
///
/// ```
/// use headway_net::udp::{HeaderByte, Steering};
///
/// assert_eq!("byte=9".parse(), Ok(Steering::Byte(HeaderByte::new(9)?)));
/// assert_eq!("class".parse(), Ok(Steering::Byte(HeaderByte::CLASS)));
/// # Ok::<(), headway_net::udp::SteeringError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Steering {
    /// By the kernel's hash of addresses and ports, as receive-side scaling does: a flow stays on its queue.
    #[default]
    Flow,
    /// Each datagram to a queue drawn at random: the ideal d-FCFS of the papers, whatever the number of clients.
    Random,
    /// By a byte of the request's header: its value modulo the number of queues. The client chooses the queue.
    Byte(HeaderByte),
}

/// A byte of the [wire header](crate::header), counted from 0: 0 to 9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderByte(u8);

/// A word that names no steering.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum SteeringError {
    /// A byte that not every request has.
    #[error(
        "byte {byte} lies beyond the wire header, whose bytes every request has: choose a byte from 0 to {}",
        HEADER_BYTES - 1
    )]
    BeyondHeader {
        /// The byte asked for.
        byte: usize,
    },
    /// The text is no steering.
    #[error("'{word}' is no steering: write flow, random, class, or byte=N with N from 0 to {}", HEADER_BYTES - 1)]
    Unknown {
        /// The given text.
        word: String,
    },
}

headway_words::debug_is_display!(SteeringError);

impl HeaderByte {
    /// The request's type, which names its class.
    pub const CLASS: Self = Self(0);

    /// Its offset in the header.
    #[must_use]
    pub fn number(self) -> u8 {
        self.0
    }

    /// The byte at this offset.
    ///
    /// # Errors
    /// [`SteeringError::BeyondHeader`] from 10 on: a short request has no such byte.
    pub fn new(byte: usize) -> Result<Self, SteeringError> {
        if byte < HEADER_BYTES {
            Ok(Self(byte as u8))
        } else {
            Err(SteeringError::BeyondHeader { byte })
        }
    }
}

impl Steering {
    /// The program that returns a datagram's queue; none where the kernel's own hash chooses.
    pub(super) fn program(self, queues: u32) -> Option<[Instruction; 3]> {
        let load = match self {
            Self::Flow => return None,
            Self::Random => load_random(),
            Self::Byte(HeaderByte(byte)) => load_byte(byte.into()),
        };
        Some([load, modulo(queues), return_accumulator()])
    }
}

impl FromStr for Steering {
    type Err = SteeringError;

    fn from_str(word: &str) -> Result<Self, SteeringError> {
        let unknown = || SteeringError::Unknown { word: word.into() };
        match word {
            "flow" => Ok(Self::Flow),
            "random" => Ok(Self::Random),
            "class" => Ok(Self::Byte(HeaderByte::CLASS)),
            _ => {
                let byte = word.strip_prefix("byte=").ok_or_else(unknown)?;
                let byte = byte.parse().map_err(|_| unknown())?;
                HeaderByte::new(byte).map(Self::Byte)
            }
        }
    }
}

impl Display for Steering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flow => f.write_str("flow"),
            Self::Random => f.write_str("random"),
            Self::Byte(HeaderByte::CLASS) => f.write_str("class"),
            Self::Byte(HeaderByte(byte)) => write!(f, "byte={byte}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        for word in ["flow", "random", "class", "byte=1", "byte=9"] {
            assert_eq!(word.parse::<Steering>().unwrap().to_string(), word);
        }
        assert_eq!("byte=0".parse(), Ok(Steering::Byte(HeaderByte::CLASS)));
    }

    #[test]
    fn what_is_no_steering_says_what_to_write() {
        for word in ["", "flows", "byte", "byte=", "byte=-1", "byte=x", "hash"] {
            let said = word.parse::<Steering>().unwrap_err().to_string();
            assert!(
                said.contains("write flow, random, class, or byte=N"),
                "{said}"
            );
        }
        let said = "byte=10".parse::<Steering>().unwrap_err().to_string();
        assert!(said.ends_with("choose a byte from 0 to 9"), "{said}");
    }
}
