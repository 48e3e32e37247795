//! The control plane of a live switch: registers in, tables out. Its loop is `control_loop.rs`.

use crate::SwitchTables;
use headway_plan::RackSlo;
use headway_policy::ClassId;
use headway_policy::rack::{ControlPlane, DemandReading, ServerId, Turns};
use std::sync::Arc;

/// Candidate layouts to be scored, with everything that a score depends on.
pub struct ScoringTask {
    /// The control plane at the look that found the demand moved.
    pub control: ControlPlane,
    /// Offered load in the interval before, as a fraction of all cores.
    pub load: f64,
}

/// The control plane of a switch without its clock: [`look`](Self::look) is called every interval.
pub struct RackControl {
    control: ControlPlane,
    tables: Arc<SwitchTables>,
    /// Counts at the last look, by type.
    counted: Vec<u64>,
    readings: Vec<DemandReading>,
    /// Requests that had overflowed at the last look.
    overflowed: u64,
    /// The types whose execution time was declared or measured.
    known: Vec<bool>,
    /// Whether types became known since the last planning began.
    wants_planning: bool,
    adapting: bool,
}

impl RackControl {
    /// Runs a control plane that has chosen its first layout, and publishes that layout.
    #[must_use]
    pub fn new(control: ControlPlane, tables: Arc<SwitchTables>) -> Self {
        tables.publish(&control);
        Self::over(control, tables)
    }

    /// Resumes from the tables that an earlier control plane published: its groups, layout and demand stay in force. `None` when it published
    /// none. A planning that it had begun starts again.
    #[must_use]
    pub fn take_up(tables: Arc<SwitchTables>) -> Option<Self> {
        let mut control = tables.last()?;
        let planned = control.abandon_planning();
        let mut rack = Self::over(control, tables);
        rack.wants_planning = planned;
        for (class, known) in rack.known.iter_mut().enumerate() {
            *known |= rack.tables.reading(ClassId(class as u16)).execution_ns > 0;
        }
        Some(rack)
    }

    fn over(control: ControlPlane, tables: Arc<SwitchTables>) -> Self {
        let classes = tables.classes();
        let types = control.demand().types().iter();
        let mut known: Vec<bool> = types.map(|hint| hint.share > 0.0).collect();
        known.resize(classes, false);
        Self {
            control,
            // A resumed control plane starts at the current counts, so that its first look counts only requests of one interval.
            counted: (0..classes)
                .map(|class| tables.reading(ClassId(class as u16)).count)
                .collect(),
            overflowed: tables.overflowed(),
            tables,
            readings: vec![DemandReading::default(); classes],
            known,
            wants_planning: false,
            adapting: true,
        }
    }

    /// With `false` the groups ignore the demand; the layout still follows servers that leave and come back.
    #[must_use]
    pub fn adapting(mut self, adapting: bool) -> Self {
        self.adapting = adapting;
        self
    }

    /// Whether a look is due, so long after the last.
    #[must_use]
    pub fn is_due(&self, elapsed_ns: u64) -> bool {
        let overflowed = self.tables.overflowed().wrapping_sub(self.overflowed);
        let counted = self.counted.iter().enumerate();
        let requests = counted.map(|(class, counted)| {
            let now = self.tables.reading(ClassId(class as u16));
            now.count.wrapping_sub(*counted)
        });
        self.control
            .rules()
            .is_due(elapsed_ns, requests.sum(), overflowed)
    }

    /// Reads the registers of the last `elapsed_ns`. Returns candidates to score when the demand has moved and no others are being scored.
    ///
    /// # Panics
    /// When `elapsed_ns` is 0.
    pub fn look(&mut self, elapsed_ns: u64) -> Option<ScoringTask> {
        let classes = self.counted.len();
        for (class, (counted, reading)) in
            self.counted.iter_mut().zip(&mut self.readings).enumerate()
        {
            let now = self.tables.reading(ClassId(class as u16));
            // A type's execution time is unknown until its first response.
            let is_known = self.known[class] || now.execution_ns > 0;
            *reading = DemandReading {
                count: if is_known {
                    now.count.wrapping_sub(*counted)
                } else {
                    0
                },
                ..now
            };
            *counted = now.count;
            self.wants_planning |= is_known && !self.known[class] && class + 1 < classes;
            self.known[class] = is_known;
        }
        self.overflowed = self.tables.overflowed();
        self.follow_servers();
        let mut begins = self.control.measured(&self.readings, elapsed_ns);
        if !begins && self.wants_planning {
            begins = self.control.plan_anew();
        }
        if begins {
            self.wants_planning = false;
        }
        let begins = begins && self.adapting;
        begins.then(|| ScoringTask {
            load: self.control.load(),
            control: self.control.clone(),
        })
    }

    /// Lays the rack out anew when servers left, came back or changed their number of cores.
    fn follow_servers(&mut self) {
        let control = &mut self.control;
        let changed = self.tables.with_report(|report| {
            let mut changed = false;
            for (number, &cores) in report.cores.iter().enumerate() {
                if control.layout().capacity(number) != cores {
                    control.capacity(ServerId(number as u16), cores);
                    changed = true;
                }
            }
            changed
        });
        if changed {
            self.tables.publish(&self.control);
        }
    }

    /// Publishes the tables of the candidate with the best score.
    ///
    /// # Panics
    /// When the number of scores differs from the number of candidates.
    pub fn scored(&mut self, scores: &[f64]) {
        self.control.choose(scores);
        self.tables.publish(&self.control);
    }

    /// The tables that it shares with the switch, and whether the groups follow the demand.
    pub(crate) fn to_take_up(&self) -> (Arc<SwitchTables>, bool) {
        (Arc::clone(&self.tables), self.adapting)
    }

    /// The control plane itself: its demand, groups and layout.
    #[must_use]
    pub fn control(&self) -> &ControlPlane {
        &self.control
    }
}

/// Scores candidates on this machine, by simulation, with an SLO by how far they use its tightest bound. A trial that cannot be simulated leaves all candidates alike, so that the fewest
/// groups win.
#[must_use]
pub fn score_by_simulation(
    cores: &[usize],
    turns: Turns,
    slo: Option<&RackSlo>,
    task: &ScoringTask,
) -> Vec<f64> {
    headway_plan::score_candidates(cores, &task.control, task.load, turns, slo)
        .unwrap_or_else(|_| vec![f64::INFINITY; task.control.candidates().len()])
}
