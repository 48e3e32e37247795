//! Computes the verdict: one rule for all claims.
//!
//! 1. No figure (an overloaded tail, an SLO that no load meets): not reproduced.
//! 2. Within the tolerance of the paper's figure, within its bound, in its order, and on its side of 1
//!    if the claim names one: reproduced.
//! 3. Otherwise, if the file expects this deviation: deviates as expected.
//! 4. Otherwise, a ratio on the paper's side of 1, or a figure within a factor of two: deviates by x %.
//! 5. Otherwise: not reproduced.
//!
//! The rule ignores `reason`, which is found after the run.

use crate::claim::{Aggregate, Claim, ClaimVerdict, Expected, Judged, Sign};
use crate::figures::{FigureName, Figures};
use crate::text::{on_one_line, quantity};

/// The default relative deviation up to which a figure is reproduced.
const TOLERANCE: f64 = 0.10;
/// A figure off by more than this factor is not reproduced.
const SAME_MAGNITUDE: f64 = 2.0;
/// Points of two curves match if their places differ by less.
const SAME_PLACE: f64 = 1e-9;

/// A figure, or one point of a curve.
#[derive(Clone, Copy)]
struct FigurePoint {
    /// Place on the axis; none for a single figure.
    place: Option<f64>,
    value: f64,
}

impl Claim {
    /// Judges the claim by the measured figures.
    ///
    /// # Errors
    /// The claim names a figure that is not measured, or lacks a part of the comparison.
    pub fn judge(&self, figures: &Figures) -> Result<Judged, String> {
        self.check()?;
        let judged = match &self.ascending {
            Some(names) => self.judge_order(names, figures),
            None => self.judge_figure(figures),
        };
        let judged = judged.map_err(|problem| format!("claim \"{}\": {problem}", self.says))?;
        let reason = match judged.verdict {
            ClaimVerdict::Reproduced => None,
            _ => self.reason.as_deref().map(on_one_line),
        };
        Ok(Judged { reason, ..judged })
    }

    /// Checks that the claim names its figures and the paper's value or bound.
    ///
    /// # Errors
    /// A part is missing, or two parts exclude each other.
    pub fn check(&self) -> Result<(), String> {
        let fault = |problem: &str| Err(format!("claim \"{}\": {problem}", self.says));
        if self.of.is_some() == self.ascending.is_some() {
            return fault("either `of` or `ascending` says what is claimed");
        }
        if self.over.is_some() && self.minus.is_some() {
            return fault("`over` and `minus` exclude one another");
        }
        let bounds = [self.paper, self.at_least, self.at_most];
        if self.of.is_some() && bounds.iter().flatten().count() == 0 && self.sign.is_none() {
            return fault("one of `paper`, `at_least`, `at_most` and `sign` says the paper's part");
        }
        if self.at.is_some() && self.take.is_some() {
            return fault("`at` and `take` exclude one another");
        }
        if !self
            .reason
            .as_ref()
            .is_none_or(|reason: &String| reason.contains(|letter: char| letter.is_ascii_digit()))
        {
            return fault("`reason` must name the figure of the run that shows it");
        }
        Ok(())
    }

    fn judge_order(&self, names: &[String], figures: &Figures) -> Result<Judged, String> {
        let mut values = Vec::new();
        for text in names {
            let points = points(&FigureName::parse(text)?, figures)?;
            values.push(self.pick(&points)?);
        }
        let sorted = values.windows(2).all(|pair| pair[0] < pair[1]);
        let what = FigureName::parse(&names[0])?.what;
        let shown: Vec<_> = values.iter().map(|value| quantity(&what, *value)).collect();
        Ok(Judged {
            says: self.says.clone(),
            figure: names.join(" < "),
            paper: "in this order".into(),
            ours: f64::from(u8::from(sorted)),
            shown: shown.join(", "),
            deviation: None,
            verdict: if sorted {
                ClaimVerdict::Reproduced
            } else {
                ClaimVerdict::NotReproduced
            },
            rule: "each is below the next".into(),
            because: None,
            reason: None,
        })
    }

    fn judge_figure(&self, figures: &Figures) -> Result<Judged, String> {
        let of = FigureName::parse(self.of.as_deref().unwrap_or_default())?;
        let over = self.over.as_deref().map(FigureName::parse).transpose()?;
        let minus = self.minus.as_deref().map(FigureName::parse).transpose()?;
        let mut own = points(&of, figures)?;
        if let Some(over) = &over {
            own = combined(&own, &points(over, figures)?, |of, over| of / over);
        }
        if let Some(minus) = &minus {
            own = combined(&own, &points(minus, figures)?, |of, minus| of - minus);
        }
        let ours = self.pick(&own)?;
        let what = if over.is_some() {
            "ratio"
        } else {
            of.what.as_str()
        };
        let deviation = self.paper.filter(|paper| *paper != 0.0 && ours.is_finite());
        let deviation = deviation.map(|paper| ours / paper - 1.0);
        let verdict = self.verdict(ours, over.is_some());
        let because = match (&self.expected, verdict) {
            (Some(expected), ClaimVerdict::ExpectedDeviation) => Some(expected.because.clone()),
            _ => None,
        };
        Ok(Judged {
            says: self.says.clone(),
            figure: self.figure(),
            paper: self.paper_shown(what),
            ours,
            shown: quantity(what, ours),
            deviation,
            verdict,
            rule: self.rule(over.is_some()),
            because,
            reason: None,
        })
    }

    fn verdict(&self, ours: f64, is_ratio: bool) -> ClaimVerdict {
        if ours.is_finite() && self.holds(ours, is_ratio) {
            return ClaimVerdict::Reproduced;
        }
        if self
            .expected
            .as_ref()
            .is_some_and(|expected| expected.explains(ours))
        {
            return ClaimVerdict::ExpectedDeviation;
        }
        if !ours.is_finite() {
            return ClaimVerdict::NotReproduced;
        }
        let Some(paper) = self.paper.or(self.at_least).or(self.at_most) else {
            return ClaimVerdict::NotReproduced;
        };
        if !self.on_its_side(ours, is_ratio) || paper == 0.0 {
            return ClaimVerdict::NotReproduced;
        }
        let has_side = is_ratio && paper != 1.0;
        let same = if has_side {
            (ours > 1.0) == (paper > 1.0)
        } else {
            let factor = ours / paper;
            (1.0 / SAME_MAGNITUDE..=SAME_MAGNITUDE).contains(&factor)
        };
        if same {
            ClaimVerdict::Deviates(ours / paper - 1.0)
        } else {
            ClaimVerdict::NotReproduced
        }
    }

    fn holds(&self, ours: f64, is_ratio: bool) -> bool {
        self.on_its_side(ours, is_ratio)
            && self
                .paper
                .is_none_or(|paper: f64| (ours - paper).abs() <= self.tolerance() * paper.abs())
            && self.at_least.is_none_or(|bound| ours >= bound)
            && self.at_most.is_none_or(|bound| ours <= bound)
    }

    fn on_its_side(&self, ours: f64, is_ratio: bool) -> bool {
        let even = if is_ratio { 1.0 } else { 0.0 };
        match self.sign {
            None => true,
            Some(Sign::Positive) => ours > even,
            Some(Sign::Negative) => ours < even,
        }
    }

    fn tolerance(&self) -> f64 {
        self.tolerance.unwrap_or(TOLERANCE)
    }

    /// The point that the claim is about.
    fn pick(&self, points: &[FigurePoint]) -> Result<f64, String> {
        if let Some(at) = self.at {
            let there =
                |point: &&FigurePoint| point.place.is_some_and(|x| (x - at).abs() < SAME_PLACE);
            let point = points.iter().find(there);
            return point
                .map(|point| point.value)
                .ok_or(format!("no point at {at}"));
        }
        if let Some(take) = self.take {
            return Ok(take.from(points));
        }
        match points {
            [point] => Ok(point.value),
            _ => Err("it names a curve: `at` or `take` must say which point".into()),
        }
    }

    fn figure(&self) -> String {
        let mut text = self.of.clone().unwrap_or_default();
        for (sign, name) in [("÷", &self.over), ("−", &self.minus)] {
            if let Some(name) = name {
                text = format!("{text} {sign} {name}");
            }
        }
        if let Some(at) = self.at {
            text = format!("{text}, at {at}");
        }
        if let Some(take) = self.take {
            text = format!("{text}, {}", take.word());
        }
        text
    }

    fn paper_shown(&self, what: &str) -> String {
        let mut parts = Vec::new();
        parts.extend(self.paper.map(|paper| quantity(what, paper)));
        parts.extend(
            self.at_least
                .map(|bound| format!("≥ {}", quantity(what, bound))),
        );
        parts.extend(
            self.at_most
                .map(|bound| format!("≤ {}", quantity(what, bound))),
        );
        match self.sign {
            Some(_) if self.paper.is_some() => {}
            Some(Sign::Positive) => parts.push("a gain".into()),
            Some(Sign::Negative) => parts.push("a loss".into()),
            None => {}
        }
        parts.join(", ")
    }

    fn rule(&self, is_ratio: bool) -> String {
        let mut parts = Vec::new();
        if self.paper.is_some() {
            parts.push(format!("within {:.0} %", 100.0 * self.tolerance()));
        }
        if self.at_least.is_some() || self.at_most.is_some() {
            parts.push("within the bound".into());
        }
        let even = if is_ratio { "1" } else { "0" };
        parts.extend(self.sign.map(|sign| match sign {
            Sign::Positive => format!("above {even}"),
            Sign::Negative => format!("below {even}"),
        }));
        parts.join(", ")
    }
}

impl Expected {
    fn explains(&self, ours: f64) -> bool {
        match self.between {
            _ if !ours.is_finite() => self.no_figure,
            Some([least, most]) => (least..=most).contains(&ours),
            None => false,
        }
    }
}

impl Aggregate {
    fn from(self, points: &[FigurePoint]) -> f64 {
        let there: Vec<&FigurePoint> = points
            .iter()
            .filter(|point| point.value.is_finite())
            .collect();
        let largest = there.iter().max_by(|a, b| a.value.total_cmp(&b.value));
        let smallest = there.iter().min_by(|a, b| a.value.total_cmp(&b.value));
        let value = |point: Option<&&FigurePoint>| point.map_or(f64::NAN, |point| point.value);
        let place =
            |point: Option<&&FigurePoint>| point.and_then(|point| point.place).unwrap_or(f64::NAN);
        match self {
            Self::Max => value(largest),
            Self::Min => value(smallest),
            Self::First => value(there.first()),
            Self::Last => value(there.last()),
            Self::Argmax => place(largest),
            Self::Argmin => place(smallest),
            Self::Mean => there.iter().map(|point| point.value).sum::<f64>() / there.len() as f64,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Max => "largest",
            Self::Min => "smallest",
            Self::First => "first",
            Self::Last => "last",
            Self::Mean => "mean",
            Self::Argmax => "place of the largest",
            Self::Argmin => "place of the smallest",
        }
    }
}

fn points(name: &FigureName, figures: &Figures) -> Result<Vec<FigurePoint>, String> {
    let points: Vec<FigurePoint> = figures
        .of(name)
        .map(|datum| FigurePoint {
            place: datum.x,
            value: datum.value,
        })
        .collect();
    if points.is_empty() {
        Err(format!("`{name}` is not measured"))
    } else {
        Ok(points)
    }
}

/// Joins two curves point by point, at the places that both have. A single figure goes with every point.
fn combined(
    own: &[FigurePoint],
    others: &[FigurePoint],
    join: impl Fn(f64, f64) -> f64,
) -> Vec<FigurePoint> {
    own.iter()
        .filter_map(|point: &FigurePoint| {
            let other = others.iter().find(|other| other.goes_with(point))?;
            Some(FigurePoint {
                place: point.place.or(other.place),
                value: join(point.value, other.value),
            })
        })
        .collect()
}

impl FigurePoint {
    /// Whether both points have the same place. A figure without a place goes with every point.
    fn goes_with(&self, other: &FigurePoint) -> bool {
        match (self.place, other.place) {
            (Some(own), Some(other)) => (own - other).abs() < SAME_PLACE,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datum;

    fn figures() -> Figures {
        let mut figures = Figures::default();
        let datum = |system: &str, x, value| Datum {
            system: system.into(),
            what: "overall.slowdown.p999".into(),
            axis: "load".into(),
            x,
            value,
            rests_on: None,
        };
        figures.extend([
            datum("a", Some(0.5), 2.0),
            datum("a", Some(0.9), 30.0),
            datum("b", Some(0.5), 2.0),
            datum("b", Some(0.9), 10.0),
            datum("one", None, 7.0),
            datum("gone", None, f64::NAN),
        ]);
        figures
    }

    fn claim(of: &str, over: Option<&str>) -> Claim {
        let name = |system: &str| format!("{system}: overall.slowdown.p999");
        let text = format!("says = \"so\"\nof = \"{}\"", name(of));
        let mut claim: Claim = toml::from_str(&text).unwrap();
        claim.over = over.map(name);
        claim
    }

    fn verdict(claim: &Claim) -> ClaimVerdict {
        claim.judge(&figures()).unwrap().verdict
    }

    #[test]
    fn the_rule_is_taken_in_its_order() {
        let mut ratio = claim("a", Some("b"));
        ratio.at = Some(0.9);
        ratio.paper = Some(3.1);
        assert_eq!(verdict(&ratio), ClaimVerdict::Reproduced);
        ratio.paper = Some(6.0);
        assert_eq!(verdict(&ratio), ClaimVerdict::Deviates(-0.5));
        ratio.paper = Some(0.5);
        assert_eq!(verdict(&ratio), ClaimVerdict::NotReproduced);
        ratio.expected = Some(Expected {
            between: Some([2.5, 3.5]),
            no_figure: false,
            because: "a prototype's overhead".into(),
        });
        let judged = ratio.judge(&figures()).unwrap();
        assert_eq!(judged.verdict, ClaimVerdict::ExpectedDeviation);
        assert_eq!(judged.because.as_deref(), Some("a prototype's overhead"));
    }

    #[test]
    fn a_figure_further_off_than_twice_is_not_reproduced() {
        let mut figure = claim("one", None);
        figure.paper = Some(4.0);
        assert_eq!(verdict(&figure), ClaimVerdict::Deviates(0.75));
        figure.paper = Some(3.0);
        assert_eq!(verdict(&figure), ClaimVerdict::NotReproduced);
    }

    #[test]
    fn what_does_not_exist_is_not_reproduced() {
        let mut gone = claim("gone", None);
        gone.at_most = Some(10.0);
        assert_eq!(verdict(&gone), ClaimVerdict::NotReproduced);
        let mut unknown = claim("nobody", None);
        unknown.paper = Some(1.0);
        assert!(unknown.judge(&figures()).unwrap_err().contains("nobody"));
    }

    #[test]
    fn a_loss_must_come_out_as_one() {
        let mut loss = claim("b", Some("a"));
        loss.sign = Some(Sign::Negative);
        loss.at = Some(0.9);
        assert_eq!(verdict(&loss), ClaimVerdict::Reproduced);
        loss.at = Some(0.5);
        assert_eq!(verdict(&loss), ClaimVerdict::NotReproduced);
    }

    #[test]
    fn a_curve_needs_a_point() {
        let mut curve = claim("a", None);
        curve.paper = Some(30.0);
        assert!(curve.judge(&figures()).unwrap_err().contains("which point"));
        curve.take = Some(Aggregate::Max);
        assert_eq!(verdict(&curve), ClaimVerdict::Reproduced);
        curve.take = Some(Aggregate::Argmax);
        assert_eq!(curve.judge(&figures()).unwrap().ours, 0.9);
    }

    #[test]
    fn a_reason_is_told_unless_the_claim_is_reproduced() {
        let mut claim = claim("one", None);
        claim.reason = Some("with half the cost\n  it is 6".into());
        let told = |claim: &Claim| claim.judge(&figures()).unwrap().reason;
        for (paper, verdict_is) in [
            (4.0, ClaimVerdict::Deviates(0.75)),
            (3.0, ClaimVerdict::NotReproduced),
        ] {
            claim.paper = Some(paper);
            assert_eq!(verdict(&claim), verdict_is);
            assert_eq!(told(&claim).as_deref(), Some("with half the cost it is 6"));
        }
        claim.paper = Some(7.0);
        assert_eq!(told(&claim), None);
    }

    #[test]
    fn a_reason_without_a_figure_is_refused() {
        let mut claim = claim("one", None);
        claim.paper = Some(4.0);
        for reason in ["", "the prototype is slower"] {
            claim.reason = Some(reason.into());
            let problem = claim.check().unwrap_err();
            assert!(
                problem.contains("`reason` must name the figure"),
                "{problem}"
            );
        }
        let misspelt = "says = \"so\"\nof = \"one: rps\"\npaper = 1.0\nreasons = \"7\"";
        let problem = toml::from_str::<Claim>(misspelt).unwrap_err().to_string();
        assert!(problem.contains("unknown field `reasons`"), "{problem}");
    }

    #[test]
    fn an_order_is_strict() {
        let order = |names: [&str; 2]| {
            let mut claim = claim("a", None);
            claim.of = None;
            claim.at = Some(0.5);
            claim.ascending = Some(
                names
                    .map(|system: &str| format!("{system}: overall.slowdown.p999"))
                    .to_vec(),
            );
            claim
        };
        let mut apart = order(["b", "a"]);
        assert_eq!(verdict(&apart), ClaimVerdict::NotReproduced);
        apart.at = Some(0.9);
        assert_eq!(verdict(&apart), ClaimVerdict::Reproduced);
    }
}
