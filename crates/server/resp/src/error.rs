//! Errors of Redis' protocol, with Redis' texts.

/// Errors. [`Writer::error`](crate::Writer::error) writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error<'a> {
    /// An error with this text.
    Words(&'static str),
    /// A key over the limit of this many bytes.
    KeyTooLong(usize),
    /// This byte is at a place where an argument must begin.
    Expected(u8),
    /// No command has this name.
    Unknown {
        /// The name, or its front.
        name: &'a [u8],
        /// The input from its first argument on.
        behind: &'a [u8],
        /// The number of arguments that the error shows.
        arguments: u32,
    },
    /// No subcommand has this name.
    UnknownSubcommand {
        /// The command, in capitals.
        command: &'static str,
        /// The name in the request.
        name: &'a [u8],
    },
    /// This command, or subcommand (`client|id`), takes another number of arguments.
    Arity(&'static str),
    /// The expiry in this command is invalid.
    Expiry(&'static str),
    /// A command for data types that this server does not have, since it has plain values only.
    NotHere(&'static str),
    /// A command, or subcommand (`client|id`), that a client of RESP2 cannot send while it has subscribed.
    Subscribed(&'a str),
    /// An option that EXPIRE and the like do not have.
    Option(&'a [u8]),
    /// ACL CAT of a category that does not exist.
    CategoryUnknown(&'a [u8]),
    /// CONFIG SET of a setting that does not exist.
    ConfigUnknown(&'a [u8]),
    /// CONFIG SET that is refused.
    Config {
        /// The setting.
        name: &'a [u8],
        /// The reason.
        why: &'static str,
    },
    /// A kind of connections that Redis does not have.
    ClientType(&'a [u8]),
    /// CLIENT TRACKING: of two prefixes one begins the other.
    Overlap {
        /// One of the request.
        prefix: &'a [u8],
        /// Another.
        other: &'a [u8],
        /// The client has set the other already.
        is_set: bool,
    },
    /// CLIENT KILL of a user who does not exist.
    NoUser(&'a [u8]),
    /// An attribute that CLIENT SETINFO does not have.
    InfoUnknown(&'a [u8]),
    /// This attribute of CLIENT SETINFO would break the lines of CLIENT LIST.
    Info(&'a [u8]),
    /// An option that HELLO does not have.
    HelloOption(&'a [u8]),
    /// The error that a script ends with, or returns.
    Script(&'a [u8]),
}

impl Error<'static> {
    /// The number of arguments is invalid.
    pub const MULTIBULK_LENGTH: Self = Error::Words("ERR Protocol error: invalid multibulk length");
    /// The length of an argument is invalid.
    pub const BULK_LENGTH: Self = Error::Words("ERR Protocol error: invalid bulk length");
    /// An inline request without an end.
    pub const INLINE_TOO_LONG: Self = Error::Words("ERR Protocol error: too big inline request");
    /// An inline request whose quotes do not close.
    pub const QUOTES: Self = Error::Words("ERR Protocol error: unbalanced quotes in request");
    /// Arguments over their limit.
    pub const ARGUMENTS_TOO_LONG: Self = Error::Words("ERR arguments are longer than 64 KiB");
    /// A key without bytes.
    pub const KEY_EMPTY: Self = Error::Words("ERR key is empty");
    /// A pattern over its limit.
    pub const PATTERN_TOO_LONG: Self = Error::Words("ERR pattern is longer than 1024 bytes");
    /// The name of a channel that is longer than a pattern may be.
    pub const CHANNEL_TOO_LONG: Self =
        Error::Words("ERR name of a channel is longer than 1024 bytes");
    /// PSUBSCRIBE: too many patterns of all clients.
    pub const PATTERNS_OF_ALL_TOO_MANY: Self =
        Error::Words("ERR too many patterns of all connections");
    /// A value that can never be stored.
    pub const TOO_LARGE: Self =
        Error::Words("ERR value is larger than this cache's limit of an item");
    /// A value that finds no memory now.
    pub const OUT_OF_MEMORY: Self =
        Error::Words("OOM command not allowed when used memory > 'maxmemory'.");
    /// A change of an item whose server does not answer.
    pub const UNAVAILABLE: Self =
        Error::Words("ERR the server behind this cache that has the key does not answer");
    /// A flush that not all servers behind this one have carried out.
    pub const FLUSH_INCOMPLETE: Self =
        Error::Words("ERR a server behind this cache does not answer: its items are still there");
    /// Options that contradict each other, or do not exist.
    pub const SYNTAX: Self = Error::Words("ERR syntax error");
    /// Not a number, or too large a one.
    pub const NOT_INTEGER: Self = Error::Words("ERR value is not an integer or out of range");
    /// A number that does not fit into 32 bits.
    pub const INT_RANGE: Self =
        Error::Words("ERR value is out of range, value must between -2147483648 and 2147483647");
    /// Not a number with a fraction.
    pub const NOT_FLOAT: Self = Error::Words("ERR value is not a valid float");
    /// A number too large for INCRBYFLOAT.
    pub const NOT_FINITE: Self = Error::Words("ERR increment would produce NaN or Infinity");
    /// A number too large for INCR.
    pub const OVERFLOW: Self = Error::Words("ERR increment or decrement would overflow");
    /// The one number whose negative does not fit into 64 bits.
    pub const DECREMENT_OVERFLOW: Self = Error::Words("ERR decrement would overflow");
    /// A negative offset.
    pub const OFFSET: Self = Error::Words("ERR offset is out of range");
    /// SETRANGE would make a value that is too long.
    pub const STRING_TOO_LONG: Self =
        Error::Words("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    /// A cursor that is not a number.
    pub const CURSOR: Self = Error::Words("ERR invalid cursor");
    /// There is no database with this number.
    pub const DATABASE: Self = Error::Words("ERR DB index is out of range");
    /// SWAPDB: the first database.
    pub const FIRST_INDEX: Self = Error::Words("ERR invalid first DB index");
    /// SWAPDB: the second database.
    pub const SECOND_INDEX: Self = Error::Words("ERR invalid second DB index");
    /// MOVE to the database where the key is.
    pub const SAME_OBJECT: Self = Error::Words("ERR source and destination objects are the same");
    /// FLUSHDB after millions of others.
    pub const NO_GENERATION: Self =
        Error::Words("ERR databases were flushed one by one too often: flush all, or restart");
    /// RENAME of a key that is not there.
    pub const NO_KEY: Self = Error::Words("ERR no such key");
    /// RESTORE of a key that is there.
    pub const BUSY_KEY: Self = Error::Words("BUSYKEY Target key name already exists.");
    /// RESTORE of bytes that are no DUMP.
    pub const DUMP_BROKEN: Self = Error::Words("ERR DUMP payload version or checksum are wrong");
    /// RESTORE of what is no plain value.
    pub const DUMP_FORMAT: Self = Error::Words("ERR Bad data format");
    /// RESTORE with a negative expiry.
    pub const TTL_NEGATIVE: Self = Error::Words("ERR Invalid TTL value, must be >= 0");
    /// RESTORE: IDLETIME.
    pub const IDLETIME: Self = Error::Words("ERR Invalid IDLETIME value, must be >= 0");
    /// RESTORE: FREQ.
    pub const FREQ: Self = Error::Words("ERR Invalid FREQ value, must be >= 0 and <= 255");
    /// A digest that is none.
    pub const DIGEST: Self = Error::Words("ERR digest must be exactly 16 hexadecimal characters");
    /// DELEX with another word than a condition's.
    pub const CONDITION: Self =
        Error::Words("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE");
    /// MSETEX with an invalid number of keys.
    pub const NUMKEYS: Self = Error::Words("ERR invalid numkeys value or out of range");
    /// WAIT with a timeout that is no number.
    pub const TIMEOUT: Self = Error::Words("ERR timeout is not an integer or out of range");
    /// WAIT with a negative timeout.
    pub const TIMEOUT_NEGATIVE: Self = Error::Words("ERR timeout is negative");
    /// SLOWLOG GET of a negative number of entries.
    pub const SLOWLOG_COUNT: Self = Error::Words("ERR count should be greater than or equal to -1");
    /// CLIENT KILL of nobody.
    pub const NO_CLIENT: Self = Error::Words("ERR No such client");
    /// CLIENT KILL of a number that no connection can have.
    pub const CLIENT_ID_POSITIVE: Self = Error::Words("ERR client-id should be greater than 0");
    /// CLIENT KILL of connections older than nothing.
    pub const MAX_AGE: Self = Error::Words("ERR maxage should be greater than 0");
    /// CLIENT KILL with an age that is no number.
    pub const MAX_AGE_INTEGER: Self = Error::Words("ERR maxage is not an integer or out of range");
    /// CLIENT KILL where it is not allowed.
    pub const KILL_FORBIDDEN: Self = Error::Words("ERR CLIENT KILL is not allowed here");
    /// CLIENT PAUSE and UNPAUSE where they are not allowed.
    pub const PAUSE_FORBIDDEN: Self =
        Error::Words("ERR CLIENT PAUSE and UNPAUSE are not allowed here");
    /// CLIENT PAUSE of something else than writes or all.
    pub const PAUSE_MODE: Self = Error::Words("ERR CLIENT PAUSE mode must be WRITE or ALL");
    /// CLIENT PAUSE for too long.
    pub const PAUSE_TOO_LONG: Self =
        Error::Words("ERR a pause is 60000 milliseconds long at most here");
    /// ACL LIST, USERS and GETUSER of a user who does not administrate the server.
    pub const ACL_FORBIDDEN: Self =
        Error::Words("NOPERM only a user who administrates this server may see its users");
    /// ACL CAT of several categories.
    pub const CATEGORIES: Self = Error::Words(
        "ERR unknown subcommand or wrong number of arguments for 'CAT'. Try ACL HELP.",
    );
    /// COMMAND GETKEYS of a command that does not exist.
    pub const COMMAND_INVALID: Self = Error::Words("ERR Invalid command specified");
    /// COMMAND GETKEYS with another number of arguments than the command's.
    pub const COMMAND_ARITY: Self =
        Error::Words("ERR Invalid number of arguments specified for command");
    /// COMMAND GETKEYS of a command without keys.
    pub const COMMAND_KEYLESS: Self = Error::Words("ERR The command has no key arguments");
    /// More subscriptions than a connection may have.
    pub const SUBSCRIPTIONS_TOO_MANY: Self =
        Error::Words("ERR too many subscriptions of one connection");
    /// CLIENT TRACKING: REDIRECT to two connections.
    pub const REDIRECT_TWICE: Self =
        Error::Words("ERR A client can only redirect to a single other client");
    /// CLIENT TRACKING: REDIRECT to nobody.
    pub const REDIRECT_NOBODY: Self =
        Error::Words("ERR The client ID you want redirect to does not exist");
    /// CLIENT TRACKING: PREFIX without BCAST.
    pub const PREFIX_WITHOUT_BROADCAST: Self =
        Error::Words("ERR PREFIX option requires BCAST mode to be enabled");
    /// CLIENT TRACKING: BCAST with OPTIN or OPTOUT.
    pub const OPTIONS_OF_BROADCAST: Self =
        Error::Words("ERR OPTIN and OPTOUT are not compatible with BCAST");
    /// CLIENT TRACKING: OPTIN and OPTOUT.
    pub const OPT_IN_AND_OUT: Self =
        Error::Words("ERR You can't specify both OPTIN mode and OPTOUT mode");
    /// CLIENT TRACKING: BCAST while the client tracks without it, or the other way.
    pub const SWITCH_BROADCAST: Self = Error::Words(
        "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it \
         with a different mode.",
    );
    /// CLIENT TRACKING: OPTIN while the client tracks with OPTOUT, or the other way.
    pub const SWITCH_OPTIONS: Self = Error::Words(
        "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it \
         with a different mode.",
    );
    /// CLIENT TRACKING: too many prefixes.
    pub const PREFIXES_TOO_MANY: Self = Error::Words("ERR too many prefixes of one connection");
    /// CLIENT TRACKING: too many prefixes of all clients.
    pub const PREFIXES_OF_ALL_TOO_MANY: Self =
        Error::Words("ERR too many prefixes of all connections");
    /// CLIENT TRACKING: a long prefix.
    pub const PREFIX_TOO_LONG: Self = Error::Words("ERR prefix is longer than 1024 bytes");
    /// CLIENT CACHING of a client that does not track.
    pub const CACHING_WITHOUT_TRACKING: Self = Error::Words(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
    );
    /// CLIENT CACHING YES without OPTIN.
    pub const CACHING_YES: Self = Error::Words(
        "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
    );
    /// CLIENT CACHING NO without OPTOUT.
    pub const CACHING_NO: Self = Error::Words(
        "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
    );
    /// EXPIRE: NX and another.
    pub const EXPIRE_NX: Self =
        Error::Words("ERR NX and XX, GT or LT options at the same time are not compatible");
    /// EXPIRE: GT and LT.
    pub const EXPIRE_GT_LT: Self =
        Error::Words("ERR GT and LT options at the same time are not compatible");
    /// HELLO with a version of the protocol that does not exist.
    pub const NO_PROTOCOL: Self = Error::Words("NOPROTO unsupported protocol version");
    /// HELLO with a version that is no number.
    pub const PROTOCOL_NUMBER: Self =
        Error::Words("ERR Protocol version is not an integer or out of range");
    /// AUTH where there is no password.
    pub const NO_PASSWORD: Self = Error::Words(
        "ERR AUTH <password> called without any password configured for the default user. \
         Are you sure your configuration is correct?",
    );
    /// AUTH with a wrong password.
    pub const WRONG_PASSWORD: Self =
        Error::Words("WRONGPASS invalid username-password pair or user is disabled.");
    /// A command before AUTH.
    pub const NO_AUTH: Self = Error::Words("NOAUTH Authentication required.");
    /// HELLO before AUTH.
    pub const NO_AUTH_HELLO: Self = Error::Words(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
         <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
    );
    /// EXEC without MULTI.
    pub const EXEC_WITHOUT_MULTI: Self = Error::Words("ERR EXEC without MULTI");
    /// DISCARD without MULTI.
    pub const DISCARD_WITHOUT_MULTI: Self = Error::Words("ERR DISCARD without MULTI");
    /// MULTI in MULTI.
    pub const NESTED: Self = Error::Words("ERR MULTI calls can not be nested");
    /// WATCH in MULTI.
    pub const WATCH_INSIDE: Self = Error::Words("ERR WATCH inside MULTI is not allowed");
    /// EXEC of a transaction with a refused request.
    pub const ABORTED: Self =
        Error::Words("EXECABORT Transaction discarded because of previous errors.");
    /// A transaction over its limit.
    pub const TRANSACTION_TOO_LONG: Self = Error::Words("ERR transaction is too long");
    /// More keys than a connection may watch.
    pub const WATCHES_TOO_MANY: Self = Error::Words("ERR too many keys are watched");
    /// An invalid number of a connection.
    pub const CLIENT_ID: Self = Error::Words("ERR Invalid client ID");
    /// A name with spaces.
    pub const CLIENT_NAME: Self =
        Error::Words("ERR Client names cannot contain spaces, newlines or special characters.");
    /// A connection's name over the limit.
    pub const CLIENT_NAME_TOO_LONG: Self =
        Error::Words("ERR Client names cannot be longer than 256 bytes.");
    /// Other clients changed the key again and again meanwhile.
    pub const BUSY: Self = Error::Words("ERR the key is being changed too often, try again");
    /// The database was another one when the value began.
    pub const DATABASE_CHANGED: Self =
        Error::Words("ERR the database was swapped or flushed while the value arrived, try again");
    /// SCAN with a cursor that the server never returned, or returned long ago.
    pub const CURSOR_UNKNOWN: Self =
        Error::Words("ERR cursor is unknown or too old, begin again with 0");
    /// A KEYS whose answer is too long.
    pub const KEYS_TOO_MANY: Self = Error::Words("ERR too many keys for one answer, use SCAN");
    /// KEYS and the like where they are not allowed.
    pub const DUMP_FORBIDDEN: Self = Error::Words("ERR keys may not be listed here");
    /// OBJECT FREQ: the server does not count accesses.
    pub const NO_FREQUENCY: Self = Error::Words(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when \
         switching between policies at runtime LRU and LFU data will take some time to adjust.",
    );
    /// EVAL or SCRIPT LOAD of an unknown script.
    pub const SCRIPT_UNKNOWN: Self = Error::Words(
        "ERR this script is not known: there is no Lua here, only scripts that read, compare and change the one key that \
         they name, such as those of django-redis (incr), redis-py (Lock), Laravel (cache add, lock release) and rate limiters. \
         The server runs others with --lua",
    );
    /// A script over a limit.
    pub const SCRIPT_TOO_LONG: Self = Error::Words(
        "ERR the script takes too long: it looks at long texts too often, or it makes or answers too many bytes of them",
    );
    /// EVALSHA of an unknown script.
    pub const NO_SCRIPT: Self = Error::Words("NOSCRIPT No matching script. Please use EVAL.");
    /// EVAL of more keys than arguments.
    pub const SCRIPT_KEYS_TOO_MANY: Self =
        Error::Words("ERR Number of keys can't be greater than number of args");
    /// EVAL with a negative number of keys.
    pub const SCRIPT_KEYS_NEGATIVE: Self = Error::Words("ERR Number of keys can't be negative");
    /// SCRIPT FLUSH with an unknown option.
    pub const SCRIPT_FLUSH: Self = Error::Words("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
    /// A command of a script that is not known.
    pub const SCRIPT_COMMAND_UNKNOWN: Self =
        Error::Words("ERR Unknown Redis command called from script");
    /// A command of a script with too few or too many words.
    pub const SCRIPT_COMMAND_ARITY: Self =
        Error::Words("ERR Wrong number of args calling Redis command from script");
    /// A command that scripts may not call.
    pub const SCRIPT_COMMAND_FORBIDDEN: Self =
        Error::Words("ERR This Redis command is not allowed from script");
    /// A script that may only read calls a command that writes.
    pub const SCRIPT_READS_ONLY: Self =
        Error::Words("ERR Write commands are not allowed from read-only scripts.");
    /// A script of Lua has used up its steps.
    pub const SCRIPT_STEPS: Self =
        Error::Words("ERR the script was ended: it took more steps than it may (-o lua_steps)");
    /// A script of Lua has no memory left.
    pub const SCRIPT_MEMORY: Self =
        Error::Words("ERR the script was ended: it needs more memory than it may (-o lua_memory)");
    /// A command of a script has a longer answer than a script has memory.
    pub const SCRIPT_ANSWER: Self = Error::Words(
        "ERR the answer of the command is longer than the memory of a script (-o lua_memory)",
    );
    /// A script was stopped by SCRIPT KILL.
    pub const SCRIPT_KILLED: Self =
        Error::Words("ERR Error running script: Script killed by user with SCRIPT KILL.");
    /// A script was still running when the server's end came.
    pub const SCRIPT_CLOSED: Self = Error::Words("ERR the script was ended: the server stops");
    /// SCRIPT LOAD of one more than there is room for.
    pub const SCRIPTS_TOO_MANY: Self = Error::Words(
        "ERR there is no room for another script: SCRIPT FLUSH makes room, EVAL needs none",
    );
    /// A script runs for long.
    pub const SCRIPT_BUSY: Self = Error::Words(
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    );
    /// SCRIPT KILL of a script that has written.
    pub const UNKILLABLE: Self = Error::Words(
        "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script \
         termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
    );
    /// SCRIPT KILL: no script runs for long.
    pub const NOT_BUSY: Self = Error::Words("NOTBUSY No scripts in execution right now.");
    /// FLUSHALL where it is not allowed.
    pub const FLUSH_FORBIDDEN: Self = Error::Words("ERR FLUSHALL is not allowed here");
    /// CONFIG SET where it is not allowed.
    pub const CONFIG_FORBIDDEN: Self = Error::Words("ERR CONFIG SET is not allowed here");
    /// CONFIG RESETSTAT where it is not allowed.
    pub const RESET_FORBIDDEN: Self = Error::Words("ERR CONFIG RESETSTAT is not allowed here");
}
