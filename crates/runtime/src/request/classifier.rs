//! How an engine tells requests apart: by a classifier that it knows, without a call through a pointer, or by one of the program's own.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use headway_net::classify::{AnyClassifier, Classifier, WireType};

/// The classifier of a server.
#[derive(Clone)]
pub(crate) enum ServerClassifier {
    Known(AnyClassifier),
    Own(Arc<dyn Classifier>),
}

impl ServerClassifier {
    pub(crate) fn of(classifier: impl Classifier + 'static) -> Self {
        match (&classifier as &dyn Any).downcast_ref::<AnyClassifier>() {
            Some(known) => Self::Known(known.clone()),
            None => Self::Own(Arc::new(classifier)),
        }
    }
}

/// By the wire header's type.
impl Default for ServerClassifier {
    fn default() -> Self {
        Self::Known(AnyClassifier::Header(WireType::identity()))
    }
}

impl fmt::Debug for ServerClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(known) => fmt::Debug::fmt(known, f),
            Self::Own(_) => f.write_str("the program's own"),
        }
    }
}

impl Classifier for ServerClassifier {
    #[inline]
    fn classify(&self, datagram: &[u8]) -> Option<u16> {
        match self {
            Self::Known(known) => known.classify(datagram),
            Self::Own(own) => own.classify(datagram),
        }
    }

    #[inline]
    fn is_request(&self, datagram: &[u8]) -> bool {
        match self {
            Self::Known(known) => known.is_request(datagram),
            Self::Own(own) => own.is_request(datagram),
        }
    }
}
