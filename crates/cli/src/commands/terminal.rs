//! A status on the terminal, drawn anew at every look.

use super::ctl::watched::WatchedProcess;
use anyhow::{Result, anyhow};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, Frame};
use serde_json::Value;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// The shortest interval between updates: faster ones would load the machine without being visible.
const SHORTEST: Duration = Duration::from_millis(50);

/// The content of the terminal.
pub(crate) trait StatusView {
    /// Takes in a status.
    fn look(&mut self, status: Value);
    /// Draws it.
    fn draw(&self, frame: &mut Frame<'_>);
}

/// Draws the status of `process` until the user presses q or it ends. `command` prints the same as text.
pub(crate) fn watch<N: Fn(String) -> anyhow::Error>(
    mut view: impl StatusView,
    command: &str,
    every: Duration,
    process: &WatchedProcess<N>,
) -> Result<()> {
    if !std::io::stdout().is_terminal() {
        return Err(anyhow!(
            "this draws on a terminal, and there is none: use {command}"
        ));
    }
    view.look(process.status()?);
    let mut terminal = ratatui::try_init()?;
    let status = || process.status_again();
    let watched = watch_on(&mut terminal, &mut view, every.max(SHORTEST), status);
    ratatui::restore();
    if watched? == WatchEnd::ProcessEnded {
        process.tell_end();
    }
    Ok(())
}

/// Why nothing more is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WatchEnd {
    KeyPressed,
    ProcessEnded,
}

fn watch_on(
    terminal: &mut DefaultTerminal,
    view: &mut impl StatusView,
    every: Duration,
    status: impl Fn() -> Result<Option<Value>>,
) -> Result<WatchEnd> {
    loop {
        terminal.draw(|frame| view.draw(frame))?;
        if ends_within(every)? {
            return Ok(WatchEnd::KeyPressed);
        }
        match status()? {
            Some(status) => view.look(status),
            None => return Ok(WatchEnd::ProcessEnded),
        }
    }
}

/// Waits for this time, or until a key ends the view.
fn ends_within(every: Duration) -> Result<bool> {
    let until = Instant::now() + every;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if !event::poll(left)? {
            return Ok(false);
        }
        match event::read()? {
            Event::Key(key) if ends(key) => return Ok(true),
            // The window has another size: drawn at once.
            Event::Resize(..) => return Ok(false),
            _ => {}
        }
    }
}

fn ends(key: KeyEvent) -> bool {
    let is_interrupt =
        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind == KeyEventKind::Press
        && (is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_escape_and_control_c_end_it() {
        let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
        assert!(ends(plain(KeyCode::Char('q'))) && ends(plain(KeyCode::Esc)));
        assert!(ends(KeyEvent::new(
            KeyCode::Char('c'),
            KeyModifiers::CONTROL
        )));
        assert!(!ends(plain(KeyCode::Char('c'))) && !ends(plain(KeyCode::Enter)));
    }
}
