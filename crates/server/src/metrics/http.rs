//! Just as much of HTTP/1.1 as it takes to be scraped: GET and HEAD, one request a connection.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nuthatch_context::shared::Shared;
use nuthatch_reports::metrics::Format;
use nuthatch_sync::mutex::Mutex;

use super::health;

/// The longest request.
const REQUEST_MAX: usize = 8 << 10;
const HEADERS_MAX: usize = 64;

/// Reads of what a client sends behind its request.
const READS: usize = 16;

/// Scrapes at a time. One more takes the place of the one that has been silent for longest: who connects and says nothing,
/// or does not close when it has its answer, keeps nobody out.
const SCRAPES_MAX: usize = 8;

/// Threads at a time: those that lost their place end at once, but not before they have run. One more is turned away.
const THREADS_MAX: usize = 2 * SCRAPES_MAX;

/// How long a client may take to ask, in all, and to read a piece of the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Scrapes under way.
#[derive(Default)]
pub(super) struct Scrapes {
    threads: Arc<AtomicUsize>,
    /// Those that nobody answers now: they have not asked yet, or have their answer. The oldest first.
    silent: Arc<Mutex<VecDeque<Arc<TcpStream>>>>,
}

/// Answers one client.
fn serve(
    stream: &Arc<TcpStream>,
    silent: &Mutex<VecDeque<Arc<TcpStream>>>,
    shared: &Shared,
) -> io::Result<()> {
    let leaves = || silent.lock().retain(|other| !Arc::ptr_eq(other, stream));
    let asked = read(stream);
    leaves();
    answer(stream, shared, asked?)?;
    silent.lock().push_back(Arc::clone(stream));
    let closed = linger(stream);
    leaves();
    closed
}

impl Scrapes {
    /// Answers in a thread of its own, so that a client that is slow delays no other.
    pub(super) fn begin(&self, stream: TcpStream, shared: &Arc<Shared>) {
        // Relaxed, here and below: a bound, and nothing is published by it. This thread alone adds.
        let threads = self.threads.load(Ordering::Relaxed);
        if threads >= SCRAPES_MAX {
            let oldest = self.silent.lock().pop_front();
            let Some(oldest) = oldest.filter(|_| threads < THREADS_MAX) else {
                return;
            };
            // Its thread reads the end then; it may have read it already.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        self.threads.fetch_add(1, Ordering::Relaxed);
        let stream = Arc::new(stream);
        self.silent.lock().push_back(Arc::clone(&stream));
        let shared = Arc::clone(shared);
        let (threads, silent) = (Arc::clone(&self.threads), Arc::clone(&self.silent));
        let scrape = move || {
            if let Err(error) = serve(&stream, &silent, &shared) {
                tracing::debug!(%error, "a scrape");
            }
            threads.fetch_sub(1, Ordering::Relaxed);
        };
        let thread = thread::Builder::new().name("scrape".to_owned());
        if let Err(error) = thread.spawn(scrape) {
            tracing::warn!(%error, "a scrape finds no thread");
            self.silent.lock().pop_back();
            self.threads.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Reads a request.
fn read(mut stream: &TcpStream) -> io::Result<Asked> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut room = [0; REQUEST_MAX];
    let mut len = 0;
    let latest = Instant::now() + PATIENCE;
    loop {
        // A byte now and then does not win time: the others would find no scrape free.
        let left = latest.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let count = stream.read(&mut room[len..])?;
        len += count;
        match Asked::parse(&room[..len]) {
            Some(asked) => return Ok(asked),
            None if count == 0 || len == room.len() => return Ok(Asked::Bad),
            None => {}
        }
    }
}

/// Answers a request.
fn answer(mut stream: &TcpStream, shared: &Shared, asked: Asked) -> io::Result<()> {
    let (status, content_type, body) = match asked {
        Asked::Page { format, .. } => (
            "200 OK",
            format.content_type(),
            nuthatch_reports::metrics::page(shared, format),
        ),
        Asked::Health { .. } => match health::check(shared) {
            Ok(()) => ("200 OK", TEXT, "ok\n".to_owned()),
            Err(words) => ("503 Service Unavailable", TEXT, words),
        },
        Asked::Nothing => ("404 Not Found", TEXT, "/metrics, /healthz\n".to_owned()),
        Asked::Method => ("405 Method Not Allowed", TEXT, "GET\n".to_owned()),
        Asked::Bad => ("400 Bad Request", TEXT, "not HTTP\n".to_owned()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    if !matches!(
        asked,
        Asked::Page { head: true, .. } | Asked::Health { head: true }
    ) {
        stream.write_all(body.as_bytes())?;
    }
    stream.shutdown(Shutdown::Write)
}

/// Reads what comes behind a request: with input unread the kernel would reset the connection before the answer is read.
fn linger(mut stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut room = [0; REQUEST_MAX];
    for _ in 0..READS {
        if stream.read(&mut room)? == 0 {
            break;
        }
    }
    Ok(())
}

const TEXT: &str = "text/plain; charset=utf-8";

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Page { format: Format, head: bool },
    Health { head: bool },
    Nothing,
    Method,
    Bad,
}

impl Asked {
    /// `None` if the request is not complete.
    fn parse(input: &[u8]) -> Option<Self> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(input) {
            Ok(httparse::Status::Partial) => return None,
            Ok(httparse::Status::Complete(_)) => {}
            Err(_) => return Some(Self::Bad),
        }
        let head = match request.method {
            Some("GET") => false,
            Some("HEAD") => true,
            _ => return Some(Self::Method),
        };
        let path = request.path.unwrap_or_default();
        Some(match path.split('?').next() {
            Some("/metrics") => {
                let wants_openmetrics = request.headers.iter().any(|header| {
                    let value = String::from_utf8_lossy(header.value);
                    header.name.eq_ignore_ascii_case("accept")
                        && value.contains("application/openmetrics-text")
                });
                let format = match wants_openmetrics {
                    true => Format::OpenMetrics,
                    false => Format::Prometheus,
                };
                Self::Page { format, head }
            }
            Some("/healthz") => Self::Health { head },
            _ => Self::Nothing,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests() {
        let asked = |text: &str| Asked::parse(text.as_bytes());
        let plain = Asked::Page {
            format: Format::Prometheus,
            head: false,
        };
        assert_eq!(asked("GET /metrics HTTP/1.1\r\n\r\n"), Some(plain));
        assert_eq!(
            asked("GET /metrics?a=b HTTP/1.0\r\nHost: x\r\n\r\n"),
            Some(plain)
        );
        let open = "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text;version=1.0.0,*/*\r\n\r\n";
        let format = Format::OpenMetrics;
        assert_eq!(
            asked(open),
            Some(Asked::Page {
                format,
                head: false
            })
        );
        assert_eq!(
            asked("HEAD /healthz HTTP/1.1\r\n\r\n"),
            Some(Asked::Health { head: true })
        );
        assert_eq!(asked("GET / HTTP/1.1\r\n\r\n"), Some(Asked::Nothing));
        assert_eq!(asked("POST /metrics HTTP/1.1\r\n\r\n"), Some(Asked::Method));
        assert_eq!(asked("get a\r\n\r\n"), Some(Asked::Bad));
        assert_eq!(asked("GET /metrics HTTP/1.1\r\nHo"), None);
    }
}
