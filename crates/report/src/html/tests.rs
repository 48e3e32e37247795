use super::*;
use crate::table::Table;
use std::fs;

fn chart() -> Chart {
    Chart::new("Tail by load", "load", "p99.9 slowdown")
        .log_y()
        .series(Series::new(
            "c-fcfs",
            vec![(0.5, 12.0), (0.7, 0.0), (0.9, 240.0)],
        ))
        .series(
            Series::new("darc", vec![(0.5, 1.8), (0.9, 4.2)]).error(vec![(1.7, 1.9), (3.0, 5.0)]),
        )
        .series(Series::new("SLO", vec![(0.5, 10.0), (0.9, 10.0)]).dashed())
}

/// How often `needle` occurs.
fn times(haystack: &str, needle: &str) -> usize {
    haystack.matches(needle).count()
}

#[test]
fn a_page_is_complete_and_fetches_nothing() {
    let page = Page::new("Report")
        .heading("Results")
        .paragraph("Text.")
        .chart(&chart())
        .render();
    for open in [
        "html", "head", "body", "main", "figure", "svg ", "table", "details", "script",
    ] {
        let close = format!("</{}>", open.trim());
        assert_eq!(
            times(&page, &format!("<{open}")),
            times(&page, &close),
            "{open}"
        );
    }
    for fetched in ["http:", "https:", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(fetched), "{fetched}");
    }
    assert!(page.len() < 30_000, "{} bytes", page.len());
}

#[test]
fn text_cannot_become_markup() {
    let evil = "<script>alert('1')</script>\"&";
    let table = Table::new([evil]).row([evil]);
    let chart = Chart::new(evil, evil, evil)
        .series(Series::new(evil, vec![(1.0, 1.0)]))
        .note(evil);
    let page = Page::new(evil)
        .heading(evil)
        .paragraph(evil)
        .code(evil)
        .table(evil, &table);
    let page = page.chart(&chart).render();
    assert!(!page.contains("<script>alert"), "{page}");
    assert!(!page.contains("'1'"), "{page}");
    assert!(page.contains("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;&amp;"));
}

#[test]
fn a_point_without_a_place_breaks_the_line_and_is_told() {
    let figure = chart().render(1);
    assert!(
        figure.contains("Not drawn: 1 point without a place"),
        "{figure}"
    );
    let line = figure
        .split("class=\"line\"")
        .find(|part| part.contains("M60.0"))
        .unwrap();
    let path = line.split('"').nth(1).unwrap();
    assert_eq!((times(path, "M"), times(path, "L")), (2, 0), "{path}");
}

#[test]
fn intervals_and_dashes_are_drawn_for_those_that_have_them() {
    let figure = chart().render(1);
    assert_eq!(times(&figure, "class=\"whisker\""), 1);
    assert!(figure.contains("data-y=\"4.20 [3.00, 5.00]\""));
    assert_eq!(
        times(&figure, "dashed"),
        2,
        "in the legend and in the drawing"
    );
}

#[test]
fn every_point_is_in_the_folded_table_even_if_not_drawn() {
    let figure = chart().render(1);
    let rows = figure.split("<tbody>").nth(1).unwrap();
    assert_eq!(times(rows, "<tr>"), 7);
}

#[test]
fn a_chart_without_points_is_still_a_chart() {
    let empty = Chart::new("Nothing yet", "x", "y").series(Series::new("none", vec![]));
    let figure = empty.render(1);
    assert!(
        figure.contains("<svg") && !figure.contains("NaN"),
        "{figure}"
    );
}

#[test]
#[should_panic(expected = "one interval per point of darc")]
fn intervals_must_match_the_points() {
    let _ = Series::new("darc", vec![(0.5, 1.8)]).error(vec![]);
}

#[test]
fn equal_pages_are_equal_bytes_and_a_failed_write_names_the_file() {
    let page = Page::new("Report").chart(&chart());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    page.write(&path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), page.clone().render());
    let error = page
        .write(folder.path().join("missing/report.html"))
        .unwrap_err();
    assert!(error.to_string().contains("missing/report.html"), "{error}");
}
