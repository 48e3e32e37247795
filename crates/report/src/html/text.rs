//! Text and tables as HTML.

use std::fmt::Write as _;

use crate::table::Table;

/// The table under a caption, which may be empty.
pub(super) fn table_html(caption: &str, table: &Table) -> String {
    let mut html = String::from("<table>\n");
    if !caption.is_empty() {
        let _ = writeln!(html, "<caption>{}</caption>", escape(caption));
    }
    let class = |column| {
        if table.is_numeric(column) {
            " class=\"number\""
        } else {
            ""
        }
    };
    html.push_str("<thead><tr>");
    for (column, name) in table.columns().iter().enumerate() {
        let _ = write!(
            html,
            "<th scope=\"col\"{}>{}</th>",
            class(column),
            escape(name)
        );
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in table.rows() {
        html.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let _ = write!(html, "<td{}>{}</td>", class(column), escape(cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n");
    html
}

/// `text` with the characters that HTML gives a meaning replaced, for elements and attributes.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}
