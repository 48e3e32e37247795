//! Request classifiers: from the bytes of a request to its class (Perséphone § 4.2).
//!
//! The dispatcher asks one classifier, once per datagram, before it knows anything else about the
//! request. So a classifier reads a bounded number of bytes, never allocates, never panics, and
//! returns `None` (UNKNOWN) when in doubt. An unknown request waits in the lowest-priority queue,
//! while a misclassified one would take a reserved core.
//!
//! Each classifier here is *prefix-stable*: once the start of a datagram has a class, no
//! byte that follows can change it. A truncated request is therefore either unknown or
//! in its own class. (The one exception is opted into: [`Protobuf::with_absent`].)
//!
//! A server chooses one by a [spec string](AnyClassifier), or passes its own function:
//!
//! ```
//! use headway_net::classify::{AnyClassifier, Classifier};
//!
//! let redis: AnyClassifier = "resp:GET=0,SCAN=1".parse()?;
//! assert_eq!(redis.classify(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"), Some(0));
//!
//! let by_length = |datagram: &[u8]| Some(u16::from(datagram.len() > 100));
//! assert_eq!(by_length.classify(b"short"), Some(0));
//! # Ok::<(), headway_net::classify::ClassifierSpecError>(())
//! ```

mod any;
mod fixed;
mod header;
mod memcached;
mod protobuf;
mod resp;
mod spec;
mod table;

pub use any::AnyClassifier;
pub use fixed::{Endian, FixedField};
pub use header::WireType;
pub use memcached::Memcached;
pub use protobuf::Protobuf;
pub use resp::Resp;
pub use spec::{ClassifierSpecError, SpecProblem};
pub use table::{MAX_WORD_BYTES, NumberTable, WordTable, WordTooLong};

/// Maps a request to its class.
pub trait Classifier: Send + Sync {
    /// The class of the request in `datagram`, or `None` if the classifier cannot decide.
    ///
    /// The function is total: it accepts all bytes. Classes are the numbers of the classifier's
    /// configuration; the engine treats an unknown number as `None`.
    fn classify(&self, datagram: &[u8]) -> Option<u16>;

    /// Whether `datagram` may be a request. A protocol that marks its responses returns `false` for them. The server
    /// never answers responses: one forged datagram could make two servers answer each other for ever. It recognises
    /// responses with its own header itself, and calls this method for all other datagrams.
    fn is_request(&self, datagram: &[u8]) -> bool {
        let _ = datagram;
        true
    }
}

impl<F> Classifier for F
where
    F: Fn(&[u8]) -> Option<u16> + Send + Sync,
{
    #[inline]
    fn classify(&self, datagram: &[u8]) -> Option<u16> {
        self(datagram)
    }
}
