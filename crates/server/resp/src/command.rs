//! Redis' commands, as the parser returns them. Everything borrows from the input.

use nuthatch_protocol::Awaited;

use crate::arguments::Values;
use crate::channels::ChannelCommand;
use crate::conditions::Comparison;
use crate::error::Error;
use crate::kill::{ClientKind, Kill};
use crate::number::Decimal;
use crate::pause::Pause;
use crate::rest::Rest;
use crate::tracking::Tracking;

/// The request at the front of the input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parsed<'a> {
    /// Nothing complete yet: parse again when this has arrived.
    Incomplete(Awaited),
    /// No request, and no answer: an empty line, or a request of no arguments.
    Nothing {
        /// Bytes to drop from the input.
        consumed: usize,
    },
    /// A line without RESP's marks, typed by hand: see [`rewrite`](crate::rewrite).
    Inline {
        /// The line without its end.
        line: &'a [u8],
        /// Its bytes, its end included.
        consumed: usize,
    },
    /// A complete command.
    Command {
        /// The command.
        command: Command<'a>,
        /// Bytes to drop from the input.
        consumed: usize,
    },
    /// The head of a command whose arguments are taken one by one.
    Many {
        /// The command.
        verb: Many,
        /// The number of its arguments: one or more, and an even number if they are pairs.
        arguments: u32,
        /// Bytes of the head.
        consumed: usize,
    },
    /// A command with a value that has not arrived completely. The server may wait for it, or take the value piece by
    /// piece.
    Body(Body<'a>),
    /// A request that cannot be executed.
    Refused(Refusal<'a>),
}

/// An announced value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body<'a> {
    /// The value's key.
    pub key: &'a [u8],
    /// Where the line with its length begins.
    pub line: usize,
    /// Bytes before the value.
    pub head: usize,
    /// Bytes of the value, without the `\r\n` behind them.
    pub value_len: usize,
    /// True if it is the whole value of an item. SETRANGE's is not.
    pub whole: bool,
    /// The rest behind the value: that `\r\n`, and all other arguments.
    pub rest: Rest,
    /// The bytes that must arrive before the parser can return more.
    pub awaited: Awaited,
}

/// Why a request is refused, and how the connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// The error for the client.
    pub error: Error<'a>,
    /// Bytes to drop from the input now.
    pub consumed: usize,
    /// The rest of the request, which is to be dropped after those.
    pub rest: Rest,
    /// True if the input behind it cannot be parsed: reply, then close.
    pub close: bool,
}

/// Commands whose arguments are taken one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Many {
    /// MGET: a value for each key.
    Mget,
    /// MSET: keys and values.
    Mset,
    /// DEL, UNLINK: how many keys existed.
    Del,
    /// EXISTS: how many keys exist.
    Exists,
    /// TOUCH: how many keys exist. They count as used.
    Touch,
}

/// A command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command<'a> {
    /// About keys and their values.
    Value(ValueCommand<'a>),
    /// About a transaction.
    Transaction(TransactionCommand<'a>),
    /// About the server, the connection, or all items.
    Server(ServerCommand<'a>),
}

/// A command about keys and their values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueCommand<'a> {
    /// GET.
    Get {
        /// The key.
        key: &'a [u8],
    },
    /// SET, SETEX, PSETEX, SETNX, GETSET.
    Set(Set<'a>),
    /// MSETNX, MSETEX.
    SetAll(SetAll<'a>),
    /// DELIFEQ, DELEX.
    DelIf {
        /// The key.
        key: &'a [u8],
        /// The condition on its value, if there is one.
        when: Option<Comparison<'a>>,
    },
    /// DIGEST.
    Digest {
        /// The key.
        key: &'a [u8],
    },
    /// RENAME, RENAMENX.
    Rename {
        /// The key.
        key: &'a [u8],
        /// Its new name.
        to: &'a [u8],
        /// Only if there is no key of that name.
        only_absent: bool,
    },
    /// COPY.
    Copy(Copying<'a>),
    /// DUMP.
    Dump {
        /// The key.
        key: &'a [u8],
    },
    /// RESTORE.
    Restore(Restore<'a>),
    /// GETDEL.
    GetDel {
        /// The key.
        key: &'a [u8],
    },
    /// GETEX.
    GetEx {
        /// The key.
        key: &'a [u8],
        /// Its new expiry.
        lifetime: Lifetime,
    },
    /// APPEND.
    Append {
        /// The key.
        key: &'a [u8],
        /// The bytes to append to its value.
        value: &'a [u8],
    },
    /// STRLEN.
    StrLen {
        /// The key.
        key: &'a [u8],
    },
    /// GETRANGE, SUBSTR.
    GetRange {
        /// The key.
        key: &'a [u8],
        /// The first byte. A negative number counts from the end.
        start: i64,
        /// The last byte.
        end: i64,
    },
    /// SETRANGE.
    SetRange {
        /// The key.
        key: &'a [u8],
        /// The first byte that changes.
        offset: u64,
        /// The new bytes.
        value: &'a [u8],
    },
    /// INCR, DECR, INCRBY, DECRBY.
    IncrBy {
        /// The key.
        key: &'a [u8],
        /// By how much.
        by: i64,
    },
    /// INCRBYFLOAT.
    IncrByFloat {
        /// The key.
        key: &'a [u8],
        /// By how much.
        by: Decimal,
    },
    /// TYPE.
    Type {
        /// The key.
        key: &'a [u8],
    },
    /// EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT.
    Expire {
        /// The key.
        key: &'a [u8],
        /// Its new expiry.
        moment: Moment,
        /// The items that get it.
        which: ExpireCondition,
    },
    /// TTL, PTTL, EXPIRETIME, PEXPIRETIME.
    Ttl {
        /// The key.
        key: &'a [u8],
        /// The form of the answer.
        form: ExpiryForm,
    },
    /// MOVE.
    Move {
        /// The key.
        key: &'a [u8],
        /// The database that it goes to.
        database: i64,
    },
    /// PERSIST.
    Persist {
        /// The key.
        key: &'a [u8],
    },
    /// EVAL, EVALSHA, EVAL_RO, EVALSHA_RO.
    Eval(Eval<'a>),
}

/// A command about a transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TransactionCommand<'a> {
    /// MULTI.
    Multi,
    /// EXEC.
    Exec,
    /// DISCARD.
    Discard,
    /// WATCH.
    Watch(Values<'a>),
    /// UNWATCH.
    Unwatch,
}

/// A command about databases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DatabaseCommand {
    /// SELECT.
    Select(i64),
    /// SWAPDB.
    Swap(i64, i64),
    /// FLUSHDB.
    Flush,
    /// FLUSHALL.
    FlushAll,
}

/// A command about the server, the connection, or all items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ServerCommand<'a> {
    /// KEYS.
    Keys {
        /// The pattern.
        pattern: &'a [u8],
    },
    /// SCAN.
    Scan(Scan<'a>),
    /// RANDOMKEY.
    RandomKey,
    /// DBSIZE.
    DbSize,
    /// PING, with the text to repeat.
    Ping(Option<&'a [u8]>),
    /// ECHO.
    Echo(&'a [u8]),
    /// HELLO.
    Hello(Hello<'a>),
    /// AUTH.
    Auth(Login<'a>),
    /// SELECT, SWAPDB, FLUSHDB, FLUSHALL.
    Database(DatabaseCommand),
    /// QUIT.
    Quit,
    /// RESET.
    Reset,
    /// CLIENT.
    Client(Client<'a>),
    /// HELP of a command that has subcommands.
    Help {
        /// The command, in capitals.
        command: &'static str,
        /// Its subcommands.
        subcommands: &'static str,
    },
    /// COMMAND.
    Command(Commands<'a>),
    /// CONFIG.
    Config(Config<'a>),
    /// INFO, with the names of sections.
    Info(Values<'a>),
    /// MEMORY.
    Memory(Memory<'a>),
    /// OBJECT.
    Object(Object<'a>),
    /// SCRIPT.
    Script(Scripts<'a>),
    /// TIME.
    Time,
    /// ROLE, LASTSAVE, WAIT, SLOWLOG, LATENCY, ACL.
    Insight(Insight<'a>),
    /// PUBLISH, SUBSCRIBE, UNSUBSCRIBE and their like, PUBSUB.
    Channel(ChannelCommand<'a>),
}

/// A command about what the server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insight<'a> {
    /// ROLE.
    Role,
    /// LASTSAVE.
    LastSave,
    /// ACL.
    Acl(Acl<'a>),
    /// One whose answer is always the same.
    Constant(Constant),
}

/// ACL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acl<'a> {
    /// CAT: all categories.
    Categories,
    /// CAT: the commands of a category, split by spaces.
    Category(&'static str),
    /// GETUSER: the user of this name.
    User(&'a [u8]),
    /// WHOAMI.
    WhoAmI,
    /// USERS.
    Users,
    /// LIST.
    List,
}

/// The answer about something that this server does not have, such as a log of slow commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constant {
    /// OK.
    Ok,
    /// 0.
    Zero,
    /// An array of nothing.
    Empty,
    /// A map of nothing.
    EmptyMap,
    /// LATENCY DOCTOR.
    Doctor,
}

impl<'a> From<ValueCommand<'a>> for Command<'a> {
    fn from(command: ValueCommand<'a>) -> Self {
        Self::Value(command)
    }
}

impl<'a> From<TransactionCommand<'a>> for Command<'a> {
    fn from(command: TransactionCommand<'a>) -> Self {
        Self::Transaction(command)
    }
}

impl<'a> From<ServerCommand<'a>> for Command<'a> {
    fn from(command: ServerCommand<'a>) -> Self {
        Self::Server(command)
    }
}

/// A store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// The condition of the store.
    pub when: StoreCondition<'a>,
    /// The item's expiry.
    pub lifetime: Lifetime,
    /// How it is answered.
    pub answer: SetAnswer,
}

/// The condition of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreCondition<'a> {
    /// No condition.
    Always,
    /// No item (NX).
    Absent,
    /// An item (XX).
    Present,
    /// An item with such a value, or none if it has to differ (IFEQ, IFNE, IFDEQ, IFDNE).
    Compared(Comparison<'a>),
}

/// A store of several keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SetAll<'a> {
    /// Keys and values, an even number.
    pub pairs: Values<'a>,
    /// The items' expiry.
    pub lifetime: Lifetime,
    /// The condition for all of them, which compares no values.
    pub when: StoreCondition<'a>,
}

/// COPY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copying<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The key of the copy.
    pub to: &'a [u8],
    /// The copy's database, if it is named.
    pub database: Option<i64>,
    /// A value that is there is replaced.
    pub replace: bool,
}

/// RESTORE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restore<'a> {
    /// The key.
    pub key: &'a [u8],
    /// What a DUMP answered.
    pub dump: &'a [u8],
    /// The item's expiry.
    pub lifetime: Lifetime,
    /// A value that is there is replaced.
    pub replace: bool,
}

/// How a store is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetAnswer {
    /// OK, or null.
    Status,
    /// 1, or 0 (SETNX).
    Number,
    /// The value before it, or null (GET, GETSET).
    Old,
}

/// The change of an item's expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// The item never expires.
    Forever,
    /// The expiry stays as it is.
    Keep,
    /// The item expires at this moment.
    Until(Moment),
}

/// A moment, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// This long from now.
    In(i64),
    /// Since 1970.
    At(i64),
}

/// Which items EXPIRE changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpireCondition {
    /// Those that never expire (NX).
    pub lasting: bool,
    /// Those that expire (XX).
    pub expiring: bool,
    /// Those that would expire later (GT).
    pub later: bool,
    /// Those that would expire earlier (LT).
    pub earlier: bool,
}

/// EVAL, EVALSHA, EVAL_RO, EVALSHA_RO.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Eval<'a> {
    /// The script.
    pub script: ScriptName<'a>,
    /// The script's key. `None` if it has none, or several.
    pub key: Option<&'a [u8]>,
    /// The number of its keys.
    pub keys: usize,
    /// The script may only read.
    pub read_only: bool,
    /// The arguments behind the key. If there are several keys, these are in front.
    pub arguments: Values<'a>,
}

/// How a request names its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptName<'a> {
    /// By its text.
    Text(&'a [u8]),
    /// By the SHA-1 of its text.
    Sha1(&'a [u8]),
}

/// The form of an expiry in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiryForm {
    /// As a moment since 1970, not as the time that is left.
    pub absolute: bool,
    /// In milliseconds, not in seconds.
    pub millis: bool,
}

/// SCAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan<'a> {
    /// Where the scan goes on. 0 is the start.
    pub cursor: u64,
    /// The pattern of the keys, if not all.
    pub pattern: Option<&'a [u8]>,
    /// The scan looks at about this many items.
    pub count: u64,
    /// False if the scan is for a type that this server does not have.
    pub of_values: bool,
}

/// HELLO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hello<'a> {
    /// 2 or 3, if the version is to change.
    pub version: Option<u8>,
    /// The client's name and password.
    pub login: Option<Login<'a>>,
    /// The connection's name.
    pub name: Option<&'a [u8]>,
}

/// A name and a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Login<'a> {
    /// The user. `None` is Redis' default user.
    pub user: Option<&'a [u8]>,
    /// The password.
    pub password: &'a [u8],
}

/// CLIENT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Client<'a> {
    /// ID.
    Id,
    /// GETNAME.
    GetName,
    /// SETNAME.
    SetName(&'a [u8]),
    /// SETINFO.
    SetInfo(Fact, &'a [u8]),
    /// PAUSE.
    Pause(Pause),
    /// UNPAUSE.
    Unpause,
    /// NO-TOUCH: ON, not OFF.
    NoTouch(bool),
    /// A subcommand that is accepted and changes nothing: NO-EVICT.
    Noted,
    /// REPLY.
    Reply(ReplyMode),
    /// INFO.
    Info,
    /// LIST of these.
    List(ClientFilter<'a>),
    /// GETREDIR.
    GetRedir,
    /// TRACKING.
    Tracking(Tracking<'a>),
    /// TRACKINGINFO.
    TrackingInfo,
    /// CACHING: YES, not NO.
    Caching(bool),
    /// KILL.
    Kill(Kill<'a>),
}

/// What a client says of itself by CLIENT SETINFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// Its library.
    Library,
    /// The library's version.
    LibraryVersion,
}

/// CLIENT REPLY: which requests get an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyMode {
    /// All, this one too.
    On,
    /// None, from this one on.
    Off,
    /// Neither this one nor the next.
    Skip,
}

/// SCRIPT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scripts<'a> {
    /// EXISTS: which of these names are names of scripts.
    Exists(Values<'a>),
    /// LOAD of this text.
    Load(&'a [u8]),
    /// FLUSH.
    Flush,
    /// KILL.
    Kill,
}

/// Which connections are listed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClientFilter<'a> {
    /// All.
    All,
    /// Those of a kind.
    Kind(ClientKind),
    /// Those with these numbers.
    Of(Values<'a>),
}

/// COMMAND.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Commands<'a> {
    /// Without a subcommand, and INFO without names: all.
    All,
    /// COUNT.
    Count,
    /// LIST, of the commands whose name matches this pattern, if there is one.
    List(Option<&'a [u8]>),
    /// LIST of a module's commands: there are no modules.
    Nothing,
    /// INFO of these.
    Info(Values<'a>),
    /// DOCS.
    Docs,
    /// GETKEYS of the command with these words.
    GetKeys(Values<'a>),
}

/// CONFIG.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Config<'a> {
    /// GET, with patterns.
    Get(Values<'a>),
    /// SET, with pairs.
    Set(Values<'a>),
    /// RESETSTAT.
    ResetStat,
}

/// MEMORY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory<'a> {
    /// USAGE.
    Usage(&'a [u8]),
    /// DOCTOR.
    Doctor,
    /// PURGE.
    Purge,
    /// STATS.
    Stats,
}

/// OBJECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The property of the item.
    pub ask: Ask,
}

/// The properties that OBJECT shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// ENCODING.
    Encoding,
    /// REFCOUNT.
    RefCount,
    /// IDLETIME.
    IdleTime,
    /// FREQ.
    Freq,
}
