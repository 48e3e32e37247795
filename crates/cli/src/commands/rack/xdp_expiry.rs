//! Unanswered requests that a switch in the kernel no longer awaits, although their slots were not taken again.

use headway_xdp::ServerRegisters;
use std::collections::VecDeque;
use std::time::Duration;

/// Time without an answer after which the switch forgets a request, as in user space.
pub(super) const ANSWER: Duration = Duration::from_secs(5);
/// Samples within the time for an answer.
const SAMPLES: u64 = 20;

/// How many copies each server had been sent at moments up to the time for an answer ago, and a little longer.
pub(super) struct SentHistory {
    servers: usize,
    answer_ns: u64,
    /// Moments and copies sent by then, oldest first. Only the oldest may be older than the time for an answer.
    samples: VecDeque<(u64, Vec<u64>)>,
}

impl SentHistory {
    /// Nothing was sent yet to `servers` servers. A copy is awaited for `answer`.
    pub(super) fn new(servers: usize, answer: Duration) -> Self {
        Self {
            servers,
            answer_ns: answer.as_nanos() as u64,
            samples: VecDeque::new(),
        }
    }

    /// Takes a sample of the registers, unless the last one is recent.
    pub(super) fn note(&mut self, now_ns: u64, registers: &[ServerRegisters]) {
        let last = self.samples.back();
        if last.is_some_and(|(at_ns, _)| now_ns - at_ns < self.answer_ns / SAMPLES) {
            return;
        }
        let sent = registers.iter().take(self.servers);
        let sent = sent.map(|server| server.sent).collect();
        self.samples.push_back((now_ns, sent));
        let is_old = |(at_ns, _): &(u64, Vec<u64>)| now_ns - at_ns >= self.answer_ns;
        while self.samples.get(1).is_some_and(is_old) {
            self.samples.pop_front();
        }
    }

    /// The copies that each server may still answer: those not answered, and no more than were sent since the time for an answer began.
    pub(super) fn unanswered(&self, registers: &[ServerRegisters]) -> Vec<u64> {
        let servers = registers.iter().take(self.servers).enumerate();
        servers
            .map(|(number, server)| {
                let before = self.sent_before().map_or(0, |sent| sent[number]);
                server.unanswered().min(server.sent - before)
            })
            .collect()
    }

    /// The copies that no server answers any more, and that the registers do not tell as expired.
    pub(super) fn forgotten(&self, registers: &[ServerRegisters]) -> u64 {
        let told = registers.iter().take(self.servers);
        let told: u64 = told.map(ServerRegisters::unanswered).sum();
        told - self.unanswered(registers).iter().sum::<u64>()
    }

    /// The copies sent longer ago than the time for an answer, by server.
    fn sent_before(&self) -> Option<&[u64]> {
        let (oldest, newest) = (self.samples.front()?, self.samples.back()?);
        (newest.0 - oldest.0 >= self.answer_ns).then_some(&oldest.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn registers(sent: u64, answered: u64) -> Vec<ServerRegisters> {
        let server = ServerRegisters {
            sent,
            answered,
            ..ServerRegisters::default()
        };
        vec![server; 3]
    }

    #[test]
    fn a_copy_that_is_never_answered_is_awaited_for_its_time_only() {
        let mut history = SentHistory::new(2, Duration::from_secs(5));
        history.note(0, &registers(0, 0));
        let mut seen = Vec::new();
        for tenths in 1..=80 {
            // Three are sent after a second, and one is answered; a fourth follows after 7 s.
            let now = match tenths {
                ..10 => registers(0, 0),
                10..70 => registers(3, 1),
                _ => registers(4, 1),
            };
            history.note(tenths * SECOND_NS / 10, &now);
            seen.push(history.unanswered(&now));
            let owed: u64 = seen[seen.len() - 1].iter().sum();
            assert_eq!(history.forgotten(&now) + owed, 2 * now[0].unanswered());
        }
        let at = |tenths: usize| &seen[tenths - 1][..];
        assert_eq!(
            (at(9), at(10), at(59)),
            (&[0; 2][..], &[2; 2][..], &[2; 2][..])
        );
        assert_eq!(
            (at(65), at(70), at(80)),
            (&[0; 2][..], &[1; 2][..], &[1; 2][..])
        );
    }

    #[test]
    fn copies_under_load_are_those_that_the_registers_tell() {
        let mut history = SentHistory::new(1, Duration::from_secs(5));
        for second in 0..30 {
            let now = registers(1000 * second + 7, 1000 * second);
            history.note(second * SECOND_NS, &now);
            assert_eq!(history.unanswered(&now), [7]);
        }
    }
}
