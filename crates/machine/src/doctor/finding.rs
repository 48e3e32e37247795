//! What was found out about one feature.

use std::fmt;

/// How good a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Good,
    /// Works, but latencies suffer.
    Degraded,
    /// Not available. The server uses a substitute, or refuses to start if it was asked for this.
    Absent,
}

impl fmt::Display for Severity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Severity::Good => "good",
            Severity::Degraded => "degraded",
            Severity::Absent => "absent",
        })
    }
}

/// One thing looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The feature examined, in a few words.
    pub name: &'static str,
    /// How well it is supported.
    pub level: Severity,
    /// The finding.
    pub detail: String,
    /// The remedy, if one is needed and possible.
    pub remedy: Option<String>,
}

impl Finding {
    pub(super) fn good(name: &'static str, detail: impl Into<String>) -> Finding {
        Finding {
            name,
            level: Severity::Good,
            detail: detail.into(),
            remedy: None,
        }
    }

    pub(super) fn bad(name: &'static str, level: Severity, detail: impl Into<String>) -> Finding {
        Finding {
            name,
            level,
            detail: detail.into(),
            remedy: None,
        }
    }

    pub(super) fn remedy(self, remedy: impl Into<String>) -> Finding {
        Finding {
            remedy: Some(remedy.into()),
            ..self
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:<9} {}: {}", self.level, self.name, self.detail)?;
        match &self.remedy {
            Some(remedy) => write!(out, " ({remedy})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_one_line() {
        let finding = Finding::bad("steering", Severity::Absent, "refused").remedy("allow it");
        assert_eq!(
            finding.to_string(),
            "absent    steering: refused (allow it)"
        );
    }
}
