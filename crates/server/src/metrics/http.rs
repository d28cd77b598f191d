//! The part of HTTP/1.1 that a scraper needs: GET and HEAD, one request per connection.

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

/// Scrapes at a time. One more takes the place of the scrape whose client has been waited for longest. So a client that
/// connects and sends nothing, does not read its answer, or does not close afterwards, keeps no other client out.
const SCRAPES_MAX: usize = 8;

/// Threads at a time. A thread whose scrape lost its place ends as soon as it runs again, so there may be more threads
/// than scrapes. One more connection is turned away.
const THREADS_MAX: usize = 2 * SCRAPES_MAX;

/// How long a client may take in all to send its request, and again to close when it has its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a client may take in all to read the answer: as long as Prometheus waits for it by default.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);

/// Scrapes under way.
#[derive(Default)]
pub(super) struct Scrapes {
    threads: Arc<AtomicUsize>,
    awaited: Arc<Awaited>,
}

/// Scrapes that wait for their client to send its request, to read its answer, or to close. The one that has waited
/// longest is first.
type Awaited = Mutex<VecDeque<Arc<TcpStream>>>;

/// Answers one client.
fn serve(stream: &Arc<TcpStream>, awaited: &Awaited, shared: &Shared) -> io::Result<()> {
    let leaves = || awaited.lock().retain(|other| !Arc::ptr_eq(other, stream));
    let request = read(stream);
    leaves();
    let answer = answer(shared, request?);
    awaited.lock().push_back(Arc::clone(stream));
    let served = send(stream, answer.as_bytes()).and_then(|()| linger(stream));
    leaves();
    served
}

impl Scrapes {
    /// Answers in a thread of its own, so that a slow client delays no other.
    pub(super) fn begin(&self, stream: TcpStream, shared: &Arc<Shared>) {
        // Relaxed, here and below: the counter is only a bound, and it publishes nothing. This thread alone adds.
        let threads = self.threads.load(Ordering::Relaxed);
        if threads >= SCRAPES_MAX {
            let oldest = self.awaited.lock().pop_front();
            let Some(oldest) = oldest.filter(|_| threads < THREADS_MAX) else {
                return;
            };
            // The oldest scrape's thread then finds the end of its stream. It may have found it already.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        self.threads.fetch_add(1, Ordering::Relaxed);
        let stream = Arc::new(stream);
        self.awaited.lock().push_back(Arc::clone(&stream));
        let shared = Arc::clone(shared);
        let (threads, awaited) = (Arc::clone(&self.threads), Arc::clone(&self.awaited));
        let scrape = move || {
            if let Err(error) = serve(&stream, &awaited, &shared) {
                tracing::debug!(%error, "a scrape");
            }
            threads.fetch_sub(1, Ordering::Relaxed);
        };
        let thread = thread::Builder::new().name("scrape".to_owned());
        if let Err(error) = thread.spawn(scrape) {
            tracing::warn!(%error, "a scrape finds no thread");
            self.awaited.lock().pop_back();
            self.threads.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A client with a deadline for all its bytes together: a byte now and then wins it no time.
struct Until<'s> {
    stream: &'s TcpStream,
    latest: Instant,
}

impl<'s> Until<'s> {
    fn within(stream: &'s TcpStream, patience: Duration) -> Self {
        let latest = Instant::now() + patience;
        Self { stream, latest }
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.latest.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(ErrorKind::TimedOut.into()),
            false => Ok(left),
        }
    }
}

impl Read for Until<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(room)
    }
}

impl Write for Until<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a request.
fn read(stream: &TcpStream) -> io::Result<HttpRequest> {
    stream.set_nonblocking(false)?;
    let mut client = Until::within(stream, PATIENCE);
    let mut room = [0; REQUEST_MAX];
    let mut len = 0;
    loop {
        let count = client.read(&mut room[len..])?;
        len += count;
        match HttpRequest::parse(&room[..len]) {
            Some(request) => return Ok(request),
            None if count == 0 || len == room.len() => return Ok(HttpRequest::Bad),
            None => {}
        }
    }
}

/// The answer to a request, with its HTTP header.
fn answer(shared: &Shared, request: HttpRequest) -> String {
    let (status, content_type, body) = match request {
        HttpRequest::Page { format, .. } => (
            "200 OK",
            format.content_type(),
            nuthatch_reports::metrics::page(shared, format),
        ),
        HttpRequest::Health { .. } => match health::check(shared) {
            Ok(()) => ("200 OK", TEXT, "ok\n".to_owned()),
            Err(words) => ("503 Service Unavailable", TEXT, words),
        },
        HttpRequest::Nothing => ("404 Not Found", TEXT, "/metrics, /healthz\n".to_owned()),
        HttpRequest::Method => ("405 Method Not Allowed", TEXT, "GET\n".to_owned()),
        HttpRequest::Bad => ("400 Bad Request", TEXT, "not HTTP\n".to_owned()),
    };
    let length = body.len();
    let mut answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    if !matches!(
        request,
        HttpRequest::Page { head: true, .. } | HttpRequest::Health { head: true }
    ) {
        answer.push_str(&body);
    }
    answer
}

/// Sends an answer.
fn send(stream: &TcpStream, answer: &[u8]) -> io::Result<()> {
    Until::within(stream, ANSWER_PATIENCE).write_all(answer)?;
    stream.shutdown(Shutdown::Write)
}

/// Reads and drops what the client sends behind its request: with unread input the kernel would reset the connection
/// before the client has read the answer.
fn linger(stream: &TcpStream) -> io::Result<()> {
    let mut client = Until::within(stream, PATIENCE);
    let mut room = [0; REQUEST_MAX];
    for _ in 0..READS {
        if client.read(&mut room)? == 0 {
            break;
        }
    }
    Ok(())
}

const TEXT: &str = "text/plain; charset=utf-8";

/// The parsed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HttpRequest {
    Page { format: Format, head: bool },
    Health { head: bool },
    Nothing,
    Method,
    Bad,
}

impl HttpRequest {
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
    use std::net::TcpListener;

    use super::*;

    /// A client whose socket takes little at a time, and the server's end.
    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        for stream in [&client, &server] {
            let socket = socket2::SockRef::from(stream);
            socket.set_recv_buffer_size(4096).unwrap();
            socket.set_send_buffer_size(4096).unwrap();
        }
        (client, server)
    }

    #[test]
    fn who_reads_and_writes_a_little_at_a_time_wins_no_time() {
        const PATIENCE: Duration = Duration::from_millis(500);
        let (mut client, server) = pair();
        let slow = thread::spawn(move || {
            let mut room = [0; 512];
            // Until the server closes the connection.
            while client.read(&mut room).is_ok_and(|count| count > 0)
                && client.write_all(b"x").is_ok()
            {
                thread::sleep(PATIENCE / 100);
            }
        });
        let sent = Until::within(&server, PATIENCE).write_all(&[0; 1 << 20]);
        let mut came = Until::within(&server, PATIENCE);
        let came = (0..).find_map(|_| came.read(&mut [0]).err());
        let kinds = [sent.unwrap_err().kind(), came.unwrap().kind()];
        // The system reports a timeout as `WouldBlock`.
        let is_over = |kind| matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(kinds.into_iter().all(is_over), "{kinds:?}");
        drop(server);
        slow.join().unwrap();
    }

    #[test]
    fn requests() {
        let request = |text: &str| HttpRequest::parse(text.as_bytes());
        let plain = HttpRequest::Page {
            format: Format::Prometheus,
            head: false,
        };
        assert_eq!(request("GET /metrics HTTP/1.1\r\n\r\n"), Some(plain));
        assert_eq!(
            request("GET /metrics?a=b HTTP/1.0\r\nHost: x\r\n\r\n"),
            Some(plain)
        );
        let open = "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text;version=1.0.0,*/*\r\n\r\n";
        let format = Format::OpenMetrics;
        assert_eq!(
            request(open),
            Some(HttpRequest::Page {
                format,
                head: false
            })
        );
        assert_eq!(
            request("HEAD /healthz HTTP/1.1\r\n\r\n"),
            Some(HttpRequest::Health { head: true })
        );
        assert_eq!(
            request("GET / HTTP/1.1\r\n\r\n"),
            Some(HttpRequest::Nothing)
        );
        assert_eq!(
            request("POST /metrics HTTP/1.1\r\n\r\n"),
            Some(HttpRequest::Method)
        );
        assert_eq!(request("get a\r\n\r\n"), Some(HttpRequest::Bad));
        assert_eq!(request("GET /metrics HTTP/1.1\r\nHo"), None);
    }
}
