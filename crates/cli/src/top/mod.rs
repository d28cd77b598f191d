//! `nuthatch top`: what a server of memcached's protocol does, live in a terminal.
//!
//! * [`sample`]: statistics, asked for once a while, and what they come to between two moments.
//! * [`view`]: the lines of a screen.

mod sample;
mod view;

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::Args;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::{cursor, execute, queue, style, terminal};
use nuthatch_program::Failure;

use self::sample::{Asker, Between};
use self::view::{History, Order, View};

/// What to look at.
#[derive(Args, Clone, Debug)]
pub struct Top {
    /// The server: HOST, HOST:PORT or the path of a unix socket
    #[arg(default_value = "127.0.0.1:11211")]
    pub server: String,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    pub every: f64,
    /// Print so many looks without a terminal's controls, and end
    #[arg(long, value_name = "COUNT")]
    pub print: Option<u32>,
}

/// The keys, as the last line shows them.
const KEYS: &str =
    "q quit   p pause   d count by prefix   sort prefixes: g gets  h hits  s sets  n name";

/// Looks until `q`.
pub fn run(top: &Top) -> Result<(), Failure> {
    if !(0.1..=3600.0).contains(&top.every) {
        return Err(Failure::usage("--every: from 0.1 to 3600 seconds"));
    }
    let every = Duration::from_secs_f64(top.every);
    let mut asker = Asker::connect(&top.server).map_err(Failure::Run)?;
    match top.print {
        Some(count) => print(&mut asker, &top.server, every, count),
        None if !io::stdout().is_terminal() => Err(Failure::usage(
            "top needs a terminal; --print COUNT writes lines",
        )),
        None => live(&mut asker, &top.server, every),
    }
}

/// Writes looks one after the other, 80 columns wide.
fn print(asker: &mut Asker, server: &str, every: Duration, count: u32) -> Result<(), Failure> {
    let mut history = History::default();
    let mut before = asker.sample().map_err(Failure::Run)?;
    for _ in 0..count {
        std::thread::sleep(every);
        let now = asker.sample().map_err(Failure::Run)?;
        let between = Between::new(&before, &now);
        history.push(between.operations());
        let view = View::new(server, &between, &history, Order::default());
        let text = view.lines(80, 24).join("\n");
        nuthatch_program::output::print(&format!("{text}\n"))?;
        before = now;
    }
    Ok(())
}

/// The terminal as it was, when this is dropped: also after a panic.
struct Screen;

impl Screen {
    fn enter() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let screen = Self;
        execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        Ok(screen)
    }

    fn draw(lines: &[String]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        queue!(out, cursor::MoveTo(0, 0))?;
        for (row, line) in lines.iter().enumerate() {
            queue!(
                out,
                cursor::MoveTo(0, row as u16),
                style::Print(line),
                terminal::Clear(terminal::ClearType::UntilNewLine)
            )?;
        }
        queue!(out, terminal::Clear(terminal::ClearType::FromCursorDown))?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // There is nobody to tell if the terminal has gone.
        let _ = execute!(io::stdout(), cursor::Show, terminal::LeaveAlternateScreen);
        let _ = terminal::disable_raw_mode();
    }
}

/// What somebody who looks has chosen.
#[derive(Default)]
struct Choice {
    order: Order,
    paused: bool,
}

fn live(asker: &mut Asker, server: &str, every: Duration) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::run(format!("the terminal: {error}"));
    let mut before = asker.sample().map_err(Failure::Run)?;
    let mut history = History::default();
    let mut choice = Choice::default();
    let _screen = Screen::enter().map_err(failed)?;
    let mut shown = None;
    loop {
        let due = Instant::now() + every;
        let now = asker.sample().map_err(Failure::Run)?;
        if !choice.paused {
            let between = Between::new(&before, &now);
            history.push(between.operations());
            shown = Some(between);
            before = now;
        }
        loop {
            if let Some(between) = &shown {
                let (columns, rows) = match terminal::size().map_err(failed)? {
                    // It does not know: a serial line, say.
                    (0, _) | (_, 0) => (80, 24),
                    size => size,
                };
                let view = View::new(server, between, &history, choice.order);
                let mut lines = view.lines(columns.into(), usize::from(rows).saturating_sub(1));
                lines.push(view::fit(
                    if choice.paused { "paused" } else { KEYS },
                    columns.into(),
                ));
                Screen::draw(&lines).map_err(failed)?;
            }
            let left = due.saturating_duration_since(Instant::now());
            if !event::poll(left).map_err(failed)? {
                break;
            }
            if let Event::Key(key) = event::read().map_err(failed)?
                && key.kind == KeyEventKind::Press
                && !pressed(key, &mut choice, asker)?
            {
                return Ok(());
            }
        }
    }
}

/// Does what a key says. False if it says to end.
fn pressed(key: KeyEvent, choice: &mut Choice, asker: &mut Asker) -> Result<bool, Failure> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return Ok(false),
        KeyCode::Char('c') if control => return Ok(false),
        KeyCode::Char('p') => choice.paused = !choice.paused,
        KeyCode::Char('d') => asker.toggle_prefixes().map_err(Failure::Run)?,
        KeyCode::Char('g') => choice.order = Order::Gets,
        KeyCode::Char('h') => choice.order = Order::Hits,
        KeyCode::Char('s') => choice.order = Order::Sets,
        KeyCode::Char('n') => choice.order = Order::Name,
        _ => {}
    }
    Ok(true)
}
