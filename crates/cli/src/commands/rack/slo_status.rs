//! The SLO in a switch's status: each bound with its counts.

use headway_policy::ClassId;
use headway_rack::slo::{SloCounts, keeps};
use headway_report::Slo;
use headway_report::slo::{Bound, Scope};
use serde_json::{Value, json};

/// A bound, and the types whose requests it bounds together.
struct BoundOfTypes {
    /// Its number in the SLO.
    number: usize,
    bound: Bound,
    types: Vec<ClassId>,
}

/// Each bound with its counts, which are null while the switch has none. A bound of `class.*` becomes one for each type of `names`, the types
/// known so far; `classes` counts all types, UNKNOWN included.
pub(super) fn bounds(
    slo: &Slo,
    names: &[String],
    classes: usize,
    counts: Option<&SloCounts>,
) -> Vec<Value> {
    let bounds = slo.bounds().iter().enumerate();
    let bounds = bounds.flat_map(|(number, bound)| of_types(number, bound, names, classes));
    bounds.map(|of_types| of_types.value(counts)).collect()
}

fn of_types(number: usize, bound: &Bound, names: &[String], classes: usize) -> Vec<BoundOfTypes> {
    let with = |scope: Scope, types: Vec<ClassId>| BoundOfTypes {
        number,
        bound: Bound {
            scope,
            ..bound.clone()
        },
        types,
    };
    let named = names.iter().zip(0..);
    match &bound.scope {
        Scope::Overall => {
            let all = (0..classes as u16).map(ClassId).collect();
            vec![with(Scope::Overall, all)]
        }
        Scope::EveryClass => named
            .map(|(name, class)| with(Scope::Class(name.clone()), vec![ClassId(class)]))
            .collect(),
        Scope::Class(asked) => named
            .filter(|(name, _)| *name == asked)
            .map(|(name, class)| with(Scope::Class(name.clone()), vec![ClassId(class)]))
            .collect(),
    }
}

impl BoundOfTypes {
    fn value(&self, counts: Option<&SloCounts>) -> Value {
        let answered = counts.map(|counts| {
            let of_types = self.types.iter();
            of_types.map(|&class| counts.answered(class)).sum()
        });
        let exceeded = counts.map(|counts| {
            let of_types = self.types.iter();
            of_types
                .map(|&class| counts.exceeded(class, self.number))
                .sum()
        });
        let met = answered
            .zip(exceeded)
            .and_then(|(answered, exceeded)| keeps(&self.bound, answered, exceeded));
        json!({
            "bound": self.bound.to_string(),
            "answered": answered,
            "exceeded": exceeded,
            "met": met,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_rack::slo::SloWatch;

    #[test]
    fn a_bound_of_every_class_is_one_for_each_known_type() {
        let slo: Slo =
            "class.*.latency.p99<=10us,overall.latency.max<=1ms,class.short.slowdown.p50<=2"
                .parse()
                .unwrap();
        let names = ["short".to_owned(), "type 7".to_owned()];
        let bounds = |counts: Option<&SloCounts>| bounds(&slo, &names, 3, counts);
        let none = json!({ "bound": "class.type 7.latency.p99<=10us", "answered": null, "exceeded": null, "met": null });
        assert_eq!(bounds(None).len(), 4);
        assert_eq!(bounds(None)[1], none);
        let watch = SloWatch::new(&slo, 3).unwrap();
        let nothing = json!({ "bound": "overall.latency.max<=1ms", "answered": 0, "exceeded": 0, "met": null });
        assert_eq!(bounds(Some(watch.counts()))[2], nothing);
    }
}
