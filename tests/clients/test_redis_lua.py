"""Scripts in Lua (--lua), compared byte by byte with redis-server: those that people use, and the corners of Lua that they
meet. Redis tells with an error in which script and line it was, which is cut off."""

import random
import re

import pytest
import redis
from redis_judge import Redis, converse, needs_redis, request, version
from test_redis import Ours

WHERE = re.compile(rb" script: [0-9a-f]{40}, on @user_script:\d+\.")

# Rate limiters, locks and counters of plain values, each with calls of it: keys, then arguments.
USED = {
    # A token bucket in two keys.
    """
    local rate, capacity, now, requested = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
    local fill_time = capacity / rate
    local ttl = math.floor(fill_time * 2)
    local last_tokens = tonumber(redis.call("get", KEYS[1]))
    if last_tokens == nil then last_tokens = capacity end
    local last_refreshed = tonumber(redis.call("get", KEYS[2]))
    if last_refreshed == nil then last_refreshed = 0 end
    local delta = math.max(0, now - last_refreshed)
    local filled_tokens = math.min(capacity, last_tokens + (delta * rate))
    local allowed = filled_tokens >= requested
    local new_tokens, allowed_num = filled_tokens, 0
    if allowed then new_tokens, allowed_num = filled_tokens - requested, 1 end
    if ttl > 0 then
      redis.call("setex", KEYS[1], ttl, new_tokens)
      redis.call("setex", KEYS[2], ttl, now)
    end
    return { allowed_num, new_tokens }
    """: [("t", "s", 2, 5, now, 2) for now in (100, 100, 100, 101, 109)],
    # A sliding window from two counters.
    """
    local current, previous, limit = KEYS[1], KEYS[2], tonumber(ARGV[1])
    local weight = tonumber(ARGV[2])
    local before = tonumber(redis.call('GET', previous) or '0')
    local count = tonumber(redis.call('GET', current) or '0')
    if before * weight + count >= limit then return -1 end
    redis.call('INCR', current)
    redis.call('PEXPIRE', current, ARGV[3])
    return tostring(before * weight + count + 1)
    """: [("c", "p", 3, weight, 100000) for weight in (0, 0.5, 0.25, 0, 0)],
    # All of several locks, or none.
    """
    for i, key in ipairs(KEYS) do
      if redis.call('exists', key) == 1 then return 0 end
    end
    for i, key in ipairs(KEYS) do redis.call('set', key, ARGV[1], 'PX', ARGV[2]) end
    return #KEYS
    """: [("l1", "l2", "me", 50000), ("l2", "l3", "you", 50000), ("l3", "l4", "you", 50000)],
    # Compare and set of two keys.
    """
    if redis.call('GET', KEYS[1]) == ARGV[1] then
      redis.call('MSET', KEYS[1], ARGV[2], KEYS[2], ARGV[1])
      return redis.status_reply('SWAPPED')
    end
    return redis.error_reply('NOTSAME it was ' .. tostring(redis.call('GET', KEYS[1])))
    """: [("l1", "was", "me", "new"), ("l1", "was", "me", "newer"), ("none", "was", "x", "y")],
    # A counter with a cap that wraps.
    """
    local value = redis.call('INCR', KEYS[1])
    if value > tonumber(ARGV[1]) then
      redis.call('SET', KEYS[1], 1)
      value = 1
    end
    return {value, redis.call('TTL', KEYS[1]), redis.call('MGET', KEYS[1], KEYS[2])}
    """: [("n", "other", 2)] * 4,
    # JSON in a value.
    """
    local raw = redis.call('GET', KEYS[1])
    local state = raw and cjson.decode(raw) or {count = 0}
    state.count = state.count + tonumber(ARGV[1])
    redis.call('SET', KEYS[1], cjson.encode(state))
    return {state.count, redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])}
    """: [("j", "x", 1), ("j", "x", 2.5), ("j", "x", 1)],
}

CORNERS = """
return {1, 2.9, 'x', true, false, {ok = 'fine'}, {err = 'bad'}, {double = 1.5}, nil, 4}
return {1, {a = 1}, function() end, 5}
return {map = {a = 1}}
return {set = {a = true}}
return 1e300
return redis.status_reply('a\\r\\nb')
return {err = 'ERR a\\r\\nb'}
redis.call('set', 'a', 12345678901234567890) return redis.call('get', 'a')
redis.call('set', 'a', 0.1) return redis.call('get', 'a')
redis.call('set', 'a', 1e21) return redis.call('get', 'a')
redis.call('set', 'a', 'x') return redis.call('incr', 'a')
return redis.pcall('incr', 'a')
local ok, e = pcall(redis.call, 'incr', 'a') return {type(e), tostring(e), tostring(ok)}
local ok, e = pcall(function() error('x') end) return {type(e), tostring(e)}
local ok, e = pcall(function() error({err = 'ERR x'}) end) return {type(e), tostring(e)}
return {pcall(error)}
return {xpcall(function() error('x', 0) end, function(e) return e .. '!' end)}
return redis.call('nosuch')
return redis.call('get')
return redis.call('eval', 'return 1', 0)
return redis.call('auth', 'x')
redis.call()
redis.call({})
error('boo')
error({err = 'My err'})
error({})
return +
local a; return a.b
x = 1
return x
string.foo = 1
return rawset(_G, 'a', 1)
return redis.sha1hex('a') .. redis.sha1hex('')
return redis.sha1hex()
redis.setresp(4)
redis.setresp(3) return true
redis.setresp(3) return {false, 1.5}
return math.floor(-2.5) .. ' ' .. math.ceil(2.1) .. ' ' .. math.fmod(7, 3) .. ' ' .. 2 ^ 53
return tostring(1e15) .. ' ' .. tostring(0.1) .. ' ' .. tostring(-0) .. ' ' .. 10 / 3
return ('hello world'):gsub('o', '0')
return {('hello world'):gsub('o', '0')}
return {('key:123:x'):match('^(%w+):(%d+)')}
return {('a.b'):find('.', 1, true)}
local t = {} for k, v in ('a=1, b=2'):gmatch('(%w+)=(%w+)') do t[#t + 1] = k .. v end return t
local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) return t
local t = {1, 2, 3} table.insert(t, 2, 9) table.remove(t, 1) return t
return {unpack({1, 2, 3}, 2)}
return string.format('%5.2f|%s|%d|%x|%q', 1.234, 'x', 7, 255, 'y')
return {tonumber('0x10'), tonumber('10', 2), tonumber('z', 36), tostring(tonumber('x'))}
return cjson.encode({1, 2, {a = 'x/y'}, cjson.null, true, 1.5, 1e20})
return cjson.encode({}) .. cjson.encode({[3] = 1}) .. cjson.encode('\\n\\"')
return tostring(cjson.decode('{"a":[1,2,null]}').a[3] == cjson.null)
return {select('#', 1, nil, 3), select(2, 'a', 'b')}
#!lua flags=foo\nreturn 1
#!lua name=x\nreturn 1
#!py\nreturn 1
#!lua flags=no-writes\nreturn redis.call('set', 'a', '1')
#!lua\nreturn redis.call('get', 'a')
"""


def eval_of(text, keys, words):
    return request("EVAL", text, keys, *words)


def conversation():
    for text, calls in USED.items():
        for words in calls:
            yield eval_of(text, 2, words)
    for text in CORNERS.strip().split("\n"):
        text = text.replace("\\n", "\n") if text.startswith("#!") else text
        yield eval_of(text, 0, ())
        yield request("EVAL_RO", text, 0)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    server = Ours(tmp_path_factory.mktemp("ours"), "--lua")
    yield server
    assert server.end() == 0


# Redis 7 writes numbers with other digits.
@pytest.mark.skipif(version() < (8,), reason="it takes Redis 8")
def test_scripts_answer_as_in_redis(ours, tmp_path):
    judge = Redis(tmp_path)
    try:
        for asked in conversation():
            theirs = WHERE.sub(b"", converse(judge.port, asked))
            assert converse(ours.port, asked) == theirs, asked
    finally:
        judge.end()


# Pieces of patterns, from which Lua's own matcher and ours must find the same.
PIECES = ["a", "b", ".", "%a", "%d", "%s", "%w", "%A", "[ab]", "[^a]", "[a-c]", "[%d_]", "(", ")", "()", "%1", "%bab", "%f[a]", "*", "+", "-", "?", "^", "$", "%%", "]"]


def made_up(seed, count):
    dice = random.Random(seed)
    for _ in range(count):
        pattern = "".join(dice.choices(PIECES, k=dice.randint(1, 7)))
        subject = "".join(dice.choices("aabb1 _%", k=dice.randint(0, 9)))
        yield subject, pattern, dice.randint(-3, 6)


PATTERNS = """
local out = {}
for i = 1, #ARGV, 3 do
  local s, p, init = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  local function note(...)
    local words = {}
    for at = 1, select('#', ...) do words[at] = tostring((select(at, ...))) end
    out[#out + 1] = table.concat(words, ',')
  end
  note(pcall(string.find, s, p, init))
  note(pcall(string.match, s, p, init))
  note(pcall(string.gsub, s, p, '<%0>'))
  note(pcall(string.gsub, s, p, function(...) return select('#', ...) .. tostring((...)) end))
  note(pcall(function() local n = {} for a, b in string.gmatch(s, p) do n[#n + 1] = tostring(a) .. tostring(b) end return table.concat(n, ';') end))
end
return out
"""


@needs_redis
def test_patterns_find_what_they_find_in_redis(ours, tmp_path):
    judge = Redis(tmp_path)
    clients = [redis.Redis(port=port, protocol=2) for port in (ours.port, judge.port)]
    try:
        for seed in range(20):
            cases = list(made_up(seed, 300))
            words = [word for case in cases for word in case]
            mine, theirs = (client.eval(PATTERNS, 0, *words) for client in clients)
            cut = re.compile(rb"(user_script|library):\d+: ")
            for at, (own, other) in enumerate(zip(mine, theirs, strict=True)):
                assert cut.sub(b"", own) == cut.sub(b"", other), cases[at // 5]
    finally:
        judge.end()


def test_redis_py_s_script_helper(ours):
    client = redis.Redis(port=ours.port)
    add = client.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1]) + redis.call('INCRBY', KEYS[2], ARGV[1])")
    assert add(["r1", "r2"], [3]) == 6
    client.script_flush()
    assert add(["r1", "r2"], [3]) == 12
    with client.pipeline() as pipe:
        add(["r1", "r2"], [1], client=pipe)
        assert pipe.execute() == [14]
    with pytest.raises(redis.exceptions.NoScriptError):
        client.evalsha("0" * 40, 0)
