//! A setup back in the words that set it.

use crate::SystemSetup;
use headway_policy::Resume;
use headway_sim::Classification;
use headway_workload::duration;

impl SystemSetup {
    /// The names and texts that make this setup of the default one by [`set`](Self::set).
    ///
    /// ```
    /// use headway_study::SystemSetup;
    ///
    /// let mut setup = SystemSetup::default();
    /// setup.set("network", "10us")?;
    /// assert_eq!(setup.texts(), [("network", "10us".to_owned())]);
    /// # Ok::<(), headway_study::Mistake>(())
    /// ```
    #[must_use]
    pub fn texts(&self) -> Vec<(&'static str, String)> {
        let plain = Self::default();
        let time = |ns: &u64| duration::format(*ns);
        let single = [
            ("workers", differs(&self.workers, &plain.workers)),
            ("cores", self.cores.map(|it| it.to_string())),
            ("servers", differs(&self.servers, &plain.servers)),
            ("racks", differs(&self.racks, &plain.racks)),
            ("requests", self.requests.map(|it| it.to_string())),
            ("duration", self.duration_ns.as_ref().map(time)),
            ("seed", differs(&self.seed, &plain.seed)),
            (
                "costs",
                self.costs.as_ref().map(|it| it.display().to_string()),
            ),
            ("dispatch-cost", self.dispatch_ns.as_ref().map(time)),
            (
                "network",
                (self.network_ns > 0).then(|| time(&self.network_ns)),
            ),
            ("queue-limit", self.queue_limit.map(|it| it.to_string())),
            ("begun-at-most", self.begun_at_most.map(|it| it.to_string())),
            (
                "resume",
                (self.resume == Resume::OwnWorker).then(|| "own-worker".into()),
            ),
            (
                "classifier",
                (self.classifier == Classification::Random).then(|| "random".into()),
            ),
            (
                "unknown",
                differs(&self.unknown_share, &plain.unknown_share),
            ),
        ];
        let single = single.into_iter();
        let mut texts: Vec<_> = single
            .filter_map(|(name, text)| Some((name, text?)))
            .collect();
        texts.extend(self.core_changes.iter().map(|change| {
            let sign = if change.present { '+' } else { '-' };
            let text = format!("{}:{sign}{}", time(&change.at_ns), change.worker.0);
            ("core-change", text)
        }));
        texts
    }
}

/// A value's text, where it is not the default.
fn differs<T: PartialEq + ToString>(value: &T, default: &T) -> Option<String> {
    (value != default).then(|| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let given = [
            ("workers", "3"),
            ("servers", "4"),
            ("racks", "2"),
            ("requests", "20k"),
            ("seed", "7"),
            ("costs", "costs of mine.json"),
            ("dispatch-cost", "150ns"),
            ("network", "1.5us"),
            ("queue-limit", "5k"),
            ("begun-at-most", "100"),
            ("resume", "own-worker"),
            ("classifier", "random"),
            ("unknown", "0.1"),
            ("core-change", "20ms:-3"),
            ("core-change", "1.5s:+3"),
        ];
        let set = |texts: &[(&str, String)]| {
            let mut setup = SystemSetup::default();
            for (name, text) in texts {
                setup.set(name, text).unwrap();
            }
            setup
        };
        let whole = set(&given.map(|(name, text)| (name, text.to_owned())));
        assert_eq!(set(&whole.texts()), whole);
        let other = set(&[("cores", "9".into()), ("duration", "20ms".into())]);
        assert_eq!(set(&other.texts()), other);
        let names: Vec<&str> = [whole.texts(), other.texts()]
            .concat()
            .iter()
            .map(|(name, _)| *name)
            .collect();
        for name in SystemSetup::NAMES {
            assert!(names.contains(&name), "{name} has no text");
        }
        assert_eq!(SystemSetup::default().texts(), []);
    }
}
