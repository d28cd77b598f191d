"""The same conversations go to redis-server and to ours, and the answers are compared byte by byte.

What differs, and is not compared here, stands in docs/redis.md: commands of data that are no plain values, keys over
64 KiB and empty ones, the order of KEYS and SCAN, INFO, CONFIG, CLIENT LIST, COMMAND, milliseconds of expiries
(a sixteenth of a second here), and INCRBYFLOAT beyond what is exact in a long double.
"""

import hashlib
import random
import re

import pytest
from conftest import ENGINE, Server
from redis_judge import Redis, asked, converse, judge, line, needs_redis, request, version

pytestmark = needs_redis

# Engines that are partitions: one is looked at after the other.
IN_STEPS = ("cphash", "lockhash")


class Ours:
    def __init__(self, folder, *flags):
        self.server = Server(folder, "-m", "64", "-t", "2", "--redis-port", "0", *flags)
        self.process = self.server.process
        self.port = self.server.told["REDIS INET"]

    def end(self):
        return self.server.end()


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    servers = [Redis(tmp_path_factory.mktemp("redis")), Ours(tmp_path_factory.mktemp("ours"))]
    yield servers
    assert [server.end() for server in servers] == [0, 0]


STRINGS = """
GET k|SET k v|GET k|set k w|get k|GETSET k x|GETSET n y|GET n|SETNX k z|SETNX m z|GETDEL m|GETDEL m|STRLEN k|STRLEN none
SET k v NX|SET k v XX|SET none v XX|SET k 2 GET|SET k 3 NX GET|SET none2 3 NX GET|GET none2|SET none3 3 XX GET|EXISTS none3
SET k v EX 100|TTL k|SET k w KEEPTTL|TTL k|SET k w|TTL k|SET k v EX 100 GET|SET k v KEEPTTL GET|TTL k|SET n v KEEPTTL|TTL n
SET k v EX|SET k v EX 0|SET k v EX -1|SET k v EX x|SET k v EX 1.5|SET k v EX 1 PX 1|SET k v NX XX|SET k v foo|SET k v PERSIST
SET k v EXAT 1|GET k|SET k v PXAT 1|EXISTS k|SET k v EXAT 99999999999999999|SET k v EX 9223372036854775807|SET k|SET
SETEX k 100 v|TTL k|SETEX k 0 v|SETEX k x v|SETEX k -1 v|SETEX k 1|PSETEX k 100000 v|TTL k|PSETEX k 0 v|GET k
APPEND a x|APPEND a yz|GET a|APPEND a|EXPIRE a 100|APPEND a more|TTL a|STRLEN a
SET r Hello|GETRANGE r 0 -1|GETRANGE r 1 3|GETRANGE r -3 -1|GETRANGE r 3 1|GETRANGE r -1 -3|GETRANGE r 9 20|GETRANGE none 0 1
GETRANGE r x 1|GETRANGE r 0|SUBSTR r 0 2|SETRANGE r 1 ipp|GET r|SETRANGE new 3 abc|GET new|SETRANGE r -1 x|SETRANGE r 99999999999 x
SETRANGE r 536870911 xy|SETRANGE none 5 x|STRLEN none|SETRANGE r x y|EXPIRE r 100|SETRANGE r 0 J|TTL r|GET r
MSET a 1 b 2 c 3|MGET a b none c|MSET a|MSET a 1 b|MGET|MSETNX a 1 z 2|EXISTS z|MSETNX z 1 y 2|MGET z y|MSETNX z|MSET a 1 a 2|GET a
MSETNX q 1 q 2|GET q|SET a 1|GETEX k|GETEX a EX 100|TTL a|GETEX a PERSIST|TTL a|GETEX a|TTL a|GETEX none EX 100|GETEX a EX 0|GETEX a NX
"""

NUMBERS = """
INCR n|INCR n|DECR n|DECRBY n 10|INCRBY n 4|GET n|INCRBY n -100|INCRBY n x|INCRBY n 1.0|INCRBY n 01|INCRBY n +1|DECR new|GET new
SET n 9223372036854775807|INCR n|GET n|DECR n|SET n -9223372036854775808|DECR n|INCRBY n -1|INCR n|DECRBY n -9223372036854775808
SET n abc|INCR n|SET n 007|INCR n|SET n -0|INCR n|SET n 12a|INCR n|SET n 1.5|INCR n|APPEND e 1|INCR e|SET n 18446744073709551615|INCR n
SET n 5 EX 100|INCR n|TTL n|DECRBY n 1|TTL n|INCR|INCR a b|INCRBY n|SETRANGE s 0 41|INCR s
INCRBYFLOAT f 10.5|INCRBYFLOAT f 0.1|INCRBYFLOAT f -5|SET f 5.0e3|INCRBYFLOAT f 2.0e2|GET f|INCRBYFLOAT f x|INCRBYFLOAT f inf
SET g abc|INCRBYFLOAT g 1|SET g 3.0|INCRBYFLOAT g 1|INCRBYFLOAT g -0.5|INCRBYFLOAT g -3.5|SET g 1 EX 100|INCRBYFLOAT g 1|TTL g
INCRBYFLOAT h 0.00000000000000001|INCRBYFLOAT h 3|INCRBYFLOAT i -0|INCRBYFLOAT i|INCRBYFLOAT j 0.1|INCRBYFLOAT j 0.2|INCRBYFLOAT f nan
"""

KEYS = """
DEL none|SET a 1|SET b 2|EXISTS a b none a|TOUCH a none|UNLINK a none|EXISTS a|DEL a b|DEL|EXISTS|TYPE b|SET b 1|TYPE b|TYPE
EXPIRE b 100|TTL b|EXPIRE none 1|EXPIRE b x|EXPIRE b|EXPIRE b -1|EXISTS b|SET b 1|TTL b|TTL none|PTTL none|PTTL b|PERSIST b
EXPIRE b 100 NX|EXPIRE b 200 NX|TTL b|EXPIRE b 200 XX|TTL b|EXPIRE b 100 GT|TTL b|EXPIRE b 300 GT|TTL b|EXPIRE b 400 LT|TTL b
EXPIRE b 250 LT|TTL b|EXPIRE b 1 NX GT|EXPIRE b 1 GT LT|EXPIRE b 1 foo|EXPIRE b 100 XX GT|TTL b|EXPIRE b 100 XX LT|TTL b|PERSIST b
TTL b|EXPIRE b 100 GT|TTL b|EXPIRE b 100 XX|TTL b|EXPIRE b 100 LT|TTL b|PERSIST none|EXPIREAT b 1|EXISTS b
SET b 1|EXPIREAT b 33177117420|EXPIRETIME none|SET c 1|EXPIRETIME c|PEXPIRETIME c|PEXPIRE c 100000|TTL c|PEXPIREAT c 1|GET c
EXPIRE b 9223372036854775807|EXPIRE b -9223372036854775808|PEXPIRE b 9223372036854775807|TTL b x
DBSIZE|FLUSHDB|DBSIZE|RANDOMKEY|SET only 1|RANDOMKEY|DBSIZE|KEYS *|KEYS o?ly|KEYS x*|KEYS|SCAN x|SCAN -1x|SCAN 0 COUNT 0|SCAN 0 foo bar
SCAN 0 MATCH|SCAN 0 COUNT x|FLUSHALL ASYNC|FLUSHALL SYNC|FLUSHALL now|FLUSHDB ASYNC x|KEYS *|SCAN 0 TYPE|DBSIZE x
SCAN -1|SCAN 18446744073709551615|SCAN 18446744073709551616|SCAN -18446744073709551616|SCAN --0|SCAN 0x0|SCAN -1 COUNT 0|SCAN -1 foo
OBJECT ENCODING none|SET o 12|OBJECT ENCODING o|SET o abc|OBJECT ENCODING o|OBJECT FREQ o|OBJECT REFCOUNT none|OBJECT foo o
SET o aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa|OBJECT ENCODING o|OBJECT IDLETIME o|OBJECT|OBJECT ENCODING|MEMORY USAGE none|MEMORY USAGE none SAMPLES -1
"""

TALK = """
PING|PING hello|PING a b|ECHO x|ECHO|SELECT 0|SELECT 1|SELECT x|AUTH x|AUTH default x|AUTH foo bar|AUTH a b c|AUTH|CLIENT GETNAME
CLIENT SETNAME me|CLIENT GETNAME|RESET|CLIENT GETNAME|CLIENT ID x|CLIENT foo|CLIENT|CLIENT SETNAME|CLIENT REPLY ON|CLIENT NO-EVICT ON
CLIENT NO-EVICT x|CLIENT LIST TYPE foo|CLIENT LIST TYPE pubsub|CLIENT LIST ID 99999|CLIENT LIST ID x|CLIENT LIST ID|CLIENT LIST foo|CLIENT GETREDIR|foo|foo a b c|GET|GET a b|CONFIG foo|CONFIG GET|CONFIG SET a|CONFIG RESETSTAT|COMMAND foo|COMMAND COUNT x|COMMAND LIST foo
COMMAND LIST FILTERBY MODULE x|COMMAND LIST FILTERBY PATTERN ge?|COMMAND LIST FILTERBY foo x|CONFIG SET foo bar|CONFIG SET maxmemory x
CONFIG SET maxmemory 64mb maxmemory 64mb|CLIENT HELP x|OBJECT HELP x|CONFIG SET a b c
HELLO 4|HELLO x|HELLO 3 foo|HELLO 2 AUTH x|HELLO 2 SETNAME|MEMORY foo|TIME x|DBSIZE|CONFIG GET nothing|COMMAND INFO nothing
"""

BEFORE_LOGIN = """
GET k|SET k v foo|PING|foo|foo a b|GET|AUTH|AUTH a b c|AUTH x|AUTH x y|HELLO 9|HELLO x|HELLO 3|HELLO 3 foo|HELLO 3 AUTH x y|CLIENT|CLIENT foo|CLIENT ID
MULTI|LPUSH a b|MGET a b|DEL|OBJECT foo a
"""


def test_before_login(tmp_path_factory):
    folder = tmp_path_factory.mktemp("passwords")
    users = folder / "users"
    users.write_text("default:secret\n")
    users.chmod(0o600)
    servers = [Redis(folder, "--requirepass", "secret"), Ours(folder, "-Y", str(users))]
    try:
        for one in asked(BEFORE_LOGIN):
            said = line(one) + line("QUIT")
            assert converse(servers[1].port, said) == converse(servers[0].port, said), one
        for login in ("AUTH secret", "AUTH default secret", "HELLO 2 AUTH default secret SETNAME me"):
            said = line(login) + line("SET k v") + line("GET k") + line("CLIENT GETNAME")
            if "HELLO" not in login:
                assert converse(servers[1].port, said) == converse(servers[0].port, said), login
    finally:
        ended = [server.end() for server in servers]
    assert ended == [0, 0]


RESP3 = """
HELLO 3 AUTH foo bar|SET k v|GET k|GET none|MGET k none|SET k w GET|SET none w XX|SET none w XX GET|GETDEL none|RANDOMKEY|CLIENT GETNAME
INCRBYFLOAT f 1.5|CONFIG GET nothing|MULTI|GET none|MGET none k|EXEC|WATCH k|SET k x|MULTI|GET k|EXEC|GETEX none|OBJECT ENCODING none|RESET|GET none
"""

def scripts():
    """Scripts of clients, as these send them."""
    from redis.lock import Lock

    release, extend, reacquire = Lock.LUA_RELEASE_SCRIPT, Lock.LUA_EXTEND_SCRIPT, Lock.LUA_REACQUIRE_SCRIPT
    return [
        line("SET lock me PX 100000"),
        request("EVAL", extend, 1, "lock", "me", 100000, 0) + line("TTL lock"),
        request("EVAL", extend, 1, "lock", "me", 50000, 1) + line("TTL lock"),
        request("EVAL", extend, 1, "lock", "other", 50000, 1),
        request("EVAL", reacquire, 1, "lock", "me", 20000, "more") + line("TTL lock"),
        line("SET lock me") + request("EVAL", extend, 1, "lock", "me", 100000, 0) + line("TTL lock"),
        request("EVAL", release, 1, "lock", "other") + request("EVAL", release, 1, "none", "me"),
        request("EVAL", release, 1, "lock", "me") + line("EXISTS lock"),
        line("MULTI") + request("EVAL", release, 1, "lock", "me") + line("EXEC"),
        request("SCRIPT", "LOAD", release) + line("SCRIPT EXISTS abc c3f8721cbb97f72bc19e972846bd7aaf91901658"),
        line("SET lock me") + line("EVALSHA C3F8721CBB97F72BC19E972846BD7AAF91901658 1 lock me"),
        request("EVAL", release, -1, "lock") + request("EVAL", release, 5, "lock") + request("EVAL", release, "x", "lock"),
        line("EVALSHA abc 0") + line("EVALSHA 0000000000000000000000000000000000000000 0") + line("EVAL x") + line("EVALSHA"),
        line("SCRIPT") + line("SCRIPT foo") + line("SCRIPT EXISTS") + line("SCRIPT FLUSH x") + line("SCRIPT LOAD") + line("SCRIPT KILL"),
        line("SCRIPT FLUSH") + line("SCRIPT FLUSH ASYNC") + line("SCRIPT EXISTS abc"),
    ]


def release(quote='"', blank="", case=str.lower, newline=" ", end=""):
    """A lock's release, in one of the spellings that programs send."""
    get, delete = (quote + case(name) + quote for name in ("get", "del"))
    parts = [f"if redis.call({get},{blank}KEYS[1]) == ARGV[1]", "then", f"return redis.call({delete},{blank}KEYS[1])"]
    return newline.join(parts + ["else", "return 0", "end"]) + end


# Of programs and libraries: what they call it, and its text. Each is run with the arguments "me", "5000" and "1".
SCRIPTS = {
    "Redis' page on locks": release(newline="\n"),
    "single quotes": release("'", " "),
    "capitals": release(case=str.upper, end="\n"),
    "comments": "-- release\n" + release(newline=" --[[ ]] ") + " --",
    "aiocache cas": "if redis.call('get',KEYS[1]) == ARGV[1] then  if #ARGV == 4   then return redis.call('set', KEYS[1], ARGV[1], ARGV[3], "
    "ARGV[4])   else return redis.call('set', KEYS[1], ARGV[2])  end else return 0 end",
    "go-redsync delete": """
	local val = redis.call("GET", KEYS[1])
	if val == ARGV[1] then
		return redis.call("DEL", KEYS[1])
	elseif val == false then
		return -1
	else
		return 0
	end
""",
    "go-redsync touch": """
	if redis.call("GET", KEYS[1]) == ARGV[1] then
		return redis.call("PEXPIRE", KEYS[1], ARGV[2])
	elseif redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2], "NX") then
		return 1
	else
		return 0
	end
""",
    "redlock acquire": """
  -- Return 0 if an entry already exists.
  for i, key in ipairs(KEYS) do
    if redis.call("exists", key) == 1 then
      return 0
    end
  end

  -- Create an entry for each provided key.
  for i, key in ipairs(KEYS) do
    redis.call("set", key, ARGV[1], "PX", ARGV[2])
  end

  -- Return the number of entries added.
  return #KEYS
""",
    "redlock release": """
  local count = 0
  for i, key in ipairs(KEYS) do
    -- Only remove entries for *this* lock value.
    if redis.call("get", key) == ARGV[1] then
      redis.pcall("del", key)
      count = count + 1
    end
  end
  return count
""",
    "limits": """
local current
local amount = tonumber(ARGV[3])
current = redis.call("incrby", KEYS[1], amount)

if tonumber(current) == amount then
    redis.call("expire", KEYS[1], ARGV[2])
end

return current
""",
    "Bull releases": """
local rcall = redis.call

if rcall("GET", KEYS[1]) == ARGV[1] then
  return rcall("DEL", KEYS[1])
else
  return 0
end
""",
    "Bull takes": 'if redis.call("SET", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then return 1 else return 0 end',
    "walrus cas": """
local value_length = string.len(ARGV[1])
if redis.call('GETRANGE', KEYS[1], 0, value_length - 1) == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2])
  return 1
else
  return 0
end
""",
    "redislock obtain": """
if redis.call("set", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then return redis.status_reply("OK") end

local offset = tonumber(ARGV[3])
if redis.call("getrange", KEYS[1], 0, offset-1) == string.sub(ARGV[1], 1, offset) then return redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2]) end
""",
    "rate-limit-redis": "local windowMs = tonumber(ARGV[2]) local timeToExpire = redis.call('PTTL', KEYS[1]) if timeToExpire <= 0 then "
    "redis.call('SET', KEYS[1], 1, 'PX', windowMs) return { 1, windowMs } end "
    "local totalHits = redis.call('INCR', KEYS[1]) return { totalHits, timeToExpire > 0 }",
    "ulule's limiter": "local key = KEYS[1] local count = tonumber(ARGV[3]) local ttl = tonumber(ARGV[2]) local ret = redis.call('incrby', key, ARGV[3]) "
    "if ret == count then if ttl > 0 then redis.call('pexpire', key, ARGV[2]) end return {ret, ttl} end return {ret, redis.call('ttl', key)}",
    "pottery's acquired": "if redis.call('get', KEYS[1]) == ARGV[1] then local pttl = redis.call('pttl', KEYS[1]) return (pttl > 0) and 1 or 0 else return 0 end",
    "aioredlock": "local identifier = redis.call('get', KEYS[1]) if not identifier or identifier == ARGV[1] then "
    "return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) else return redis.error_reply('ERROR') end",
    "Nextcloud's ncad": 'if redis.call("get", KEYS[1]) ~= ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end',
    "texts": "local v = redis.call('getrange', KEYS[1], 0, -1) return {v:len(), v:upper(), ('X' .. v):lower(), v:sub(2), v:sub(-1, 9), string.sub(v, 0), "
    "string.sub(v, 2, -2), v:sub(3, 1), v:byte() or -1, v:byte(2) or -1, v:byte(-1) or -1, v:byte(0) or -1, string.len(12.5), ARGV[1]:byte(9),}",
    "other names": "local call, n = redis.pcall local get = redis.call local number = tonumber n = call('incr', KEYS[1]) "
    "return {type(n), number(get('strlen', KEYS[1])), redis.replicate_commands()}",
    "a time": "local now = redis.call('TIME') redis.call('setnx', KEYS[1], 1) return {#now, now[1] - 1700000000 > 0, "
    "now[2] - 1000000 < 0, type(now), type(now[1]), now[3] == nil, now.ok == nil}",
    "a rate limiter": "local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return n",
    "a rate limiter that tells": "local n = redis.call('incr', KEYS[1]); local left = redis.call('ttl', KEYS[1]) "
    "if left < 0 then redis.call('expire', KEYS[1], ARGV[2]) left = tonumber(ARGV[2]) end return {n, left}",
    "a limit": "if tonumber(redis.call('get', KEYS[1]) or '0') >= 3 then return 0 end return redis.call('incr', KEYS[1])",
    "Laravel's add": "return redis.call('exists',KEYS[1])<1 and redis.call('setex',KEYS[1],ARGV[2],ARGV[1])",
    "add": "if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then redis.call('expire', KEYS[1], ARGV[2]) return true end return false",
    "compare and expire": "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('pexpire', KEYS[1], ARGV[2]) or 0",
    "compare or take": "local v = redis.call('GET', KEYS[1]); if v == false or v == ARGV[1] then "
    "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]); return 1; end; return 0;",
    "set if absent": "local ok = redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) if ok then return ok else return redis.call('get', KEYS[1]) end",
    "set if absent, as a number": "if redis.call('exists', KEYS[1]) == 0 then redis.call('psetex', KEYS[1], ARGV[2], ARGV[1]) return 1 else return 0 end",
    "a limit with what is left": "local c = redis.call('incrby', KEYS[1], ARGV[3]) if c == tonumber(ARGV[3]) then "
    "redis.call('pexpire', KEYS[1], ARGV[2]) end local left = math.max(0, 3 - c) return {left, c > 3 and 1 or 0, redis.call('ttl', KEYS[1])}",
    "a count that ends": "local n = tonumber(redis.call('get', KEYS[1]) or 0) if n <= 0 then redis.call('del', KEYS[1]) return nil end return redis.call('decr', KEYS[1])",
    "a time that is left": 'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("ttl", KEYS[1]) else return -3 end',
    "what values become": "redis.call('get', KEYS[1]) return {1.9, -1.9, 'x', true, false, redis.call('type', KEYS[1]), nil, 5}",
    "nothing": "redis.call('set', KEYS[1], ARGV[2] * 2 + ARGV[3], 'EX', 10)",
    "a status": "if redis.call('exists', KEYS[1]) == 1 then return redis.status_reply('THERE') end return {ok = 'GONE'}",
    "an error": "if redis.call('exists', KEYS[1]) == 1 then return redis.error_reply('ERR there') end return {err = 'ERR gone'}",
    "an error that is kept": "local got = redis.pcall('incrby', KEYS[1], 'x') return got.err",
    "numbers": "return redis.call('set', KEYS[1], 10 / 4 .. '/' .. 1e15)",
    "an old value": "return redis.call('getset', KEYS[1], ARGV[1] .. #ARGV[1])",
    "text": "return redis.call('set', KEYS[1], 'a\\tb\\065\\\\' .. [[\n x ]])",
}


def lines(text):
    return b"".join(line(one) for one in text.split("|"))


def of_scripts():
    """Each script on a key in several states, by its text and by its name."""
    for text in SCRIPTS.values():
        name = hashlib.sha1(text.encode()).hexdigest()
        by_name = f"EVALSHA {name.upper()} 1 s me 5000 1|GET s|TTL s"
        # Of an error in a script, Redis also tells the script and its line.
        counts = any(word in text.lower() for word in ("incr", "tonumber(redis")) and "pcall" not in text
        for before in ["DEL s", "SET s 2", "SET s 2 EX 100"] + ["SET s me", "SET s other EX 100"] * (not counts):
            run = lines("GET s|TTL s") + request("EVAL", text, 1, "s", "me", 5000, 1)
            yield line(before) + 3 * run + lines(by_name)
        yield lines(f"SET s 1|SCRIPT EXISTS {name}|{by_name}|SCRIPT FLUSH|SCRIPT EXISTS {name}|{by_name}")
        yield line("DEL s") + request("SCRIPT", "LOAD", text) + lines(by_name)


def test_what_scripts_of_programs_do(pair):
    for said in of_scripts():
        judge(pair, [said])


# A limiter by the generic cell rate algorithm, in the words in which go-redis' redis_rate is written.
CELL_RATE = """
redis.replicate_commands()

local interval = ARGV[3] / ARGV[2]
local increment = interval * tonumber(ARGV[4])
local epoch = 1483228800 -- A double has too few digits for microseconds since 1970.
local now = redis.call("TIME")
now = (now[1] - epoch) + (now[2] / 1000000)
local arrival = redis.call("GET", KEYS[1])
if not arrival then
  arrival = now
else
  arrival = tonumber(arrival)
end
arrival = math.max(arrival, now)
local left = (now - (arrival + increment - interval * ARGV[1])) / interval
if left < 0 then
  return {
    0, -- passed
    left,
    tostring(arrival - now),
  }
end
redis.call("SET", KEYS[1], arrival + increment, "EX", math.ceil(arrival + increment - now))
return {ARGV[4] + 0, left, tostring(-1)}
"""


def test_a_limiter_by_the_time(pair):
    """Three pass in an hour at once. Those behind them are refused, and are told that an hour is left, or nearly."""
    for server in pair:
        said = line("DEL s") + 5 * request("EVAL", CELL_RATE, 1, "s", 3, 3, 3600, 1) + line("TTL s") + line("GET s")
        passed = b"".join(b"*3\r\n:1\r\n:%d\r\n$2\r\n-1\r\n" % left for left in (2, 1, 0))
        refused = rb"\*3\r\n:0\r\n:0\r\n\$\d+\r\n(3[56]\d\d(\.\d+)?)\r\n"
        kept = rb":3[56]\d\d\r\n\$\d+\r\n\d{9}(\.\d+)?\r\n"
        answer = converse(server.port, said)
        assert re.match(rb":\d\r\n" + re.escape(passed) + 2 * refused + kept, answer), answer


NUMBERS_OF_SCRIPTS = """
0|-0|10|007|1.9|-1.9|.5|5.|.|-|+|+1|--1|1e3|1E+3|1e-3|1e|e1|1e400|-1e400|1e-400|0x10|0X1F|-0x10|0x|0x1p4|0x1.8|0x1g|0x.8|1x|1_0
inf|-inf|INF|+Infinity|infinit|infx|nan|-nan|NaN|nan(1)|nan(|9007199254740993|9223372036854775807|9223372036854775808
-9223372036854775808|-9223372036854775809|18446744073709551616|123456789012345678|0.1|1e14|1e15|1e17|1e21|0xffffffffffffffffff
""".strip().replace("\n", "|").split("|")

OF_NUMBERS = [
    "return tonumber(ARGV[1])",
    "return tostring(tonumber(ARGV[1]))",
    "return {-ARGV[1], ARGV[1] + 1, ARGV[1] * 1.5, 7 % ARGV[1], 1 / ARGV[1]}",
    "return redis.call('set', KEYS[1], ARGV[1] * 1) and redis.call('get', KEYS[1])",
    "return redis.call('incrby', KEYS[1], tonumber(ARGV[1]) or 'none')",
    "return {math.max(ARGV[1], 1), math.max(1, ARGV[1]), math.min(ARGV[1], 1), math.min(1, ARGV[1]), math.floor(ARGV[1])}",
    "return {ARGV[1] == tonumber(ARGV[1]), ARGV[1] + 0 == ARGV[1] * 1, ARGV[1] + 0 < 5, '1' .. ARGV[1] * 1}",
]


def test_numbers_of_scripts(pair):
    """As Lua reads and writes numbers, and as Redis makes integers of them."""
    # Until 7.2, Redis wrote 17 digits of a number in a command.
    scripts = [script for script in OF_NUMBERS if "redis.call" not in script or version() >= (7, 2)]
    texts = NUMBERS_OF_SCRIPTS + [" 1", "1 ", "\t1\v\f\r\n", "1 2", "", " ", "1\0x", "\u00a01", "\0"]
    for script in scripts:
        for number in texts:
            said = line("DEL s") + request("EVAL", f"redis.call('exists', KEYS[1]) {script}", 1, "s", number.encode())
            ours, theirs = (of_error(converse(server.port, said)) for server in reversed(pair))
            assert ours == theirs, (script, number)
    for number in NUMBERS_OF_SCRIPTS:
        if number[0].isdigit():
            text = f"redis.call('exists', KEYS[1]) return tostring({number})"
            ours, theirs = (of_error(converse(server.port, request("EVAL", text, 1, "s"))) for server in reversed(pair))
            assert ours == theirs, text


def of_error(answer):
    """Answers, but of each error only that it is one: Redis also tells the script and its line."""
    return re.sub(rb"(?m)^-.*$", b"-", answer)


def test_scripts(pair):
    said = scripts()
    judge(pair, said)
    for one in said:
        judge(pair, [one])


TRANSACTIONS = """
MULTI|SET a 1|INCR a|GET a|EXEC|GET a|EXEC|DISCARD|MULTI|MULTI|WATCH a|DISCARD|MULTI|EXEC|MULTI|SET a|EXEC|GET a|MULTI|foo|SET a 5|EXEC
MULTI|SET a x EX foo|SET a y NX XX|INCR a|GET a|EXEC|WATCH a|SET a 1|MULTI|SET a 2|EXEC|GET a|WATCH a|MULTI|SET a 3|EXEC|GET a
WATCH a|SET a 4|UNWATCH|MULTI|SET a 5|EXEC|GET a|WATCH none|SET none 1|MULTI|GET a|EXEC|WATCH gone|MULTI|GET gone|EXEC|WATCH|UNWATCH x
MULTI|MGET a b|MSET a 1 b 2|DEL a none|EXISTS b|PING|ECHO x|MGET a b|EXEC|MULTI|RESET|EXEC|WATCH a|DEL a|SET a 1|MULTI|GET a|EXEC
MULTI|CLIENT foo|EXEC|MULTI|OBJECT foo a|EXEC|MULTI|CONFIG SET a|EXEC|MULTI|MEMORY USAGE|EXEC|MULTI|CLIENT LIST ID|HELLO 9|EXEC
MULTI|MSET a 1 b|MSETNX a 1 b|SET a 9|EXEC|GET a|MULTI|MSET a|EXEC
MULTI|GET|DISCARD|MULTI|PING|EXEC|MULTI|SELECT 0|SELECT 9|FLUSHALL|EXEC|DBSIZE|WATCH a a|MULTI|SET a 1|EXEC|MULTI|EXEC x|EXEC
"""


DATABASES = """
SELECT 1|SET k 1|GET k|SELECT 0|GET k|DBSIZE|SELECT 15|SELECT 16|SELECT -1|SELECT 2147483647|SELECT 2147483648|SELECT 1.5|SELECT|SELECT 1 2|GET k|SELECT 1|GET k|DBSIZE
SET k 0|SELECT 1|SET k 1|KEYS *|RANDOMKEY|FLUSHDB|DBSIZE|GET k|RANDOMKEY|SELECT 0|GET k|KEYS *|SELECT 1|SET l 1|SELECT 0|FLUSHDB|DBSIZE|KEYS *|SET n 1|KEYS *|SELECT 1|KEYS *|FLUSHALL|DBSIZE|SELECT 0|DBSIZE
SET k v EX 100|MOVE k 0|MOVE k 16|MOVE k -1|MOVE k x|MOVE k 99999999999|MOVE k|MOVE k 1 2|MOVE none 1|MOVE k 1|MOVE k 1|EXISTS k|SET k w|MOVE k 1|SELECT 1|GET k|TTL k|MOVE k 0|DEL k|MOVE k 0|SELECT 0|GET k
SET k 0|SELECT 1|SET k 1|SWAPDB 0 1|GET k|SWAPDB 1 0|GET k|SWAPDB 1 1|GET k|SWAPDB 0 16|SWAPDB x 0|SWAPDB 0 x|SWAPDB 16 x|SWAPDB|SWAPDB 0|SWAPDB 0 1 2|SWAPDB -1 0|SWAPDB 0 3|SELECT 3|GET k|SELECT 0|GET k|FLUSHDB|SELECT 3|GET k
SELECT 2|MULTI|SET k 2|SELECT 3|SET k 3|EXEC|GET k|SELECT 2|GET k|WATCH k|SELECT 3|SET k x|MULTI|GET k|EXEC|SELECT 2|WATCH k|SET k y|SELECT 3|MULTI|GET k|EXEC|SELECT 2|WATCH k|FLUSHDB|MULTI|PING|EXEC
SELECT 5|SET k v|WATCH k|MULTI|SWAPDB 5 6|MOVE k 5|SET m 1|MOVE m 7|FLUSHDB|SELECT 6|GET k|EXEC|GET k|SELECT 7|GET m|SELECT 5|RESET|SELECT 5|DBSIZE
SELECT 4|MSET a 1 b 2|MGET a b c|DEL a|EXISTS a b|INCR n|APPEND s x|SETRANGE s 2 y|GETSET s z|SETNX s q|MSETNX s 1 t 2|MSETNX u 1 t 2|OBJECT ENCODING n|TYPE b|EXPIRE b 100|TTL b|PERSIST b|SELECT 0|DBSIZE
SELECT 4|SET n 5|GET n|CLIENT REPLY SKIP|SELECT 5|GET n|CONFIG GET databases|SELECT 4|FLUSHDB x|FLUSHDB SYNC|GET n
"""


@pytest.mark.skipif(ENGINE in IN_STEPS, reason="a scan takes several steps there, also of nothing")
def test_cursors_that_begin_a_scan(pair):
    judge(pair, [line(f"SCAN {cursor}") for cursor in ["0", "-0", "+0", "00"]])


@pytest.mark.parametrize("text", [STRINGS, NUMBERS, KEYS, TALK, RESP3, TRANSACTIONS, DATABASES], ids=["strings", "numbers", "keys", "talk", "resp3", "transactions", "databases"])
def test_conversations(pair, text):
    for conversation in text.strip().splitlines():
        judge(pair, [line(words) for words in asked(conversation)])
    judge(pair, [line(words) for words in asked(text)])


def test_a_wrong_password(pair):
    """Alone, so that every Redis answers it."""
    judge(pair, [line("AUTH foo bar")])


# Each ends with all replies switched on.
REPLIES = """
CLIENT REPLY OFF|SET k v|GET k|foo|GET|MGET k none k|CLIENT REPLY ON|GET k
CLIENT REPLY SKIP|GET k|GET k|CLIENT REPLY SKIP|foo|PING|CLIENT REPLY SKIP|MGET k none|MGET k none|CLIENT REPLY SKIP|SET k w|GET k
CLIENT REPLY SKIP|CLIENT REPLY SKIP|PING|ECHO x|CLIENT REPLY SKIP|CLIENT REPLY ON|PING|CLIENT REPLY ON|PING
CLIENT REPLY OFF|CLIENT REPLY SKIP|PING|CLIENT REPLY OFF|PING|CLIENT REPLY ON|PING
CLIENT REPLY SKIP|CLIENT REPLY OFF|PING|PING|CLIENT REPLY ON|PING
CLIENT REPLY SKIP|MULTI|SET k 1|INCR k|EXEC|PING|MULTI|INCR k|CLIENT REPLY SKIP|EXEC|PING|PING
MULTI|INCR k|CLIENT REPLY SKIP|INCR k|EXEC|ECHO a|ECHO b|CLIENT REPLY SKIP|EXEC|PING
MULTI|SET k 1|CLIENT REPLY OFF|INCR k|EXEC|PING|CLIENT REPLY ON|GET k
CLIENT REPLY OFF|MULTI|INCR k|GET k|EXEC|CLIENT REPLY ON|GET k|WATCH k|CLIENT REPLY OFF|MULTI|INCR k|EXEC|CLIENT REPLY ON|GET k
WATCH k|MULTI|INCR k|CLIENT REPLY OFF|INCR k|EXEC|PING|CLIENT REPLY ON|GET k
CLIENT REPLY OFF|RESET|PING|CLIENT REPLY OFF|HELLO 3|GET none|CLIENT REPLY ON|GET none|RESET
CLIENT REPLY foo|CLIENT REPLY|CLIENT REPLY ON x|CLIENT REPLY OFF x|client reply skip|PING|PING|CLIENT REPLY OFF|CLIENT REPLY foo|CLIENT REPLY ON
CLIENT REPLY OFF|DBSIZE|KEYS *|SCAN 0|CLIENT ID|MSET a 1 b 2|DEL a none|MSETNX c 1 d 2|CLIENT REPLY ON|MGET a b c d
"""


@pytest.mark.parametrize("piece", [1, 1 << 16])
def test_replies_that_are_not_wanted(pair, piece):
    for conversation in REPLIES.strip().splitlines():
        text = line("FLUSHALL") + b"".join(line(words) for words in conversation.split("|"))
        redis, ours = (converse(server.port, text, piece) for server in pair)
        assert ours == redis, conversation


def test_replies_that_are_not_wanted_odd_ones(pair):
    on = line("CLIENT REPLY ON") + line("GET k")
    big = bytes(range(256)) * 4000
    for text in [
        b"CLIENT REPLY SKIP\r\nPING\r\nPING\r\nCLIENT REPLY OFF\r\nPING\r\n",
        line("CLIENT REPLY OFF") + request("SET", "k", big) + line("GET k") * 9 + line("APPEND k x"),
        line("CLIENT REPLY SKIP") + request("SET", "k", big) + line("STRLEN k"),
        request("SET", "k", big) + line("GET k") + line("CLIENT REPLY SKIP") + line("GET k") + line("GET k"),
        line("CLIENT REPLY OFF") + request("MSET", "a", "1", "k", big, "b", big) + request("MGET", *["k"] * 200),
        line("CLIENT REPLY OFF") + line("QUIT") + line("PING"),
        line("PING") * 3000 + line("CLIENT REPLY OFF") + line("INCR k") * 3000 + line("CLIENT REPLY SKIP"),
    ]:
        redis, ours = (converse(server.port, line("FLUSHALL") + text + on) for server in pair)
        assert ours == redis, text[:200]


@pytest.mark.skipif(version() >= (8,), reason="Redis 8 leaves such a connection open for ever")
def test_an_error_that_is_not_wanted_ends_the_connection(pair):
    # An answer before it: redis-server closes a connection when it has sent something.
    text = line("PING") + line("CLIENT REPLY OFF") + b"*1\r\n$x\r\n" + line("CLIENT REPLY ON")
    redis, ours = (converse(server.port, text) for server in pair)
    assert ours == redis


@pytest.mark.skipif(version() < (8,), reason="until Redis 8, nothing was a request that is skipped")
@pytest.mark.parametrize("nothing", [b"*0\r\n", b"*-1\r\n", b"\r\n", b"  \n"])
def test_nothing_is_not_skipped(pair, nothing):
    text = line("CLIENT REPLY SKIP") + nothing * 2 + line("PING") * 2
    judge(pair, [text + line("MULTI") + line("CLIENT REPLY SKIP") + line("EXEC") + nothing + line("PING") * 2])


@pytest.mark.parametrize("seed", range(10))
def test_random_conversations_without_some_replies(pair, seed):
    pick = random.Random(1000 + seed)
    requests = []
    for one in random_requests(seed, 300):
        requests.append(one)
        if pick.random() < 0.2:
            requests.append(line("CLIENT REPLY " + pick.choice(["ON", "OFF", "SKIP", "SKIP"])))
    # Outside of a transaction.
    text = line("FLUSHALL") + b"".join(requests) + line("DISCARD") + line("CLIENT REPLY ON")
    redis, ours = (converse(server.port, text) for server in pair)
    assert ours == redis


ODD = [
    b"PING\r\n",
    b"  PING  \n",
    b"\r\n\r\nPING\r\n",
    b'SET "a b" \'it\\\'s\'\r\nGET "a b"\r\nGET "\\x61 b"\r\n',
    b'ECHO "\\n\\r\\t\\a\\b\\\\\\q"\r\n',
    b'GET "a\r\nPING\r\n',
    b'GET "a"b\r\nPING\r\n',
    b"*0\r\nPING\r\n",
    b"*-1\r\nPING\r\n",
    b"*-5\r\nPING\r\n",
    b"*x\r\n",
    b"*01\r\n",
    b"*2147483648\r\n",
    b"*1\r\n+PING\r\n",
    b"*1\r\n$x\r\n",
    b"*1\r\n$-1\r\n",
    b"*1\r\n$536870913\r\n",
    b"*2\r\n$3\r\nGET\r\n:5\r\n",
    b"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n",
    b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$-5\r\n",
    b"*4\r\n$3\r\nDEL\r\n$1\r\na\r\n$1\r\nb\r\n!",
    b"GET\r\nget a b\r\nfoo bar\r\n",
    b"SET k v\r\nWATCH k\r\nMULTI\r\nGET k\r\nSET k w\r\nEXEC\r\nGET k\r\n",
    b"WATCH k\nMULTI\nEXEC\nPING\nWATCH k\nSET k v\nMULTI\nGET k\nEXEC\nGET k\n",
    b"MULTI\r\nPING\r\nGET\r\nEXEC\r\n",
    b"QUIT\r\nPING\r\n",
    b"quit now\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"ECHO " + b"y" * 60_000 + b"\r\n",
    request("foo", b"\r\nx", b"a\0b"),
    request("foo", "a" * 200, "b"),
    request("f" * 200, "a"),
    request("foo", *["arg"] * 100),
    request("CLIENT", b"a\r\nb"),
    # Not "get\0": redis-server compares names up to a zero byte, so that one is GET where the two meet in a bucket.
    request(b"\0get", "a"),
    request(b"", "a"),
    request("SET", "k", b"\0\r\n\xff" * 100) + line("GET k"),
]


@pytest.mark.parametrize("number", range(len(ODD)))
def test_odd_bytes(pair, number):
    # "expected '$'" is told once the line has ended, by redis-server; and a byte that is none of its own is told as
    # soon as it is there, by us.
    judge(pair, [ODD[number]])


def random_requests(seed, count):
    pick = random.Random(seed)
    keys = ["a", "b", "c", "d"]
    values = ["", "0", "5", "-7", "1.5", "abc", "9223372036854775807", "x" * 60]

    # No two alike: whether a life is longer than one that was given a moment ago as long depends on the milliseconds
    # between.
    lives = iter(pick.sample(range(1010, 1010 + 20 * count, 10), count))

    def life():
        return str(next(lives))

    def key():
        return pick.choice(keys)

    def value():
        return pick.choice(values)

    def number():
        return pick.choice(["0", "1", "-1", "3", "-3", "100", "x", "9223372036854775807"])

    kinds = [
        lambda: ("GET", key()),
        lambda: ("SET", key(), value(), *pick.sample(["NX", "XX", "GET", "KEEPTTL", "EX", "1000"], pick.randint(0, 2))),
        lambda: ("SETNX", key(), value()),
        lambda: ("SETEX", key(), life(), value()),
        lambda: ("GETSET", key(), value()),
        lambda: ("GETDEL", key()),
        lambda: ("GETEX", key(), *pick.choice([(), ("EX", life()), ("PERSIST",), ("EX",)])),
        lambda: ("APPEND", key(), value()),
        lambda: ("STRLEN", key()),
        lambda: ("GETRANGE", key(), number(), number()),
        lambda: ("SETRANGE", key(), pick.choice(["0", "3", "70", "-1"]), value()),
        lambda: (pick.choice(["INCR", "DECR"]), key()),
        lambda: (pick.choice(["INCRBY", "DECRBY"]), key(), number()),
        lambda: ("MGET", *(key() for _ in range(pick.randint(1, 4)))),
        lambda: ("MSET", key(), value(), key(), value()),
        lambda: ("MSETNX", key(), value(), key(), value()),
        lambda: (pick.choice(["DEL", "UNLINK", "EXISTS", "TOUCH"]), *(key() for _ in range(pick.randint(1, 3)))),
        lambda: ("EXPIRE", key(), pick.choice([life(), "-1"]), *pick.choice([(), ("NX",), ("XX",), ("GT",), ("LT",)])),
        lambda: ("TTL", key()),
        lambda: ("PERSIST", key()),
        lambda: ("TYPE", key()),
        lambda: ("PING",),
        lambda: ("MULTI",),
        lambda: ("EXEC",),
        lambda: ("WATCH", key()),
        lambda: ("foo", key()),
        lambda: ("DBSIZE",),
    ]
    return [request(*pick.choice(kinds)()) for _ in range(count)]


@pytest.mark.parametrize("seed", range(20))
def test_random_conversations(pair, seed):
    judge(pair, random_requests(seed, 400))


def test_patterns(pair):
    pick = random.Random(5)
    signs = [b"a", b"b", b"*", b"?", b"[", b"]", b"^", b"-", b"\\", b"\xe9"]
    for server in pair:
        converse(server.port, line("FLUSHALL"))
        names = [b"".join(pick.choices([b"a", b"b", b"-", b"]", b"\xe9"], k=size)) for size in (1, 2, 3) for _ in range(12)]
        pick.seed(6)
        converse(server.port, b"".join(request("SET", name, "1") for name in names))
        pick.seed(5)
    for _ in range(400):
        pattern = b"".join(pick.choices(signs, k=pick.randint(1, 6)))
        found = [sorted(re.findall(rb"\$\d+\r\n(.*?)\r\n", converse(server.port, request("KEYS", pattern)))) for server in pair]
        assert found[0] == found[1], pattern


def test_requests_cut_anywhere(pair):
    said = [line(words) for words in "SET k v EX 100|MGET k none k|MSET a 1 b 2|GET k|foo bar|GET|DEL a b|INCR n".split("|")]
    text = b"".join(said)
    expected = converse(pair[0].port, line("FLUSHALL") + text)
    for piece in (1, 2, 3, 7, 20):
        assert converse(pair[1].port, line("FLUSHALL") + text, piece) == expected, piece


@pytest.mark.parametrize("size", [100, 16 << 10, 17 << 10, 100_000, 900_000])
@pytest.mark.parametrize("form", ["SET k V", "SET k V NX", "SET k V XX EX 100 GET", "SET k V KEEPTTL", "SETEX k 100 V", "APPEND k V", "SETRANGE k 5 V", "MSET a 1 k V b V", "GETSET k V", "SETNX k V", "SET k V NX XX", "SET k V foo"])
def test_long_values(pair, size, form):
    value = bytes(range(256)) * (size // 256) + b"z" * (size % 256)
    said = request(*[value if word == "V" else word for word in form.split(" ")])
    for before in ("PING", "SET k old"):
        judge(pair, [line(before), said, line("STRLEN k"), line("GETRANGE k 1000 1010"), line("GET k"), line("GET a"), line("TTL k")])


def test_a_long_value_in_a_transaction(pair):
    value = b"v" * 100_000
    judge(pair, [line("MULTI"), request("SET", "k", value), line("STRLEN k"), line("GET k"), line("EXEC")])


def test_many_keys_that_are_set_together_or_not_at_all(pair):
    names = [f"{number:04x}" for number in range(1500)]
    pairs = [word for name in names + names[:10] for word in (name, name * 2)]
    pairs[-1] = "last"
    judge(pair, [request("MSETNX", *pairs), request("MGET", *names), request("MSETNX", "new", "1", names[7], "2"), line("GET new"), request("DEL", *names)])
    ids = [str(number) for number in range(1_000_000, 1_004_000)]
    judge(pair, [request("CLIENT", "LIST", "ID", *ids)])
    for one in pair:
        said = converse(one.port, line("CLIENT ID"))
        here = int(said[1:].split(b"\r\n")[0]) + 1
        assert f"id={here} ".encode() in converse(one.port, request("CLIENT", "LIST", "ID", *ids, str(here), "-1"))


def test_many_keys(pair):
    names = [f"key:{number}" for number in range(3000)]
    pairs = [word for name in names for word in (name, name * 10)]
    judge(pair, [request("MSET", *pairs), request("MGET", *names, "none"), request("EXISTS", *names), request("DEL", *names), line("DBSIZE")])
