//! The drawing of a schedule: a lane per worker, a bar per slice.

use std::fmt::Write as _;

use super::axis::Axis;
use super::text::escape;
use crate::format::duration_us;
use crate::schedule::{Schedule, Slice};

const WIDTH: f64 = 800.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 792.0;
const TOP: f64 = 8.0;
const LANE: f64 = 16.0;
/// Colours in the style sheet.
const COLOURS: usize = 8;
/// The most bars that are drawn: a page should open at once.
const BARS_MAX: usize = 4_000;

/// The figure.
pub(super) fn figure(schedule: &Schedule) -> String {
    let lanes = schedule.lanes();
    let bottom = TOP + LANE * lanes.len() as f64;
    let bars: Vec<String> = schedule
        .shown()
        .take(BARS_MAX)
        .map(|slice| bar(schedule, slice))
        .collect();
    let left_out = schedule.shown().count() - bars.len();
    let note = match left_out {
        0 => String::new(),
        _ => format!("<p class=\"note\">{left_out} further slices are not drawn.</p>\n"),
    };
    format!(
        "<figure class=\"schedule\">\n<figcaption>Who ran what, from {} on</figcaption>\n{}\
         <div class=\"scroll\"><svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"A lane per worker, \
         a bar per stretch of service\">\n{}{}{}</svg></div>\n\
         <p class=\"note\">A bar with a dark end was interrupted there. Point at a bar to read it.</p>\n{note}</figure>\n",
        duration_us(schedule.window.start as f64 / 1e3),
        legend(schedule),
        bottom + 26.0,
        names(&lanes),
        axis(schedule, bottom),
        bars.concat(),
    )
}

fn across(schedule: &Schedule, at_ns: u64) -> f64 {
    let window = &schedule.window;
    let at = at_ns.clamp(window.start, window.end) - window.start;
    let length = (window.end - window.start).max(1);
    LEFT + (RIGHT - LEFT) * at as f64 / length as f64
}

fn bar(schedule: &Schedule, slice: &Slice) -> String {
    let (from, to) = (
        across(schedule, slice.from_ns),
        across(schedule, slice.to_ns),
    );
    let y = TOP + LANE * schedule.lane(slice.runner) as f64 + 1.0;
    let height = LANE - 2.0;
    let class = escape(&schedule.classes[slice.class]);
    let us = |ns: u64| duration_us(ns as f64 / 1e3);
    let mut bar = format!(
        "<g class=\"c{}\"><rect class=\"bar\" x=\"{from:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{height}\">\
         <title>{class} #{}: {} of {}, after waiting {}{}</title></rect>",
        slice.class % COLOURS,
        (to - from).max(0.4),
        slice.request,
        us(slice.to_ns - slice.from_ns),
        us(slice.service_ns),
        us(slice.from_ns - slice.waited_from_ns),
        if slice.done { "" } else { "; interrupted" },
    );
    if !slice.done && slice.to_ns <= schedule.window.end {
        let _ = write!(
            bar,
            "<rect class=\"cut\" x=\"{:.2}\" y=\"{y}\" width=\"1.5\" height=\"{height}\"/>",
            to - 1.5
        );
    }
    bar + "</g>\n"
}

fn legend(schedule: &Schedule) -> String {
    let entries: String = schedule
        .classes
        .iter()
        .enumerate()
        .map(|(index, class): (usize, &String)| {
            let colour = index % COLOURS;
            format!(
                "<span class=\"c{colour}\"><span class=\"key\"></span>{}</span>\n",
                escape(class)
            )
        })
        .collect();
    format!("<p class=\"classes\">{entries}</p>\n")
}

fn names(lanes: &[String]) -> String {
    let mut text = String::new();
    for (index, lane) in lanes.iter().enumerate() {
        let y = TOP + LANE * index as f64;
        let _ = writeln!(
            text,
            "<text class=\"y\" x=\"{}\" y=\"{}\">{lane}</text>",
            LEFT - 8.0,
            y + LANE - 4.0
        );
    }
    text
}

/// Time since the window's start, in µs.
fn axis(schedule: &Schedule, bottom: f64) -> String {
    let length_us = (schedule.window.end - schedule.window.start) as f64 / 1e3;
    let axis = Axis::over([0.0, length_us].into_iter(), false, true);
    let mut grid = String::from("<g class=\"grid\">\n");
    for tick in axis.ticks() {
        if !(0.0..=length_us).contains(&tick.value) {
            continue;
        }
        let x = LEFT + (RIGHT - LEFT) * tick.value / length_us;
        let _ = writeln!(
            grid,
            "<line class=\"major\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>\
             <text class=\"x\" x=\"{x:.1}\" y=\"{}\">{} µs</text>",
            bottom + 16.0,
            tick.label
        );
    }
    grid + "</g>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::Page;
    use crate::schedule::Runner::{Dispatcher, Worker};

    #[test]
    fn every_slice_of_the_window_is_a_bar_in_its_lane() {
        let slice = |runner, from_ns, to_ns, done| Slice {
            request: 7,
            class: 1,
            service_ns: 9_000,
            runner,
            waited_from_ns: from_ns,
            from_ns,
            to_ns,
            resumed: false,
            done,
        };
        let schedule = Schedule {
            classes: vec!["GET".into(), "<SCAN>".into()],
            workers: 2,
            window: 1_000..11_000,
            slices: vec![
                slice(Worker(0), 0, 6_000, false),
                slice(Dispatcher(0), 2_000, 3_000, true),
                slice(Worker(1), 20_000, 21_000, true),
            ],
        };
        let page = Page::new("t").schedule(&schedule).render();
        assert_eq!(page.matches("class=\"bar\"").count(), 2);
        assert_eq!(page.matches("class=\"cut\"").count(), 1);
        assert!(page.contains("worker 1") && page.contains("dispatcher"));
        assert!(
            page.contains("&lt;SCAN&gt; #7: 6.00 µs of 9.00 µs"),
            "{page}"
        );
        assert!(!page.contains("<SCAN>"));
        // Half of the window is half of the lane: 1 to 6 µs of 1 to 11.
        assert!(
            page.contains("x=\"84.00\" y=\"9\" width=\"354.00\""),
            "{page}"
        );
    }
}
