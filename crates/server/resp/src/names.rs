//! The names of Redis' commands: those that this server has, with their numbers of arguments, and those that it does
//! not have because it has plain values only.

use crate::error::Error;

/// A command, before its arguments are parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Acl,
    Append,
    Auth,
    Client,
    Command,
    Config,
    Copy,
    DbSize,
    Decr,
    DecrBy,
    Del,
    DelEx,
    DelIfEq,
    Digest,
    Discard,
    Dump,
    Echo,
    Eval,
    EvalRo,
    EvalSha,
    EvalShaRo,
    Exec,
    Exists,
    Expire,
    ExpireAt,
    ExpireTime,
    FlushAll,
    FlushDb,
    Get,
    GetDel,
    GetEx,
    GetRange,
    GetSet,
    Hello,
    Incr,
    IncrBy,
    IncrByFloat,
    Info,
    Keys,
    LastSave,
    Latency,
    Memory,
    Mget,
    Mset,
    MsetEx,
    MsetNx,
    Multi,
    Object,
    Persist,
    Pexpire,
    PexpireAt,
    PexpireTime,
    PSubscribe,
    PUnsubscribe,
    Ping,
    PubSub,
    Publish,
    PsetEx,
    Pttl,
    Quit,
    RandomKey,
    Rename,
    RenameNx,
    Reset,
    Restore,
    Role,
    SPublish,
    SSubscribe,
    SUnsubscribe,
    Scan,
    Script,
    Select,
    SwapDb,
    Move,
    Set,
    SetEx,
    SetNx,
    SetRange,
    SlowLog,
    StrLen,
    Subscribe,
    Time,
    Touch,
    Ttl,
    Type,
    Unsubscribe,
    Unwatch,
    Wait,
    Watch,
}

/// A command as COMMAND INFO describes it.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// Its name.
    pub name: &'static str,
    /// The number of its words, with its name. If negative, the least number.
    pub arity: i64,
    /// Its properties, in Redis' words.
    pub flags: &'static [&'static str],
    /// The place of its first key, of its last (negative: from the end), and the step between keys. All 0 if it has no
    /// keys.
    pub keys: [i64; 3],
}

/// A command that this server has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) verb: Verb,
    pub(super) name: &'static str,
    pub(super) arity: i64,
}

const READ: &[&str] = &["readonly", "fast"];
const WRITE: &[&str] = &["write", "denyoom", "fast"];
const CHANGE: &[&str] = &["write", "fast"];
const ADMIN: &[&str] = &["noscript", "loading", "stale"];
const NONE: [i64; 3] = [0, 0, 0];
const ONE: [i64; 3] = [1, 1, 1];
const TWO: [i64; 3] = [1, 2, 1];
const ALL: [i64; 3] = [1, -1, 1];
const PAIRS: [i64; 3] = [1, -1, 2];

/// Builds the search by name and the list from one table.
macro_rules! commands {
    ($($name:literal $verb:ident $arity:literal $flags:ident $keys:ident;)*) => {
        /// The command of this name in small letters.
        #[inline]
        fn find(name: &[u8]) -> Option<Entry> {
            $(
                const _: () = assert!($name.len() <= NAME_LEN_MAX);
                if name == $name.as_bytes() {
                    return Some(Entry { verb: Verb::$verb, name: $name, arity: $arity });
                }
            )*
            None
        }

        /// The properties of a command.
        #[allow(unreachable_patterns, reason = "some commands have two names")]
        fn flags(verb: Verb) -> &'static [&'static str] {
            match verb {
                $(Verb::$verb => $flags,)*
            }
        }

        const DESCRIBED: &[Described] = &[
            $(Described { name: $name, arity: $arity, flags: $flags, keys: $keys }),*
        ];
    };
}

commands! {
    "get" Get 2 READ ONE;
    "set" Set -3 WRITE ONE;
    "mget" Mget -2 READ ALL;
    "mset" Mset -3 WRITE PAIRS;
    "incr" Incr 2 WRITE ONE;
    "decr" Decr 2 WRITE ONE;
    "setex" SetEx 4 WRITE ONE;
    "del" Del -2 CHANGE ALL;
    "expire" Expire -3 CHANGE ONE;
    "incrby" IncrBy 3 WRITE ONE;
    "decrby" DecrBy 3 WRITE ONE;
    "exists" Exists -2 READ ALL;
    "ttl" Ttl 2 READ ONE;
    "ping" Ping -1 ADMIN NONE;
    "unlink" Del -2 CHANGE ALL;
    "touch" Touch -2 READ ALL;
    "psetex" PsetEx 4 WRITE ONE;
    "setnx" SetNx 3 WRITE ONE;
    "getset" GetSet 3 WRITE ONE;
    "getdel" GetDel 2 CHANGE ONE;
    "getex" GetEx -2 CHANGE ONE;
    "msetnx" MsetNx -3 WRITE PAIRS;
    "append" Append 3 WRITE ONE;
    "strlen" StrLen 2 READ ONE;
    "getrange" GetRange 4 READ ONE;
    "substr" GetRange 4 READ ONE;
    "setrange" SetRange 4 WRITE ONE;
    "incrbyfloat" IncrByFloat 3 WRITE ONE;
    "type" Type 2 READ ONE;
    "pexpire" Pexpire -3 CHANGE ONE;
    "expireat" ExpireAt -3 CHANGE ONE;
    "pexpireat" PexpireAt -3 CHANGE ONE;
    "pttl" Pttl 2 READ ONE;
    "expiretime" ExpireTime 2 READ ONE;
    "pexpiretime" PexpireTime 2 READ ONE;
    "persist" Persist 2 CHANGE ONE;
    "keys" Keys 2 READ NONE;
    "eval" Eval -3 WRITE NONE;
    "evalsha" EvalSha -3 WRITE NONE;
    "eval_ro" EvalRo -3 READ NONE;
    "evalsha_ro" EvalShaRo -3 READ NONE;
    "script" Script -2 ADMIN NONE;
    "scan" Scan -2 READ NONE;
    "randomkey" RandomKey 1 READ NONE;
    "dbsize" DbSize 1 READ NONE;
    "flushdb" FlushDb -1 CHANGE NONE;
    "flushall" FlushAll -1 CHANGE NONE;
    "echo" Echo 2 ADMIN NONE;
    "hello" Hello -1 ADMIN NONE;
    "auth" Auth -2 ADMIN NONE;
    "select" Select 2 ADMIN NONE;
    "swapdb" SwapDb 3 CHANGE NONE;
    "delifeq" DelIfEq 3 CHANGE ONE;
    "delex" DelEx -2 CHANGE ONE;
    "digest" Digest 2 READ ONE;
    "msetex" MsetEx -4 WRITE NONE;
    "rename" Rename 3 CHANGE TWO;
    "renamenx" RenameNx 3 CHANGE TWO;
    "copy" Copy -3 WRITE TWO;
    "dump" Dump 2 READ ONE;
    "restore" Restore -4 WRITE ONE;
    "role" Role 1 ADMIN NONE;
    "lastsave" LastSave 1 ADMIN NONE;
    "wait" Wait 3 ADMIN NONE;
    "slowlog" SlowLog -2 ADMIN NONE;
    "latency" Latency -2 ADMIN NONE;
    "acl" Acl -2 ADMIN NONE;
    "publish" Publish 3 ADMIN NONE;
    "subscribe" Subscribe -2 ADMIN NONE;
    "psubscribe" PSubscribe -2 ADMIN NONE;
    "unsubscribe" Unsubscribe -1 ADMIN NONE;
    "punsubscribe" PUnsubscribe -1 ADMIN NONE;
    "pubsub" PubSub -2 ADMIN NONE;
    "spublish" SPublish 3 ADMIN NONE;
    "ssubscribe" SSubscribe -2 ADMIN NONE;
    "sunsubscribe" SUnsubscribe -1 ADMIN NONE;
    "move" Move 3 CHANGE ONE;
    "quit" Quit -1 ADMIN NONE;
    "reset" Reset 1 ADMIN NONE;
    "client" Client -2 ADMIN NONE;
    "command" Command -1 ADMIN NONE;
    "config" Config -2 ADMIN NONE;
    "info" Info -1 ADMIN NONE;
    "memory" Memory -2 READ NONE;
    "object" Object -2 READ NONE;
    "time" Time 1 ADMIN NONE;
    "multi" Multi 1 ADMIN NONE;
    "exec" Exec 1 ADMIN NONE;
    "discard" Discard 1 ADMIN NONE;
    "watch" Watch -2 ADMIN ALL;
    "unwatch" Unwatch 1 ADMIN NONE;
}

/// Commands for other data than plain values, and for functions that a cache of plain values does not have, in
/// alphabetical order.
const NOT_HERE: &[&str] = &[
    "bgrewriteaof",
    "bgsave",
    "bitcount",
    "bitfield",
    "bitfield_ro",
    "bitop",
    "bitpos",
    "blmove",
    "blmpop",
    "blpop",
    "brpop",
    "brpoplpush",
    "bzmpop",
    "bzpopmax",
    "bzpopmin",
    "cluster",
    "failover",
    "fcall",
    "fcall_ro",
    "function",
    "geoadd",
    "geodist",
    "geohash",
    "geopos",
    "georadius",
    "georadius_ro",
    "georadiusbymember",
    "georadiusbymember_ro",
    "geosearch",
    "geosearchstore",
    "getbit",
    "hdel",
    "hexists",
    "hget",
    "hgetall",
    "hincrby",
    "hincrbyfloat",
    "hkeys",
    "hlen",
    "hmget",
    "hmset",
    "hrandfield",
    "hscan",
    "hset",
    "hsetnx",
    "hstrlen",
    "hvals",
    "lcs",
    "lindex",
    "linsert",
    "llen",
    "lmove",
    "lmpop",
    "lpop",
    "lpos",
    "lpush",
    "lpushx",
    "lrange",
    "lrem",
    "lset",
    "ltrim",
    "migrate",
    "module",
    "monitor",
    "pfadd",
    "pfcount",
    "pfmerge",
    "psync",
    "replicaof",
    "rpop",
    "rpoplpush",
    "rpush",
    "rpushx",
    "sadd",
    "save",
    "scard",
    "sdiff",
    "sdiffstore",
    "setbit",
    "shutdown",
    "sinter",
    "sintercard",
    "sinterstore",
    "sismember",
    "slaveof",
    "smembers",
    "smismember",
    "smove",
    "sort",
    "sort_ro",
    "spop",
    "srandmember",
    "srem",
    "sscan",
    "sunion",
    "sunionstore",
    "sync",
    "waitaof",
    "xack",
    "xadd",
    "xautoclaim",
    "xclaim",
    "xdel",
    "xgroup",
    "xinfo",
    "xlen",
    "xpending",
    "xrange",
    "xread",
    "xreadgroup",
    "xrevrange",
    "xsetid",
    "xtrim",
    "zadd",
    "zcard",
    "zcount",
    "zdiff",
    "zdiffstore",
    "zincrby",
    "zinter",
    "zintercard",
    "zinterstore",
    "zlexcount",
    "zmpop",
    "zmscore",
    "zpopmax",
    "zpopmin",
    "zrandmember",
    "zrange",
    "zrangebylex",
    "zrangebyscore",
    "zrangestore",
    "zrank",
    "zrem",
    "zremrangebylex",
    "zremrangebyrank",
    "zremrangebyscore",
    "zrevrange",
    "zrevrangebylex",
    "zrevrangebyscore",
    "zrevrank",
    "zscan",
    "zscore",
    "zunion",
    "zunionstore",
];

/// The longest name of any.
pub(super) const NAME_LEN_MAX: usize = 20;

/// The result of a search by name, which ignores the case of letters.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named {
    Known(Entry),
    NotHere(&'static str),
    Unknown,
}

/// Looks a command up.
#[inline]
pub(super) fn named(name: &[u8]) -> Named {
    let mut room = [0; NAME_LEN_MAX];
    let small = small(name, &mut room);
    match find(small) {
        Some(entry) => Named::Known(entry),
        None => match NOT_HERE.binary_search_by_key(&small, |name| name.as_bytes()) {
            Ok(at) => Named::NotHere(NOT_HERE[at]),
            Err(_) => Named::Unknown,
        },
    }
}

/// A word in small letters. Empty if it is longer than any name.
#[inline]
pub(super) fn small<'r>(word: &[u8], room: &'r mut [u8; NAME_LEN_MAX]) -> &'r [u8] {
    let Some(place) = room.get_mut(..word.len()) else {
        return &[];
    };
    place.copy_from_slice(word);
    place.make_ascii_lowercase();
    place
}

/// Checks a command of a script. True if it may change something. Errors: it is none, or none for scripts.
pub fn in_script(words: &[&[u8]]) -> Result<bool, Error<'static>> {
    let name = words.first().copied().unwrap_or_default();
    let entry = match named(name) {
        Named::Known(entry) => entry,
        Named::NotHere(name) => return Err(Error::NotHere(name)),
        Named::Unknown => return Err(Error::SCRIPT_COMMAND_UNKNOWN),
    };
    let count = words.len() as i64;
    let has_words = match entry.arity {
        least @ ..0 => count >= -least,
        exact => count == exact,
    };
    if !has_words {
        return Err(Error::SCRIPT_COMMAND_ARITY);
    }
    let flags = flags(entry.verb);
    match entry.verb {
        Verb::Eval | Verb::EvalSha | Verb::EvalRo | Verb::EvalShaRo => {
            Err(Error::SCRIPT_COMMAND_FORBIDDEN)
        }
        Verb::Publish | Verb::SPublish => Ok(true),
        Verb::Ping | Verb::Echo | Verb::Time | Verb::Select => Ok(false),
        _ if flags.contains(&"write") => Ok(true),
        _ if flags.contains(&"readonly") => Ok(false),
        _ => Err(Error::SCRIPT_COMMAND_FORBIDDEN),
    }
}

/// All commands that this server has.
pub fn described() -> &'static [Described] {
    DESCRIBED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case() {
        for described in described() {
            for name in [described.name.to_owned(), described.name.to_uppercase()] {
                let Named::Known(entry) = named(name.as_bytes()) else {
                    panic!("{name}");
                };
                assert_eq!((entry.name, entry.arity), (described.name, described.arity));
            }
        }
        assert!(matches!(named(b"LPush"), Named::NotHere("lpush")));
        for name in [&b""[..], b"gett", b"ge", b"get ", b"georadiusbymember_rox"] {
            assert!(matches!(named(name), Named::Unknown), "{name:?}");
        }
    }

    #[test]
    fn what_is_not_here_is_in_order_and_is_not_here() {
        assert!(NOT_HERE.is_sorted());
        for name in NOT_HERE {
            assert!(name.len() <= NAME_LEN_MAX && find(name.as_bytes()).is_none());
        }
    }

    #[test]
    fn the_document_names_every_command() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/redis.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (_, rest) = text.split_once("\n## What there is\n").unwrap();
        let (table, _) = rest.split_once("\n## ").unwrap();
        let words: Vec<&str> = table
            .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .collect();
        for described in described() {
            let name = described.name.to_uppercase();
            assert!(words.contains(&name.as_str()), "{name}: docs/redis.md");
        }
    }
}
