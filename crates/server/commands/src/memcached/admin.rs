//! Commands about memcached's internals. Where this server has no such part, they answer like a memcached that has the
//! feature switched off.

use nuthatch_protocol::{Words, encode};

use super::arguments::{Arguments, number};
use super::dump::{CLASSES_MAX, Classes, Dump, DumpFormat};
use super::phase::Phase;
use crate::context::Context;
use crate::turn::Turn;

const ERROR: &[u8] = b"ERROR\r\n";
const BAD_FORMAT: &[u8] = b"CLIENT_ERROR bad command line format\r\n";

/// The refusal of a command for a proxy or for external storage, if a line or a word begins with one: this server has
/// neither. memcached 1.6.45 answers a plain error, this server explains it. `stats extstore` is answered, with
/// nothing.
pub fn absent(line: &[u8]) -> Option<&'static [u8]> {
    let end = line.iter().position(|byte| b" \r\n".contains(byte));
    match &line[..end.unwrap_or(line.len())] {
        word if word.starts_with(b"proxy") || word == b"mcp" => {
            Some(b"CLIENT_ERROR this server is no proxy\r\n")
        }
        b"extstore" if end.is_some() => {
            Some(b"CLIENT_ERROR this server has no external storage\r\n")
        }
        _ => None,
    }
}

/// slabs. In this server pages move by themselves.
pub fn slabs(text: Words<'_>) -> (&'static [u8], bool) {
    let arguments = Arguments::of(text);
    let words: &'static [u8] = match *arguments.words() {
        [b"reassign", from, to] => reassign(number(from), number(to)),
        [b"automove", b"ratio" | b"freeratio", ref rest @ ..] => {
            match rest.first().and_then(|ratio| number::<f64>(ratio)) {
                Some(_) => encode::OK,
                None => ERROR,
            }
        }
        [b"automove", b"window", ref rest @ ..] => {
            match rest.first().and_then(|window| number::<u32>(window)) {
                Some(3..=1800) => encode::OK,
                Some(_) => b"CLIENT_ERROR automove window too low or too high\r\n",
                None => BAD_FORMAT,
            }
        }
        [b"automove", level, ..] => match number::<u32>(level) {
            Some(0..=2) => encode::OK,
            Some(_) => ERROR,
            None => BAD_FORMAT,
        },
        _ => ERROR,
    };
    (words, arguments.noreply)
}

/// The answer to slabs reassign: it checks the words, and then refuses, because no page can be moved by hand.
fn reassign(from: Option<i32>, to: Option<i32>) -> &'static [u8] {
    let is_class = |class: i32| (0..CLASSES_MAX as i32).contains(&class);
    match (from, to) {
        (Some(from), Some(to)) if from == to => b"SAME src and dst class are identical\r\n",
        (Some(from), Some(to)) if !is_class(from) || !is_class(to) => {
            b"BADCLASS invalid src or dst class id\r\n"
        }
        (Some(_), Some(_)) => b"CLIENT_ERROR slab reassignment disabled\r\n",
        _ => BAD_FORMAT,
    }
}

/// lru. There is one CLOCK, and no segments whose shares could be set.
pub fn lru(text: Words<'_>) -> (&'static [u8], bool) {
    let arguments = Arguments::of(text);
    let words: &'static [u8] = match *arguments.words() {
        [b"tune", hot, warm, hot_factor, warm_factor, ..] => {
            let shares = number::<u32>(hot).zip(number::<u32>(warm));
            let factors = number::<f64>(hot_factor).zip(number::<f64>(warm_factor));
            match (shares, factors) {
                (Some((hot, warm)), Some(_)) if hot.saturating_add(warm) > 80 => {
                    b"ERROR hot and warm pcts must not exceed 80\r\n"
                }
                (Some(_), Some((hot, warm))) if hot <= 0.0 || warm <= 0.0 => {
                    b"ERROR hot/warm age factors must be greater than 0\r\n"
                }
                (Some(_), Some(_)) => encode::OK,
                _ => ERROR,
            }
        }
        _ => ERROR,
    };
    (words, arguments.noreply)
}

/// lru_crawler. The sweep of expired items always runs, so only the dumps have an effect.
pub fn lru_crawler(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &mut Phase, text: Words<'_>) {
    let out = turn.output.text();
    let arguments = Arguments::of(text);
    let walks = &cx.shared.walks;
    let words: &[u8] = match *arguments.words() {
        [b"enable"] => {
            walks.enable_dumps(true);
            encode::OK
        }
        [b"disable"] => {
            walks.enable_dumps(false);
            encode::OK
        }
        [b"sleep", pause] => match number::<u32>(pause) {
            Some(0..=1_000_000) => encode::OK,
            Some(_) => b"CLIENT_ERROR sleep must be one second or less\r\n",
            None => BAD_FORMAT,
        },
        [b"tocrawl", count] => match number::<u32>(count) {
            Some(_) => encode::OK,
            None => BAD_FORMAT,
        },
        [b"crawl" | b"metadump" | b"mgdump", _] if !walks.are_dumps_enabled() => {
            b"CLIENT_ERROR lru crawler disabled\r\n"
        }
        [b"crawl", classes] => match Classes::parse(classes) {
            Some(_) => encode::OK,
            None => b"BADCLASS invalid class id\r\n",
        },
        [b"metadump", _] if !cx.shared.live.load().allow_dump => b"ERROR metadump not allowed\r\n",
        [b"mgdump", _] if !cx.shared.live.load().allow_dump => b"ERROR key dump not allowed\r\n",
        [kind @ (b"metadump" | b"mgdump"), classes] => {
            let format = if kind == b"metadump" {
                DumpFormat::Meta
            } else {
                DumpFormat::Keys
            };
            match (Classes::parse(classes), walks.begin_dump()) {
                (None, _) => b"BADCLASS invalid class id\r\n",
                (_, None) => b"BUSY currently processing crawler request\r\n",
                (Some(classes), Some(permit)) => {
                    *phase = Phase::Dump(Box::new(Dump::new(format, classes, Some(permit))));
                    return out.extend_from_slice(encode::OK);
                }
            }
        }
        _ => ERROR,
    };
    if !arguments.noreply {
        out.extend_from_slice(words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(reply: (&'static [u8], bool)) -> (&'static str, bool) {
        (std::str::from_utf8(reply.0).unwrap().trim_end(), reply.1)
    }

    #[test]
    fn slabs_answers_as_without_reassignment() {
        let slabs = |text: &'static str| words(slabs(Words(text.as_bytes())));
        assert_eq!(
            slabs("reassign 1 2"),
            ("CLIENT_ERROR slab reassignment disabled", false)
        );
        for (line, said) in [
            ("reassign 1 1", "SAME src and dst class are identical"),
            ("reassign 99 1", "BADCLASS invalid src or dst class id"),
            ("reassign -1 1", "BADCLASS invalid src or dst class id"),
            ("reassign a b", "CLIENT_ERROR bad command line format"),
        ] {
            assert_eq!(slabs(line), (said, false), "{line}");
        }
        assert_eq!(slabs("automove 1"), ("OK", false));
        assert_eq!(slabs("automove 1 noreply"), ("OK", true));
        assert_eq!(slabs("automove 7"), ("ERROR", false));
        assert_eq!(slabs("automove ratio 0.5"), ("OK", false));
        assert_eq!(slabs("automove ratio"), ("ERROR", false));
        assert_eq!(slabs("automove window 3 x"), ("OK", false));
        assert_eq!(
            slabs("automove window 2"),
            ("CLIENT_ERROR automove window too low or too high", false)
        );
        assert_eq!(slabs("reassign 1 2 noreply"), ("ERROR", true));
        assert_eq!(slabs(""), ("ERROR", false));
        assert_eq!(slabs("a b c d e f g h i j"), ("ERROR", false));
    }

    #[test]
    fn what_is_not_here_is_refused_in_words() {
        for line in [
            "proxyreqs",
            "proxy x\r\n",
            "mcp",
            "extstore x y\r\n",
            "extstore\r\n",
        ] {
            let words = absent(line.as_bytes()).unwrap();
            assert!(words.starts_with(b"CLIENT_ERROR this server"), "{line}");
        }
        for line in ["", "\r\n", "get proxy\r\n", "extstores\r\n", "extstore"] {
            assert_eq!(absent(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn lru_checks_what_it_is_told() {
        let lru = |text: &'static str| words(lru(Words(text.as_bytes()))).0;
        assert_eq!(lru("tune 10 25 0.1 2.0"), "OK");
        assert_eq!(
            lru("tune 50 40 0.1 2.0"),
            "ERROR hot and warm pcts must not exceed 80"
        );
        assert_eq!(
            lru("tune 10 25 0 2.0"),
            "ERROR hot/warm age factors must be greater than 0"
        );
        assert_eq!(lru("mode flat"), "ERROR");
    }
}
