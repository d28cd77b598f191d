//! The parsers of the meta commands without a data block: mg, md, ma, me, mn.

use crate::command::{Meta, MetaFlags, MetaVerb};
use crate::error::Error;
use crate::meta_flags;
use crate::reject::Reject;
use crate::words::Words;

/// `mg <key> <flag>*`.
#[inline]
pub(crate) fn parse_get(args: Words<'_>) -> Result<Meta<'_>, Reject> {
    let (key, flags) = key_and_flags(args)?;
    let flags = meta_flags::parse(key, flags)?;
    Ok(meta(MetaVerb::Get, key, flags))
}

/// `md <key> <flag>*`.
pub(crate) fn parse_delete(args: Words<'_>) -> Result<Meta<'_>, Reject> {
    let (key, flags) = key_and_flags(args)?;
    let flags = meta_flags::parse(key, flags)?;
    Ok(meta(MetaVerb::Delete, key, flags))
}

/// `ma <key> <flag>*`.
pub(crate) fn parse_arithmetic(args: Words<'_>) -> Result<Meta<'_>, Reject> {
    let (key, flags) = key_and_flags(args)?;
    let flags = meta_flags::parse_arithmetic(key, flags)?;
    Ok(meta(MetaVerb::Arithmetic, key, flags))
}

/// `me <key> [b]`. Other flags have no meaning.
pub(crate) fn parse_debug(args: Words<'_>) -> Result<Meta<'_>, Reject> {
    let (key, flags) = key_and_flags(args)?;
    let flags = meta_flags::parse_debug(key, flags)?;
    Ok(meta(MetaVerb::Debug, key, flags))
}

/// `mn`. Words behind it have no meaning.
pub(crate) fn noop<'a>() -> Meta<'a> {
    meta(MetaVerb::Noop, &[], MetaFlags::default())
}

/// The key, and the words behind it.
#[inline]
fn key_and_flags(args: Words<'_>) -> Result<(&[u8], Words<'_>), Error> {
    let mut words = args.iter();
    let key = words.next().ok_or(Error::BAD_FORMAT)?;
    Ok((key, words.rest()))
}

#[inline(always)]
fn meta<'a>(verb: MetaVerb, key: &'a [u8], flags: MetaFlags<'a>) -> Meta<'a> {
    Meta { verb, key, flags }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Exptime, MetaMode, ValueCommand};
    use crate::encode::{self, Answers, MetaItem, MetaStatus};
    use crate::testing::{accept_value, encoded, reject};

    #[track_caller]
    fn meta_of(line: &str) -> Meta<'_> {
        match accept_value(line.as_bytes()) {
            ValueCommand::Meta(meta) => meta,
            other => panic!("not a meta command: {other:?}"),
        }
    }

    /// An item whose numbers differ, so that none is taken for another.
    const ITEM: MetaItem = MetaItem {
        flags: 5,
        value_len: 32,
        ttl: Some(60),
        cas: 9,
        last_access: 7,
        fetched: true,
        won: false,
        stale: false,
        won_before: false,
    };

    /// The reply line to `request`.
    fn reply(request: &str, status: MetaStatus, answers: Answers, item: &MetaItem) -> String {
        let Meta { key, flags, .. } = meta_of(request);
        encoded(|out| encode::meta_item(out, status, answers, key, &flags, item))
    }

    #[test]
    fn each_command_takes_a_key_and_flags() {
        for (line, verb, key) in [
            ("mg k v\r\n", MetaVerb::Get, "k"),
            ("md  k  I\n", MetaVerb::Delete, "k"),
            ("ma a2V5 b MD D2\r\n", MetaVerb::Arithmetic, "a2V5"),
            ("me k\r\n", MetaVerb::Debug, "k"),
            ("me a2V5 b\r\n", MetaVerb::Debug, "a2V5"),
            ("me k v v Z Tx\r\n", MetaVerb::Debug, "k"),
            ("ma k MII\r\n", MetaVerb::Arithmetic, "k"),
            ("mn\r\n", MetaVerb::Noop, ""),
            ("mn k v\r\n", MetaVerb::Noop, ""),
        ] {
            let meta = meta_of(line);
            assert_eq!((meta.verb, meta.key), (verb, key.as_bytes()), "{line:?}");
        }
        let arithmetic = meta_of("ma n N0 J13 D2 MD T30\r\n").flags;
        assert_eq!((arithmetic.initial, arithmetic.delta), (Some(13), Some(2)));
        assert_eq!(arithmetic.vivify, Some(Exptime(0)));
        assert_eq!(arithmetic.mode, Some(MetaMode::Decrement));
    }

    #[test]
    fn refusals_have_memcacheds_words() {
        let format = "CLIENT_ERROR bad command line format\r\n";
        let flag = "CLIENT_ERROR invalid or duplicate flag\r\n";
        for (line, error) in [
            ("mg\r\n", format),
            ("md\r\n", format),
            ("ma\r\n", format),
            ("me\r\n", format),
            ("mx k\r\n", "ERROR\r\n"),
            ("mg k !\r\n", format),
            ("mg k v v !\r\n", format),
            ("mg k {\r\n", format),
            ("ma k !\r\n", format),
            ("me k !\r\n", format),
            ("me a b\r\n", format),
            ("me a\tb v\r\n", format),
            ("mg k 1\r\n", "CLIENT_ERROR invalid flag\r\n"),
            ("mg a\tb\r\n", format),
            ("mg k q v v\r\n", "CLIENT_ERROR duplicate flag\r\n"),
            ("mg k Z\r\n", "CLIENT_ERROR invalid flag\r\n"),
            (
                "mg k Tx\r\n",
                "CLIENT_ERROR bad token in command line format\r\n",
            ),
            ("mg k b\r\n", "CLIENT_ERROR error decoding key\r\n"),
            ("md k x x\r\n", "CLIENT_ERROR duplicate flag\r\n"),
            ("ma k Dx\r\n", flag),
            ("ma k t t\r\n", flag),
            ("ma k Z\r\n", flag),
            ("ma k b\r\n", flag),
            ("ma a\tb\r\n", flag),
            (
                "ma k MX\r\n",
                "CLIENT_ERROR invalid mode for ma M token\r\n",
            ),
            (
                "ma k MS\r\n",
                "CLIENT_ERROR invalid mode for ma M token\r\n",
            ),
        ] {
            assert_eq!(reject(line.as_bytes()), error, "{line:?}");
        }
        let opaque = format!("mg k O{}\r\n", "1".repeat(32));
        assert_eq!(
            reject(opaque.as_bytes()),
            "CLIENT_ERROR opaque token too long\r\n"
        );
    }

    #[test]
    fn answers_come_in_the_order_of_the_flags() {
        for (request, status, line) in [
            ("mg k v\r\n", MetaStatus::Value, "VA 32\r\n"),
            ("mg k\r\n", MetaStatus::Done, "HD\r\n"),
            (
                "mg k t s f c h l k O1 v q u\r\n",
                MetaStatus::Value,
                "VA 32 t60 s32 f5 c9 h1 l7 kk O1\r\n",
            ),
            (
                "mg k O  c k T0 C1 P\r\n",
                MetaStatus::Done,
                "HD O c9 kk\r\n",
            ),
            ("mg a2V5 k b f\r\n", MetaStatus::Done, "HD ka2V5 b f5\r\n"),
        ] {
            assert_eq!(
                reply(request, status, Answers::GET, &ITEM),
                line,
                "{request:?}"
            );
        }
        for (request, line) in [
            ("ma k t c k O1 s f h l N0\r\n", "HD t60 c9 kk O1\r\n"),
            ("ma k v\r\n", "HD\r\n"),
        ] {
            let answers = Answers::ARITHMETIC;
            assert_eq!(
                reply(request, MetaStatus::Done, answers, &ITEM),
                line,
                "{request:?}"
            );
        }
    }

    #[test]
    fn stores_answer_cas_and_size() {
        let ValueCommand::Store(store) = accept_value(b"ms k 2 s c t f k O3\r\nab\r\n") else {
            panic!("ms is a store");
        };
        let flags = store.meta.expect("flags of ms");
        for (status, item, line) in [
            (MetaStatus::Done, ITEM, "HD s32 c9 kk O3\r\n"),
            (
                MetaStatus::NotStored,
                MetaItem::default(),
                "NS s0 c0 kk O3\r\n",
            ),
            (
                MetaStatus::Exists,
                MetaItem::default(),
                "EX s0 c0 kk O3\r\n",
            ),
        ] {
            let answers = Answers::STORE;
            let reply =
                encoded(|out| encode::meta_item(out, status, answers, store.key, &flags, &item));
            assert_eq!(reply, line);
        }
    }

    #[test]
    fn misses_answer_key_and_opaque_alone() {
        let meta = meta_of("mg a2V5 t k v O1 c b\r\n");
        for (status, line) in [
            (MetaStatus::Miss, "EN ka2V5 b O1\r\n"),
            (MetaStatus::NotFound, "NF ka2V5 b O1\r\n"),
            (MetaStatus::Exists, "EX ka2V5 b O1\r\n"),
            (MetaStatus::Done, "HD ka2V5 b O1\r\n"),
        ] {
            let reply = encoded(|out| encode::meta_status(out, status, meta.key, &meta.flags));
            assert_eq!(reply, line);
        }
    }

    #[test]
    fn marks_stand_behind_the_flags() {
        for (won, stale, won_before, line) in [
            (true, false, false, "HD c9 W\r\n"),
            (true, true, false, "HD c9 X W\r\n"),
            (false, true, true, "HD c9 Z X\r\n"),
            (false, false, true, "HD c9 Z\r\n"),
        ] {
            let item = MetaItem {
                won,
                stale,
                won_before,
                ..ITEM
            };
            assert_eq!(
                reply("mg k c\r\n", MetaStatus::Done, Answers::GET, &item),
                line
            );
        }
        let forever = MetaItem {
            ttl: None,
            fetched: false,
            ..ITEM
        };
        let line = reply("mg k t h\r\n", MetaStatus::Done, Answers::GET, &forever);
        assert_eq!(line, "HD t-1 h0\r\n");
    }

    #[test]
    fn me_tells_what_is_known() {
        let forever = MetaItem {
            ttl: None,
            fetched: false,
            ..ITEM
        };
        for (item, line) in [
            (ITEM, "ME k exp=60 la=7 cas=9 fetch=yes cls=3 size=61\r\n"),
            (forever, "ME k exp=-1 la=7 cas=9 fetch=no cls=3 size=61\r\n"),
        ] {
            assert_eq!(
                encoded(|out| encode::meta_debug(out, b"k", &item, 3, 61)),
                line
            );
        }
    }
}
