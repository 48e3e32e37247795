//! A process that can be asked.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use serde_json::Value;

use crate::http::{OPENMETRICS, Site};
use crate::metrics;
use crate::protocol::{CtlRequest, CtlResponse};
use crate::socket::Responder;

/// A running pool or server, as the one that clients ask about.
pub trait Subject: Send + Sync + 'static {
    /// What it does and has done, as JSON; `null` once it is gone.
    fn status(&self) -> Value;

    /// Changes parameters of its policy: all of them, or none.
    ///
    /// # Errors
    /// A sentence about what cannot change.
    fn set(&self, params: &[(String, String)]) -> CtlResponse;

    /// Where what it has suspended stands, as JSON.
    ///
    /// # Errors
    /// A sentence about why it cannot say.
    fn stacks(&self) -> CtlResponse;

    /// Writes its metrics.
    ///
    /// # Errors
    /// Those of the encoder.
    fn collect(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result;
}

/// A subject at a control socket, over HTTP, and in a registry of `prometheus-client`.
#[derive(Clone)]
pub struct AskedSubject(Arc<dyn Subject>);

impl AskedSubject {
    /// Of this one.
    #[must_use]
    pub fn of(subject: impl Subject) -> Self {
        Self(Arc::new(subject))
    }
}

impl fmt::Debug for AskedSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AskedSubject")
    }
}

impl Responder for AskedSubject {
    fn respond(&self, request: CtlRequest) -> CtlResponse {
        match request {
            CtlRequest::Status => Ok(self.0.status()),
            CtlRequest::Stacks => self.0.stacks(),
            CtlRequest::Set(params) => self.0.set(&params),
            CtlRequest::Server(..) => Err("it has no servers: ask a rack's switch".into()),
        }
    }
}

impl Collector for AskedSubject {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.collect(encoder)
    }
}

/// A page without external resources: the classes of a pool or a server, once a second.
const PAGE: &str = include_str!("page.html");

impl Site for AskedSubject {
    fn page(&self) -> &'static str {
        PAGE
    }

    fn status(&self) -> Value {
        self.0.status()
    }

    fn metrics(&self) -> String {
        metrics::text(self.clone())
    }

    fn metrics_type(&self) -> &'static str {
        OPENMETRICS
    }
}
