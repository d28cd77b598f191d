//! The part of HTTP/1.1 that a scraper needs: GET and HEAD, one request per connection.

use nuthatch_context::shared::Shared;
use nuthatch_reports::metrics::Format;

const HEADERS_MAX: usize = 64;

const TEXT: &str = "text/plain; charset=utf-8";

/// The parsed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Page { format: Format, wants_body: bool },
    Health { wants_body: bool },
    Nothing,
    Method,
    Bad,
}

impl Request {
    /// `None` if the request is not complete.
    pub(super) fn parse(input: &[u8]) -> Option<Self> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(input) {
            Ok(httparse::Status::Partial) => return None,
            Ok(httparse::Status::Complete(_)) => {}
            Err(_) => return Some(Self::Bad),
        }
        let wants_body = match request.method {
            Some("GET") => true,
            Some("HEAD") => false,
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
                Self::Page { format, wants_body }
            }
            Some("/healthz") => Self::Health { wants_body },
            _ => Self::Nothing,
        })
    }
}

/// The answer to any request but that for health, with its HTTP header.
pub(super) fn answer(shared: &Shared, request: Request) -> String {
    match request {
        Request::Page { format, wants_body } => {
            let page = nuthatch_reports::metrics::page(shared, format);
            with_header("200 OK", format.content_type(), &page, wants_body)
        }
        Request::Nothing => with_header("404 Not Found", TEXT, "/metrics, /healthz\n", true),
        Request::Method => with_header("405 Method Not Allowed", TEXT, "GET\n", true),
        Request::Health { .. } | Request::Bad => {
            with_header("400 Bad Request", TEXT, "not HTTP\n", true)
        }
    }
}

/// The answer of a health check.
pub(super) fn health(outcome: Result<(), String>, wants_body: bool) -> String {
    match outcome {
        Ok(()) => with_header("200 OK", TEXT, "ok\n", wants_body),
        Err(words) => with_header("503 Service Unavailable", TEXT, &words, wants_body),
    }
}

fn with_header(status: &str, content_type: &str, body: &str, wants_body: bool) -> String {
    let length = body.len();
    let body = if wants_body { body } else { "" };
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests() {
        let request = |text: &str| Request::parse(text.as_bytes());
        let plain = Request::Page {
            format: Format::Prometheus,
            wants_body: true,
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
            Some(Request::Page {
                format,
                wants_body: true
            })
        );
        assert_eq!(
            request("HEAD /healthz HTTP/1.1\r\n\r\n"),
            Some(Request::Health { wants_body: false })
        );
        assert_eq!(request("GET / HTTP/1.1\r\n\r\n"), Some(Request::Nothing));
        assert_eq!(
            request("POST /metrics HTTP/1.1\r\n\r\n"),
            Some(Request::Method)
        );
        assert_eq!(request("get a\r\n\r\n"), Some(Request::Bad));
        assert_eq!(request("GET /metrics HTTP/1.1\r\nHo"), None);
    }
}
