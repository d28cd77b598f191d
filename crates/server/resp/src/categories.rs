//! Redis' categories of commands: ACL CAT, and the categories in COMMAND INFO.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::encode::Writer;
use crate::error::Error;

/// Each category with its commands that this server has, as Redis 8 puts them; those of newer versions and of Valkey as
/// they put them.
const CATEGORIES: &[(&str, &str)] = &[
    (
        "keyspace",
        "copy dbsize del dump exists expire expireat expiretime flushall flushdb keys move object|encoding \
         object|freq object|help object|idletime object|refcount persist pexpire pexpireat pexpiretime pttl \
         randomkey rename renamenx restore scan swapdb touch ttl type unlink",
    ),
    (
        "read",
        "dbsize digest dump exists expiretime get getrange keys memory|usage mget object|encoding object|freq \
         object|idletime object|refcount pexpiretime pttl randomkey scan strlen substr touch ttl type",
    ),
    (
        "write",
        "append copy decr decrby del delex delifeq expire expireat flushall flushdb getdel getex getset incr \
         incrby incrbyfloat move mset msetex msetnx persist pexpire pexpireat psetex rename renamenx restore \
         set setex setnx setrange swapdb unlink",
    ),
    ("set", ""),
    ("sortedset", ""),
    ("list", ""),
    ("hash", ""),
    (
        "string",
        "append decr decrby delex delifeq digest get getdel getex getrange getset incr incrby incrbyfloat \
         mget mset msetex msetnx psetex set setex setnx setrange strlen substr",
    ),
    ("bitmap", ""),
    ("hyperloglog", ""),
    ("geo", ""),
    ("stream", ""),
    (
        "pubsub",
        "psubscribe publish pubsub|channels pubsub|numpat pubsub|numsub pubsub|shardchannels \
         pubsub|shardnumsub punsubscribe spublish ssubscribe subscribe sunsubscribe unsubscribe",
    ),
    (
        "admin",
        "acl|getuser acl|list acl|users client|kill client|list client|no-evict client|pause client|unpause \
         config|get config|resetstat config|set lastsave latency|doctor latency|histogram latency|history \
         latency|latest latency|reset role slowlog|get slowlog|len slowlog|reset",
    ),
    (
        "fast",
        "append auth dbsize decr decrby delex delifeq digest discard echo exists expire expireat expiretime \
         get getdel getex getset hello incr incrby incrbyfloat lastsave mget move multi persist pexpire \
         pexpireat pexpiretime ping pttl publish quit renamenx reset role select setnx spublish strlen swapdb \
         time touch ttl type unlink unwatch watch",
    ),
    (
        "slow",
        "acl acl|cat acl|getuser acl|help acl|list acl|users acl|whoami client client|caching client|getname \
         client|getredir client|help client|id client|info client|kill client|list client|no-evict client|no-touch client|pause client|reply client|setinfo client|setname client|tracking client|trackinginfo \
         client|unpause command command|count command|docs command|getkeys command|help command|info \
         command|list config config|get config|help config|resetstat config|set copy del dump eval eval_ro \
         evalsha evalsha_ro exec flushall flushdb getrange info keys latency latency|doctor latency|help \
         latency|histogram latency|history latency|latest latency|reset memory memory|doctor memory|help \
         memory|purge memory|stats memory|usage mset msetex msetnx object object|encoding object|freq \
         object|help object|idletime object|refcount psetex psubscribe pubsub pubsub|channels pubsub|help \
         pubsub|numpat pubsub|numsub pubsub|shardchannels pubsub|shardnumsub punsubscribe randomkey rename \
         restore scan script script|exists script|flush script|help script|kill script|load set setex \
         setrange slowlog slowlog|get slowlog|help slowlog|len slowlog|reset ssubscribe subscribe substr \
         sunsubscribe unsubscribe wait",
    ),
    ("blocking", "wait"),
    (
        "dangerous",
        "acl|getuser acl|list acl|users client|kill client|list client|no-evict client|pause client|unpause \
         config|get config|resetstat config|set flushall flushdb info keys lastsave latency|doctor \
         latency|histogram latency|history latency|latest latency|reset restore role slowlog|get slowlog|len \
         slowlog|reset swapdb",
    ),
    (
        "connection",
        "auth client|caching client|getname client|getredir client|help client|id client|info client|kill \
         client|list client|no-evict client|no-touch client|pause client|reply client|setinfo client|setname \
         client|tracking client|trackinginfo client|unpause command command|count command|docs \
         command|getkeys command|help command|info command|list echo hello ping quit reset select wait",
    ),
    ("transaction", "discard exec multi unwatch watch"),
    (
        "scripting",
        "eval eval_ro evalsha evalsha_ro script|exists script|flush script|help script|kill script|load",
    ),
];

/// The commands of a category, by its name in any case, split by spaces. Error: there is no such category.
pub(super) fn commands(name: &[u8]) -> Result<&'static str, Error<'_>> {
    CATEGORIES
        .iter()
        .find(|(category, _)| name.eq_ignore_ascii_case(category.as_bytes()))
        .map(|(_, commands)| *commands)
        .ok_or(Error::CategoryUnknown(name))
}

/// The categories of each command, by its name.
static BY_COMMAND: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let mut all: HashMap<_, Vec<_>> = HashMap::new();
    for &(category, commands) in CATEGORIES {
        for command in commands.split_ascii_whitespace() {
            all.entry(command).or_default().push(category);
        }
    }
    all
});

/// The categories that a command is in.
fn of(command: &str) -> &'static [&'static str] {
    BY_COMMAND.get(command).map_or(&[], Vec::as_slice)
}

impl Writer<'_> {
    /// The names of all categories: ACL CAT.
    pub fn categories(&mut self) {
        self.array(CATEGORIES.len());
        for (category, _) in CATEGORIES {
            self.bulk(category.as_bytes());
        }
    }

    /// The names of a category's commands, which are split by spaces: ACL CAT with a name.
    pub fn category(&mut self, commands: &str) {
        let names = commands.split_ascii_whitespace();
        self.array(names.clone().count());
        names.for_each(|name| self.bulk(name.as_bytes()));
    }

    /// The categories of a command, as COMMAND INFO tells them.
    pub(super) fn categories_of(&mut self, command: &str) {
        self.set(of(command).len());
        for category in of(command) {
            self.status(&format!("@{category}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::described;

    #[test]
    fn every_command_is_either_fast_or_slow_and_no_other_is_listed() {
        for command in described() {
            let categories = of(command.name).iter();
            let speeds = categories.filter(|category| ["fast", "slow"].contains(category));
            assert_eq!(speeds.count(), 1, "{}", command.name);
        }
        for (_, commands) in CATEGORIES {
            for name in commands.split_ascii_whitespace() {
                let (command, _) = name.split_once('|').unwrap_or((name, ""));
                let is_known = described().iter().any(|known| known.name == command);
                assert!(is_known, "{name}");
            }
        }
    }

    #[test]
    fn what_reads_and_what_writes_is_flagged_so() {
        for command in described() {
            for (category, flag) in [("write", "write"), ("read", "readonly")] {
                let is_in = of(command.name).contains(&category);
                assert!(!is_in || command.flags.contains(&flag), "{}", command.name);
            }
        }
    }

    #[test]
    fn a_category_is_found_in_any_case() {
        assert_eq!(commands(b"Blocking").unwrap(), "wait");
        assert_eq!(commands(b"hash").unwrap(), "");
        assert!(commands(b"@read").is_err());
    }
}
