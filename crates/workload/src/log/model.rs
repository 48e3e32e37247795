//! Service times for operations of which a log has only the names.

use std::str::FromStr;

use thiserror::Error;

use crate::duration;
use crate::error::Problem;

/// Service times by operation: `get=1.2us,set=2us+300ns/KiB,*=5us`.
///
/// An operation takes a fixed time, and may take more for each KiB of its value (for Redis: of its
/// arguments). `*` stands for all others. Case is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServiceModel {
    prices: Vec<Price>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Price {
    class: String,
    fixed_ns: u64,
    per_kib_ns: u64,
}

/// Why a text is no [`ServiceModel`].
#[derive(Clone, PartialEq, Eq, Error)]
pub enum ModelError {
    /// A part is not `operation=time`.
    #[error(
        "`{0}` does not say how long what takes; write it like `get=1.2us` or `set=2us+300ns/KiB`"
    )]
    Shape(String),
    /// A part's time is not valid.
    #[error("`{part}`: {error}")]
    Time {
        /// The part.
        part: String,
        /// The problem with its time.
        error: duration::DurationParseError,
    },
    /// A part's time is zero.
    #[error("`{0}` takes no time; a request takes at least 1ns")]
    Nothing(String),
    /// An operation occurs twice.
    #[error("`{0}` is there twice")]
    Twice(String),
}

headway_words::debug_is_display!(ModelError);

impl ServiceModel {
    /// Whether it has no operation.
    pub(crate) fn is_empty(&self) -> bool {
        self.prices.is_empty()
    }

    /// The service time of an operation, which the model must have.
    pub(crate) fn of(&self, class: &str, bytes: u64) -> Result<u64, Problem> {
        let priced = self.service_ns(class, bytes);
        priced.ok_or_else(|| Problem::Unpriced {
            class: class.to_owned(),
        })
    }

    /// The service time of an operation on this number of bytes; `None` when the model lacks the operation.
    #[must_use]
    pub fn service_ns(&self, class: &str, bytes: u64) -> Option<u64> {
        let named = |name: &str| {
            let prices = self.prices.iter();
            prices
                .clone()
                .find(|price| price.class.eq_ignore_ascii_case(name))
        };
        let price = named(class).or_else(|| named("*"))?;
        let size_ns = u128::from(price.per_kib_ns) * u128::from(bytes) / 1024;
        let size_ns = u64::try_from(size_ns).unwrap_or(u64::MAX);
        // Below 104 days, as all service times.
        Some(
            price
                .fixed_ns
                .saturating_add(size_ns)
                .clamp(1, (1 << 53) - 1),
        )
    }
}

impl FromStr for ServiceModel {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        let mut prices: Vec<Price> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let price = price(part)?;
            if prices
                .iter()
                .any(|known| known.class.eq_ignore_ascii_case(&price.class))
            {
                return Err(ModelError::Twice(price.class));
            }
            prices.push(price);
        }
        Ok(Self { prices })
    }
}

fn price(part: &str) -> Result<Price, ModelError> {
    let shape = || ModelError::Shape(part.to_owned());
    let time = |text: &str| {
        duration::parse(text).map_err(|error| ModelError::Time {
            part: part.to_owned(),
            error,
        })
    };
    let (class, price) = part.split_once('=').ok_or_else(shape)?;
    let (fixed, per_kib) = match price.split_once('+') {
        Some((fixed, sized)) => (fixed, sized.trim().strip_suffix("/KiB").ok_or_else(shape)?),
        None => match price.trim().strip_suffix("/KiB") {
            Some(sized) => ("0", sized),
            None => (price, "0"),
        },
    };
    let price = Price {
        class: class.trim().to_owned(),
        fixed_ns: time(fixed)?,
        per_kib_ns: time(per_kib)?,
    };
    if price.class.is_empty() {
        return Err(shape());
    }
    match (price.fixed_ns, price.per_kib_ns) {
        (0, 0) => Err(ModelError::Nothing(part.to_owned())),
        _ => Ok(price),
    }
}
