//! A response on its way from the pool, or the answer in its place.

use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use headway_machine::stderr::write_line;
use headway_pool::{JobFuture, JoinError, SubmitError};
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Request, Response, StatusCode};

use crate::runtime::TokioOwned;

/// A status of gRPC.
type GrpcStatus = &'static str;

const RESOURCE_EXHAUSTED: GrpcStatus = "8";
const INTERNAL: GrpcStatus = "13";
const UNAVAILABLE: GrpcStatus = "14";

/// Whether the program's `classify` named what is no class of the pool: no load and no retry changes that.
fn is_mistake(error: &JoinError) -> bool {
    use SubmitError::{NothingLearns, OtherPool, UnknownClass};
    matches!(
        error,
        JoinError::Refused(UnknownClass { .. } | OtherPool | NothingLearns)
    )
}

/// Says on standard error, once for a layer, that its `classify` is mistaken: the answers alone would look like a broken service.
#[derive(Clone, Debug, Default)]
pub(crate) struct MistakeNotice {
    is_told: Arc<AtomicBool>,
}

impl MistakeNotice {
    fn tell(&self, error: &JoinError) {
        if !is_mistake(error) || self.is_told.swap(true, Ordering::Relaxed) {
            return;
        }
        // The class may be a part of the request.
        let why = headway_words::escaped(&error.to_string());
        write_line(&format!(
            "headway: the function of a ScheduleLayer gave a request no class of its pool, so it was answered by 500 or INTERNAL, as others may be: {why}"
        ));
    }
}

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
        let (http_status, grpc_status) = if is_mistake(error) {
            (StatusCode::INTERNAL_SERVER_ERROR, INTERNAL)
        } else if retry_after.is_some() {
            (StatusCode::SERVICE_UNAVAILABLE, RESOURCE_EXHAUSTED)
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE)
        };
        match self {
            Self::Http => *response.status_mut() = http_status,
            // A response that consists of trailers alone has its status among the headers.
            Self::Grpc => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
                headers.insert("grpc-status", HeaderValue::from_static(grpc_status));
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
    notice: MistakeNotice,
}

impl<R, E> ScheduledResponse<R, E> {
    pub(crate) fn new(job: ScheduledJob<R, E>, protocol: Protocol, notice: MistakeNotice) -> Self {
        Self {
            job,
            protocol,
            notice,
        }
    }
}

impl<R: Default, E> Future for ScheduledResponse<R, E> {
    type Output = Result<Response<R>, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = std::task::ready!(Pin::new(&mut self.job).poll(context));
        Poll::Ready(match ended {
            Ok(response) => response.into_inner(),
            Err(JoinError::Panic(payload)) => std::panic::resume_unwind(payload.into_inner()),
            Err(error) => {
                self.notice.tell(&error);
                Ok(self.protocol.refusal(&error))
            }
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
    fn a_class_that_is_none_is_no_overload() {
        let unknown = SubmitError::UnknownClass {
            name: "nonesuch".into(),
            known: vec!["point".into()],
        };
        for mistake in [unknown, SubmitError::OtherPool, SubmitError::NothingLearns] {
            let error = JoinError::from(mistake);
            let http: Response<()> = Protocol::Http.refusal(&error);
            assert_eq!(http.status(), StatusCode::INTERNAL_SERVER_ERROR, "{error}");
            let grpc: Response<()> = Protocol::Grpc.refusal(&error);
            assert_eq!(grpc.headers()["grpc-status"], INTERNAL, "{error}");
        }
        let over = JoinError::from(SubmitError::ShutDown);
        let over: Response<()> = Protocol::Http.refusal(&over);
        assert_eq!(over.status(), StatusCode::SERVICE_UNAVAILABLE);
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
