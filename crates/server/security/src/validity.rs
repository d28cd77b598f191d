//! The validity of certificates in time.

use std::ops::RangeInclusive;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use x509_cert::Certificate;
use x509_cert::der::Decode;

/// The warning begins this many days before a certificate expires, as the alert in dist/ does.
const SOON: u64 = 14;

/// Seconds of a day.
pub const DAY: u64 = 86400;

/// The time in which all of a chain's certificates are valid, in unix time. A certificate that cannot be parsed is
/// ignored.
pub fn of_all(chain: &[CertificateDer<'_>]) -> Option<RangeInclusive<u64>> {
    let all = chain.iter().filter_map(of);
    all.reduce(|one, other| {
        let begin = *one.start().max(other.start());
        begin..=*one.end().min(other.end())
    })
}

fn of(certificate: &CertificateDer<'_>) -> Option<RangeInclusive<u64>> {
    let read = Certificate::from_der(certificate).ok()?;
    let validity = read.tbs_certificate.validity;
    let seconds = |time: x509_cert::time::Time| time.to_unix_duration().as_secs();
    Some(seconds(validity.not_before)..=seconds(validity.not_after))
}

/// Now, in unix time.
#[expect(
    clippy::disallowed_methods,
    reason = "a certificate is valid until a moment"
)]
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}

/// The warning for the operator at the time `now`, if there is one.
pub fn concern(valid: &RangeInclusive<u64>, now: u64) -> Option<String> {
    let (begin, end) = (*valid.start(), *valid.end());
    if end < now {
        return Some("expired, clients refuse it".to_owned());
    }
    if now < begin {
        let begins = words(begin - now);
        return Some(format!(
            "not valid before {begins} from now, clients refuse it"
        ));
    }
    (end - now < SOON * DAY).then(|| format!("ends in {}", words(end - now)))
}

/// A time as text, in the largest unit of which it has at least one.
fn words(seconds: u64) -> String {
    let (count, unit) = match seconds {
        DAY.. => (seconds / DAY, "day"),
        3600.. => (seconds / 3600, "hour"),
        _ => (seconds.div_ceil(60), "minute"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_or_soon_is_told() {
        let valid = 1_000..=1_000 + 100 * DAY;
        let end = *valid.end();
        for (now, told) in [
            (
                999,
                Some("not valid before 1 minute from now, clients refuse it"),
            ),
            (1_000, None),
            (end - SOON * DAY, None),
            (end - SOON * DAY + 1, Some("ends in 13 days")),
            (end - DAY, Some("ends in 1 day")),
            (end - DAY + 1, Some("ends in 23 hours")),
            (end - 59, Some("ends in 1 minute")),
            (end, Some("ends in 0 minutes")),
            (end + 1, Some("expired, clients refuse it")),
        ] {
            assert_eq!(concern(&valid, now).as_deref(), told, "{now}");
        }
    }
}
