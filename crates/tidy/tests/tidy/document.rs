//! The parts of a Markdown document that the tests check.

use crate::tree;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::collections::{HashMap, HashSet};

/// An item of a document, with its first line.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    pub(crate) line: usize,
    pub(crate) item: T,
}

/// A fenced block of code.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    /// The info string after the opening fence.
    pub(crate) info: String,
    pub(crate) text: String,
}

/// A cell of a table: its text without markup, and the targets of its links.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) links: Vec<String>,
}

/// The rows of a table, the head first.
pub(crate) type Table = Vec<At<Vec<Cell>>>;

/// The checked parts of a document, each in its order.
#[derive(Debug, Default)]
pub(crate) struct Document {
    /// The path from the repository's root.
    pub(crate) path: String,
    /// The targets of links and images.
    pub(crate) links: Vec<At<String>>,
    /// The fragments of headings and anchors.
    pub(crate) anchors: HashSet<String>,
    pub(crate) blocks: Vec<At<Block>>,
    /// Code within sentences.
    pub(crate) codes: Vec<At<String>>,
    pub(crate) tables: Vec<Table>,
}

impl Document {
    /// Reads the document at a path from the root.
    pub(crate) fn read(path: &str) -> Self {
        Self::parse(path, &tree::read(path))
    }

    /// Every document of the repository.
    pub(crate) fn all() -> Vec<Self> {
        let paths = tree::files(&["md"]);
        paths.iter().map(|path| Self::read(path)).collect()
    }

    pub(crate) fn parse(path: &str, text: &str) -> Self {
        let mut reader = Reader {
            document: Self {
                path: path.to_string(),
                ..Self::default()
            },
            ..Reader::default()
        };
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
        let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            let line = 1 + ends.partition_point(|&end| end < range.start);
            reader.take(event, line);
        }
        reader.document
    }

    /// A fault in a line of this document.
    pub(crate) fn fault(&self, line: usize, what: impl std::fmt::Display) -> String {
        format!("{}:{line}: {what}", self.path)
    }
}

#[derive(Default)]
struct Reader {
    document: Document,
    heading: Option<String>,
    /// The number of headings with each fragment: GitHub numbers the later ones.
    fragments: HashMap<String, usize>,
    in_block: bool,
    in_cell: bool,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, line: usize) {
        match event {
            Event::Start(tag) => self.start(tag, line),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(code) => {
                self.text(&code);
                let item = code.to_string();
                self.document.codes.push(At { line, item });
            }
            Event::Html(html) | Event::InlineHtml(html) => self.html(&html, line),
            Event::SoftBreak | Event::HardBreak => self.text(" "),
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>, line: usize) {
        match tag {
            Tag::Heading { .. } => self.heading = Some(String::new()),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                let item = dest_url.to_string();
                if let (true, Some(cell)) = (self.in_cell, self.cell()) {
                    cell.links.push(item.clone());
                }
                self.document.links.push(At { line, item });
            }
            Tag::CodeBlock(CodeBlockKind::Fenced(info)) => {
                let item = Block {
                    info: info.to_string(),
                    text: String::new(),
                };
                self.document.blocks.push(At { line, item });
                self.in_block = true;
            }
            Tag::Table(_) => self.document.tables.push(Table::new()),
            Tag::TableHead | Tag::TableRow => {
                let item = Vec::new();
                let table = self.document.tables.last_mut().expect("rows are in tables");
                table.push(At { line, item });
            }
            Tag::TableCell => {
                let table = self.document.tables.last_mut();
                let row = table.and_then(|table| table.last_mut());
                row.expect("cells are in rows").item.push(Cell::default());
                self.in_cell = true;
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                let heading = self.heading.take().unwrap_or_default();
                let fragment = fragment(&heading);
                let earlier = self.fragments.entry(fragment.clone()).or_default();
                let anchor = match *earlier {
                    0 => fragment,
                    n => format!("{fragment}-{n}"),
                };
                *earlier += 1;
                self.document.anchors.insert(anchor);
            }
            TagEnd::CodeBlock => self.in_block = false,
            TagEnd::TableCell => self.in_cell = false,
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(heading) = &mut self.heading {
            heading.push_str(text);
        } else if self.in_block {
            let block = self.document.blocks.last_mut();
            block.expect("a block has begun").item.text.push_str(text);
        } else if self.in_cell
            && let Some(cell) = self.cell()
        {
            cell.text.push_str(text);
        }
    }

    /// Links, images and anchors written as HTML.
    fn html(&mut self, html: &str, line: usize) {
        for attribute in ["href=\"", "src=\"", "id=\"", "name=\""] {
            for rest in html.split(attribute).skip(1) {
                let value = rest.split('"').next().unwrap_or_default().to_string();
                if attribute.starts_with(['h', 's']) {
                    self.document.links.push(At { line, item: value });
                } else {
                    self.document.anchors.insert(value);
                }
            }
        }
    }

    fn cell(&mut self) -> Option<&mut Cell> {
        self.document.tables.last_mut()?.last_mut()?.item.last_mut()
    }
}

/// The fragment that GitHub makes from a heading.
fn fragment(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ => letter.is_alphanumeric().then_some(letter),
    });
    kept.collect::<String>().to_lowercase()
}

#[test]
fn headings_become_fragments_as_on_github() {
    let text = "# `capi`: C, and more\n## What's *new*\n## What's new\n";
    let document = Document::parse("x.md", text);
    let expected = ["capi-c-and-more", "whats-new", "whats-new-1"];
    assert_eq!(document.anchors, expected.map(str::to_string).into());
}
