//! The part of HTTP/1.1 that a scraper needs: GET and HEAD, one request per connection.

use nuthatch_state::metrics::Format;
use nuthatch_state::server_state::ServerState;

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
        let path = path(request.path.unwrap_or_default());
        Some(match path.split('?').next() {
            Some("/metrics") => {
                let headers = request.headers.iter();
                let accepts = headers.filter(|header| header.name.eq_ignore_ascii_case("accept"));
                let accepts: Vec<_> = accepts
                    .map(|header| String::from_utf8_lossy(header.value))
                    .collect();
                let format = accepted(&accepts.join(","));
                Self::Page { format, wants_body }
            }
            Some("/healthz") => Self::Health { wants_body },
            _ => Self::Nothing,
        })
    }
}

/// The path of a target: `/metrics`, or `http://HOST/metrics`, which clients of a proxy send and every server has to take
/// (RFC 9112, 3.2.2).
fn path(target: &str) -> &str {
    match target.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => {
            rest.find('/').map_or("/", |start| &rest[start..])
        }
        _ => target,
    }
}

/// The format that a list of media ranges prefers: as in Prometheus' own libraries, the one that is named with the
/// greatest weight, the first of several, and text if neither is named. A weight of 0 refuses a format.
fn accepted(ranges: &str) -> Format {
    let mut best = (0.0, Format::Prometheus);
    for range in ranges.split(',') {
        let mut words = range.split(';').map(str::trim);
        let format = match words
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase()
            .as_str()
        {
            "application/openmetrics-text" => Format::OpenMetrics,
            "text/plain" => Format::Prometheus,
            _ => continue,
        };
        let mut parameters = words.filter_map(|word| word.split_once('='));
        let weight = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
        let weight = weight.map_or(Ok(1.0), |(_, value)| value.trim().parse::<f32>());
        // What is no number counts as no weight, as there.
        let weight = weight.unwrap_or(1.0);
        if weight > best.0 {
            best = (weight, format);
        }
    }
    best.1
}

/// The answer to any request but that for health, with its HTTP header.
pub(super) fn answer(shared: &ServerState, request: Request) -> String {
    match request {
        Request::Page { format, wants_body } => {
            let page = nuthatch_state::metrics::page(shared, format);
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
        assert_eq!(
            request("GET http://host:9150/metrics?a HTTP/1.1\r\n\r\n"),
            Some(plain)
        );
        assert_eq!(
            request("HEAD HTTP://[::1]/healthz HTTP/1.1\r\n\r\n"),
            Some(Request::Health { wants_body: false })
        );
        for nothing in [
            "http://host",
            "http:///",
            "/x?http://host/metrics",
            "ftp://host/metrics",
        ] {
            let text = format!("GET {nothing} HTTP/1.1\r\n\r\n");
            assert_eq!(request(&text), Some(Request::Nothing), "{nothing}");
        }
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

    #[test]
    fn the_format_with_the_greatest_weight_is_served() {
        let prometheus = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;\
             q=0.7,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
             application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,*/*;q=0.2";
        for (accept, format) in [
            (prometheus, Format::OpenMetrics),
            ("Application/OpenMetrics-Text", Format::OpenMetrics),
            (
                "text/plain;q=0.5, application/openmetrics-text",
                Format::OpenMetrics,
            ),
            (
                "text/plain , application/openmetrics-text ; Q = 0.9",
                Format::Prometheus,
            ),
            (
                "application/openmetrics-text;q=0.3,text/plain;q=0.4",
                Format::Prometheus,
            ),
            (
                "application/openmetrics-text,text/plain",
                Format::OpenMetrics,
            ),
            (
                "text/plain,application/openmetrics-text",
                Format::Prometheus,
            ),
            ("application/openmetrics-text;q=0", Format::Prometheus),
            ("application/openmetrics-textual", Format::Prometheus),
            ("application/openmetrics-text;q=x", Format::OpenMetrics),
            ("*/*", Format::Prometheus),
            ("", Format::Prometheus),
        ] {
            assert_eq!(accepted(accept), format, "{accept}");
        }
        let two = "GET /metrics HTTP/1.1\r\naccept: text/plain;q=0.1\r\nACCEPT: application/openmetrics-text\r\n\r\n";
        let format = Format::OpenMetrics;
        let page = Request::Page {
            format,
            wants_body: true,
        };
        assert_eq!(Request::parse(two.as_bytes()), Some(page));
    }
}
