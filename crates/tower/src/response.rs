//! A response on its way from the pool, or the answer in its place.

use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use headway_pool::{JobFuture, JoinError, SubmitError};
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Request, Response, StatusCode};

use crate::runtime::TokioOwned;

/// The status of a gRPC request that was refused for overload.
const RESOURCE_EXHAUSTED: &str = "8";

/// The status of a gRPC request whose server ends.
const UNAVAILABLE: &str = "14";

/// The inner service's future in the pool.
pub(crate) type ScheduledJob<R, E> = JobFuture<TokioOwned<Result<Response<R>, E>>>;

/// How a request wants to hear of a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Protocol {
    Http,
    Grpc,
}

impl Protocol {
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        let kind = request.headers().get(CONTENT_TYPE);
        let is_grpc = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
        if is_grpc { Self::Grpc } else { Self::Http }
    }

    /// The answer to a request that was not served.
    fn refusal<R: Default>(self, error: &JoinError) -> Response<R> {
        let retry_after = match error {
            JoinError::Refused(SubmitError::Overloaded { retry_after, .. }) => Some(*retry_after),
            JoinError::Shed(_) => Some(Duration::ZERO),
            _ => None,
        };
        let mut response = Response::new(R::default());
        let headers = response.headers_mut();
        if let Some(retry_after) = retry_after {
            // Whole seconds (RFC 9110, 10.2.3), rounded up.
            let seconds = retry_after.as_secs_f64().ceil().max(1.0) as u64;
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        match self {
            Self::Http => *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE,
            // A response that consists of trailers alone has its status among the headers.
            Self::Grpc => {
                let status = if retry_after.is_some() {
                    RESOURCE_EXHAUSTED
                } else {
                    UNAVAILABLE
                };
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
                headers.insert("grpc-status", HeaderValue::from_static(status));
                let message = HeaderValue::from_str(&percent_encoded(&error.to_string()));
                headers.insert("grpc-message", message.expect("it is printable ASCII"));
            }
        }
        response
    }
}

/// As "gRPC over HTTP/2" wants `Status-Message`: `%` and what is not printable ASCII as `%` and two digits, each byte of UTF-8.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for &byte in text.as_bytes() {
        match byte {
            b'%' | ..0x20 | 0x7f.. => {
                let _ = write!(encoded, "%{byte:02X}");
            }
            _ => encoded.push(char::from(byte)),
        }
    }
    encoded
}

/// The response of a request that runs in a pool. A handler's panic goes on in whoever awaits it, as without the layer.
#[derive(Debug)]
pub struct ScheduledResponse<R, E> {
    job: ScheduledJob<R, E>,
    protocol: Protocol,
}

impl<R, E> ScheduledResponse<R, E> {
    pub(crate) fn new(job: ScheduledJob<R, E>, protocol: Protocol) -> Self {
        Self { job, protocol }
    }
}

impl<R: Default, E> Future for ScheduledResponse<R, E> {
    type Output = Result<Response<R>, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let protocol = self.protocol;
        Pin::new(&mut self.job)
            .poll(context)
            .map(|ended| match ended {
                Ok(response) => response.into_inner(),
                Err(JoinError::Panic(payload)) => std::panic::resume_unwind(payload),
                Err(error) => Ok(protocol.refusal(&error)),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overloaded(retry_after: Duration) -> JoinError {
        let class = "report".into();
        SubmitError::Overloaded {
            class,
            queued: 7,
            retry_after,
        }
        .into()
    }

    #[test]
    fn a_refusal_is_said_in_the_request_s_protocol() {
        let http = Protocol::of(&Request::new(()));
        let answer: Response<()> = http.refusal(&overloaded(Duration::from_millis(1_200)));
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.headers()[RETRY_AFTER], "2");
        let grpc = Request::builder().header(CONTENT_TYPE, "application/grpc+proto");
        let grpc = Protocol::of(&grpc.body(()).unwrap());
        let answer: Response<()> = grpc.refusal(&overloaded(Duration::ZERO));
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()["grpc-status"], RESOURCE_EXHAUSTED);
        let over: Response<()> = grpc.refusal(&JoinError::Abandoned);
        assert_eq!(over.headers()["grpc-status"], UNAVAILABLE);
        assert!(!over.headers().contains_key(RETRY_AFTER));
    }
    #[test]
    fn a_message_of_grpc_is_percent_encoded() {
        let grpc = Protocol::Grpc;
        let answer: Response<()> = grpc.refusal(&overloaded(Duration::from_micros(250)));
        let message = answer.headers()["grpc-message"].to_str().unwrap();
        assert!(
            message.contains(" 7 wait: try again in 250%C2%B5s"),
            "{message}"
        );
        assert_eq!(percent_encoded("100 % of ~\n\u{7f}"), "100 %25 of ~%0A%7F");
    }
}
