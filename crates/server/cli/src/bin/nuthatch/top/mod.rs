//! `nuthatch top`: what a server of memcached's protocol does, live in a terminal.
//!
//! * [`sample`]: statistics, requested at intervals, and their changes between two moments.
//! * [`times`]: how long requests took.
//! * [`view`]: the lines of a screen.

mod sample;
mod times;
mod view;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::{cursor, execute, queue, style, terminal};
use nuthatch_program::Failure;
use nuthatch_server::config::PORT;
use nuthatch_server::{Shutdown, Signals};

use self::sample::{Asker, Between, Sample};
use self::view::{History, Order, View};
use crate::connect::{self, Target};

/// The server to observe, and how to print its statistics.
#[derive(Args, Clone, Debug)]
pub struct Top {
    /// The server: HOST, HOST:PORT, an address (`::1`, `[::1]:11211`) or the path of a unix socket
    #[arg(default_value = "127.0.0.1:11211")]
    pub server: String,
    /// Seconds between two samples, 0.1 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    pub every: f64,
    /// Print this number of samples as plain lines, without a terminal, and exit
    #[arg(long, value_name = "COUNT")]
    pub print: Option<u32>,
    /// Log in with this name, if the server requires a password
    #[arg(long, value_name = "NAME", requires = "password_file")]
    pub user: Option<String>,
    /// File whose first line is the password; other users could read a password on the command line
    #[arg(long, value_name = "FILE", requires = "user")]
    pub password_file: Option<PathBuf>,
    /// Connect over TLS
    #[arg(long)]
    pub tls: bool,
    /// File of the CA certificates, in PEM, that may sign the server's certificate [default: the CAs that the system
    /// trusts]
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub ca: Option<PathBuf>,
}

impl Top {
    fn target(&self) -> Result<Target, String> {
        let login = match (&self.user, &self.password_file) {
            (Some(name), Some(file)) => Some((name.clone(), connect::password(file)?)),
            _ => None,
        };
        let tls = self.tls.then(|| connect::trusting(self.ca.as_deref()));
        Ok(Target {
            server: self.server.clone(),
            port: PORT,
            login,
            tls: tls.transpose()?,
        })
    }
}

/// The keys, as the last line shows them.
const KEYS: &str = "q quit   p pause   d prefixes, sorted by  g gets  h hits  s sets  n name";

/// Looks until `q`.
pub fn run(top: &Top) -> Result<(), Failure> {
    if !(0.1..=3600.0).contains(&top.every) {
        return Err(Failure::usage("--every: from 0.1 to 3600 seconds"));
    }
    let every = Duration::from_secs_f64(top.every);
    let target = top.target().map_err(Failure::Usage)?;
    let mut asker = Asker::connect(target).map_err(Failure::Run)?;
    match top.print {
        Some(count) => print(&mut asker, every, count),
        None if !io::stdout().is_terminal() => Err(Failure::usage(
            "top needs a terminal; --print COUNT writes lines",
        )),
        None => live(asker, every),
    }
}

/// Writes looks one after the other, 80 columns wide.
fn print(asker: &mut Asker, every: Duration, count: u32) -> Result<(), Failure> {
    let mut history = History::default();
    let mut before = asker.sample().map_err(Failure::Run)?;
    for _ in 0..count {
        std::thread::sleep(every);
        let now = asker.sample().map_err(Failure::Run)?;
        let between = Between::new(&before, &now);
        history.push(between.operations());
        let view = View::new(asker.server(), &between, &history, Order::default());
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
        // An error means that the terminal is closed: there is nowhere to report it.
        let _ = execute!(io::stdout(), cursor::Show, terminal::LeaveAlternateScreen);
        let _ = terminal::disable_raw_mode();
    }
}

/// What the user has chosen by keys.
#[derive(Default)]
struct Choice {
    order: Order,
    paused: bool,
}

fn live(mut asker: Asker, every: Duration) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::run(format!("the terminal: {error}"));
    let server = asker.server().to_owned();
    let looks = Looks {
        before: Some(asker.sample().map_err(Failure::Run)?),
        ..Looks::default()
    };
    let end = ended_by_signals().map_err(failed)?;
    let mut asking = Asking::begin(asker).map_err(failed)?;
    // A closed terminal may cause an error here before its signal arrives: the server is left as it was found in any
    // case.
    let ended = look(&mut asking, looks, &server, every, &end);
    asking.end();
    ended.map_err(failed)
}

/// Takes samples and handles keys until a key or a signal ends it.
fn look(
    asking: &mut Asking,
    mut looks: Looks,
    server: &str,
    every: Duration,
    end: &Shutdown,
) -> io::Result<()> {
    let mut choice = Choice::default();
    let _screen = Screen::enter()?;
    let mut due = Instant::now();
    while !end.is_requested() {
        if asking.since.is_none() && Instant::now() >= due {
            due = Instant::now() + every;
            asking.ask(Question::Look);
        }
        while let Some(answer) = asking.answer() {
            looks.take(answer, choice.paused);
        }
        let last = match (&looks.trouble, asking.silence()) {
            (_, Some(silence)) => format!(
                "the server has not answered for {} s   q quit",
                silence.as_secs()
            ),
            // The error comes last: a long address would push the rest out of the line.
            (Some(error), None) => format!("trying again   q quit   {error}"),
            (None, None) if choice.paused => "paused".to_owned(),
            (None, None) => KEYS.to_owned(),
        };
        let shown = looks.shown.as_ref();
        draw(server, shown, &looks.history, choice.order, &last)?;
        let nap = match asking.since {
            Some(_) if asking.silence().is_none() => ANSWER_NAP,
            // Each iteration draws the screen.
            Some(_) => NAP,
            None => NAP.min(due.saturating_duration_since(Instant::now())),
        };
        if event::poll(nap)?
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
            && !pressed(key, &mut choice, asking)
        {
            break;
        }
    }
    Ok(())
}

/// Requests to the thread that talks to the server.
enum Question {
    Look,
    TogglePrefixes,
}

/// The sample of a look; `None` for another question.
type Answer = Result<Option<Box<Sample>>, String>;

/// The thread that talks to the server, so that keys work while the server does not answer.
struct Asking {
    questions: Sender<Question>,
    answers: Receiver<Answer>,
    /// When the look that has no answer yet began.
    since: Option<Instant>,
}

impl Asking {
    fn begin(mut asker: Asker) -> io::Result<Self> {
        let (questions, asked) = mpsc::channel();
        let (answering, answers) = mpsc::channel();
        thread::Builder::new()
            .name("ask".to_owned())
            .spawn(move || {
                for question in asked {
                    let answer = match question {
                        Question::Look => asker.sample().map(|sample| Some(Box::new(sample))),
                        Question::TogglePrefixes => asker.toggle_prefixes().map(|()| None),
                    };
                    // An error means that the receiver has ended: then no more questions arrive either.
                    let _ = answering.send(answer);
                }
                // Leaves the server as it was found, before the thread that waits for the end of the answers goes on.
                drop(asker);
                drop(answering);
            })?;
        Ok(Self {
            questions,
            answers,
            since: None,
        })
    }

    fn ask(&mut self, question: Question) {
        if matches!(question, Question::Look) {
            self.since = Some(Instant::now());
        }
        // An error means that the thread has failed: the program ends after this.
        let _ = self.questions.send(question);
    }

    /// The next answer, if there is one.
    fn answer(&mut self) -> Option<Answer> {
        let answer = self.answers.try_recv().ok()?;
        if !matches!(answer, Ok(None)) {
            self.since = None;
        }
        Some(answer)
    }

    /// How long the server has been silent, if that is long enough to show.
    fn silence(&self) -> Option<Duration> {
        let silence = self.since?.elapsed();
        (silence > SILENCE).then_some(silence)
    }

    /// Ends, and waits a moment for the server to be left as it was found: not for one that does not answer.
    fn end(self) {
        drop(self.questions);
        let until = Instant::now() + PARTING;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if self.answers.recv_timeout(left).is_err() {
                return;
            }
        }
    }
}

/// How long the last line waits before it says that the server is silent.
const SILENCE: Duration = Duration::from_secs(2);

/// How long the end waits for a server that does not answer. The terminal is as it was by then.
const PARTING: Duration = Duration::from_secs(2);

/// How long an answer may wait to be seen.
const ANSWER_NAP: Duration = Duration::from_millis(10);

/// How long a signal may wait to be seen.
const NAP: Duration = Duration::from_millis(200);

/// A shutdown that the signals that would end this process trigger, so that the terminal, and what the server counts,
/// are left as they were found. SIGHUP, too: the terminal is closed.
fn ended_by_signals() -> io::Result<Shutdown> {
    let end = Shutdown::default();
    let hung_up = end.clone();
    Signals::catch()?.serve(end.clone(), move || hung_up.request(), || {})?;
    Ok(end)
}

/// The results so far.
#[derive(Default)]
struct Looks {
    /// The last look; `None` when the connection is lost.
    before: Option<Sample>,
    history: History,
    shown: Option<Between>,
    /// What went wrong last.
    trouble: Option<String>,
}

impl Looks {
    fn take(&mut self, answer: Answer, paused: bool) {
        let now = match answer {
            Ok(Some(now)) => *now,
            Ok(None) => return,
            Err(error) => {
                self.before = None;
                self.trouble = Some(error);
                return;
            }
        };
        self.trouble = None;
        if paused {
            return;
        }
        if let Some(before) = &self.before {
            let between = Between::new(before, &now);
            self.history.push(between.operations());
            self.shown = Some(between);
        }
        self.before = Some(now);
    }
}

/// Draws the screen, with this last line.
fn draw(
    server: &str,
    shown: Option<&Between>,
    history: &History,
    order: Order,
    last: &str,
) -> io::Result<()> {
    let (columns, rows) = match terminal::size()? {
        // The terminal does not know its size: a serial line, say.
        (0, _) | (_, 0) => (80, 24),
        (columns, rows) => (usize::from(columns), usize::from(rows)),
    };
    let mut lines = shown.map_or_else(Vec::new, |between| {
        View::new(server, between, history, order).lines(columns, rows.saturating_sub(1))
    });
    lines.push(view::fit(last, columns));
    Screen::draw(&lines)
}

/// Carries out a key's command. False if it is to end.
fn pressed(key: KeyEvent, choice: &mut Choice, asking: &mut Asking) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return false,
        KeyCode::Char('c') if control => return false,
        KeyCode::Char('p') => choice.paused = !choice.paused,
        KeyCode::Char('d') => asking.ask(Question::TogglePrefixes),
        KeyCode::Char('g') => choice.order = Order::Gets,
        KeyCode::Char('h') => choice.order = Order::Hits,
        KeyCode::Char('s') => choice.order = Order::Sets,
        KeyCode::Char('n') => choice.order = Order::Name,
        _ => {}
    }
    true
}
