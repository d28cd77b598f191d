-- What scripts see of Lua, made from Lua's own libraries (`base`, `own`) and from functions of the server (`host`).
--
-- Lua's hook counts instructions and is not called within a function of C. So what takes long there is written here, in Lua.
-- A function of the host returns false and the words of an error.
local base, own, host = ...
local rawpcall, error, type, select, tostring = base.pcall, base.error, base.type, base.select, base.tostring
local rawget, rawset, setmetatable, tonumber = base.rawget, base.rawset, base.setmetatable, base.tonumber
local sub, concat, floor = own.string.sub, own.table.concat, own.math.floor
local rawunpack = base.unpack

local function raise(ok, ...)
  if ok == false then error((...), 3) end
  return ok, ...
end

local function text(value, place, name)
  local kind = type(value)
  if kind == 'string' then return value end
  if kind == 'number' then return tostring(value) end
  if value == nil then kind = 'no value' end
  error("bad argument #" .. place .. " to '" .. name .. "' (string expected, got " .. kind .. ")", 3)
end

local function number(value, place, name)
  local it = tonumber(value)
  if it then return it end
  error("bad argument #" .. place .. " to '" .. name .. "' (number expected, got " .. (value == nil and 'no value' or type(value)) .. ")", 3)
end

local function table_of(value, place, name)
  if type(value) == 'table' then return value end
  error("bad argument #" .. place .. " to '" .. name .. "' (table expected, got " .. (value == nil and 'no value' or type(value)) .. ")", 3)
end

-- What a long text costs the function of Lua that reads or makes it.
local LONG = 256
local function takes(value)
  if type(value) == 'string' and #value > LONG then host.takes(#value) end
  return value
end

-- Tables of the server, which scripts see through others that are empty and cannot be changed.
local protected = {}
local READONLY = 'Attempt to modify a readonly table'
local function readonly() error(READONLY, 2) end
local function protect(real)
  local shown = setmetatable({}, { __index = real, __newindex = readonly, __metatable = false })
  protected[shown] = real
  return shown
end

local builtins = {}
for _, name in base.ipairs({ 'assert', 'error', 'getmetatable', 'ipairs', 'next', 'pairs', 'rawequal', 'select', 'setmetatable',
    'tostring', 'type', '_VERSION' }) do
  builtins[name] = base[name]
end

-- Lua's own counts in 32 bits without a look at what does not fit, and then writes behind its stack. It
-- returns as many as this beside its three arguments.
local UNPACKED_MAX = 7997
function builtins.unpack(list, from, to)
  table_of(list, 1, 'unpack')
  from = from == nil and 1 or number(from, 2, 'unpack')
  to = to == nil and #list or number(to, 3, 'unpack')
  if to < from then return end
  -- Not "more than": a difference that is no number is refused, too.
  if not (to - from < UNPACKED_MAX) then error('too many results to unpack', 2) end
  return rawunpack(list, from, to)
end

function builtins.tonumber(...)
  takes((...))
  return tonumber(...)
end

function builtins.rawget(shown, name)
  return rawget(protected[shown] or shown, name)
end

function builtins.rawset(shown, name, value)
  if protected[shown] then error(READONLY, 2) end
  return rawset(shown, name, value)
end

-- As in Redis, an error of a command is a text for who catches it.
local function caught(ok, ...)
  if ok then return true, ... end
  local failure = ...
  if type(failure) == 'table' then
    local words = rawget(failure, 'err')
    if type(words) == 'string' or type(words) == 'number' then failure = words end
  end
  return false, failure
end

function builtins.pcall(...)
  if select('#', ...) == 0 then error("bad argument #1 to 'pcall' (value expected)", 2) end
  return caught(rawpcall(...))
end

-- Lua's own calls its handler before it leaves the hook of an error, so no hook would end the handler.
local function handled(handler, ok, ...)
  if ok then return true, ... end
  local _, failure = caught(false, ...)
  local fine
  fine, failure = rawpcall(handler, failure)
  if fine then return false, failure end
  return false, 'error in error handling'
end

function builtins.xpcall(f, handler)
  return handled(handler, rawpcall(f))
end

function builtins.loadstring(source, name)
  return host.compile(text(source, 1, 'loadstring'), name == nil and source or text(name, 2, 'loadstring'))
end

function builtins.load(more, name)
  if type(more) ~= 'function' then
    error("bad argument #1 to 'load' (function expected, got " .. (more == nil and 'no value' or type(more)) .. ")", 2)
  end
  local pieces = {}
  while true do
    local piece = more()
    if piece == nil or piece == '' then break end
    if type(piece) ~= 'string' then return nil, 'reader function must return a string' end
    pieces[#pieces + 1] = piece
  end
  return host.compile(concat(pieces), name == nil and '=(load)' or text(name, 2, 'load'))
end

builtins.gcinfo = host.memory
function builtins.collectgarbage(option)
  if option == 'count' then return host.memory() end
  return 0
end

-- string
local string = {}
for _, name in base.ipairs({ 'byte', 'char', 'len' }) do string[name] = own.string[name] end
for _, name in base.ipairs({ 'lower', 'reverse', 'upper' }) do
  local made = own.string[name]
  string[name] = function(s) return made(takes(text(s, 1, name))) end
end

function string.sub(s, from, last)
  return takes(sub(text(s, 1, 'sub'), number(from, 2, 'sub'), last == nil and -1 or number(last, 3, 'sub')))
end

local format = own.string.format
function string.format(form, ...)
  takes(text(form, 1, 'format'))
  for at = 1, select('#', ...) do takes((select(at, ...))) end
  return format(form, ...)
end

function string.rep(s, times)
  s, times = text(s, 1, 'rep'), number(times, 2, 'rep')
  if #s == 0 or times < 1 then return '' end
  raise(host.takes(#s * times))
  return own.string.rep(s, times)
end

local FIND, PLAIN, EACH, LAZY, MATCH = 0, 1, 2, 3, 4
function string.find(s, pattern, init, plain)
  s, pattern = text(s, 1, 'find'), text(pattern, 2, 'find')
  return raise(host.search(s, pattern, init == nil and 1 or number(init, 3, 'find'), plain and PLAIN or FIND))
end

local function matched(s, start, last, ...)
  if start == nil then return nil end
  if start == false then return false, last end
  if select('#', ...) == 0 then return sub(s, start, last) end
  return ...
end

function string.match(s, pattern, init)
  s, pattern = text(s, 1, 'match'), text(pattern, 2, 'match')
  return raise(matched(s, host.search(s, pattern, init == nil and 1 or number(init, 3, 'match'), MATCH)))
end

function string.gmatch(s, pattern)
  s, pattern = text(s, 1, 'gmatch'), text(pattern, 2, 'gmatch')
  local from = 1
  local function step(start, last, ...)
    if not start then
      from = #s + 2
      return start, last
    end
    from = last < start and start + 1 or last + 1
    return matched(s, start, last, ...)
  end
  return function()
    if from > #s + 1 then return nil end
    return raise(step(host.search(s, pattern, from, EACH)))
  end
end
string.gfind = string.gmatch

-- What a text of gsub's third argument stands for.
local function expanded(template, whole, ...)
  local out, from = {}, 1
  while true do
    local at = host.search(template, '%', from, PLAIN)
    if not at then break end
    out[#out + 1] = sub(template, from, at - 1)
    local what = sub(template, at + 1, at + 1)
    local digit = tonumber(what)
    if not digit then
      out[#out + 1] = what
    elseif digit == 0 then
      out[#out + 1] = whole
    elseif digit == 1 and select('#', ...) == 0 then
      out[#out + 1] = whole
    elseif digit > select('#', ...) then
      return false, 'invalid capture index'
    else
      local part = select(digit, ...)
      if part == false then return false, 'unfinished capture' end
      out[#out + 1] = part
    end
    from = at + 2
  end
  out[#out + 1] = sub(template, from)
  return concat(out)
end

local function replaced(how, kind, whole, ...)
  local value
  if kind == 'string' then
    local made, failure = expanded(how, whole, ...)
    if failure then return false, failure end
    return made
  elseif kind == 'table' then
    if (...) == false then return false, 'unfinished capture' end
    value = how[select('#', ...) == 0 and whole or (...)]
  elseif select('#', ...) == 0 then
    value = how(whole)
  else
    value = how(...)
  end
  if not value then return whole end
  if type(value) == 'number' then return tostring(value) end
  if type(value) ~= 'string' then return false, 'invalid replacement value (a ' .. type(value) .. ')' end
  return value
end

function string.gsub(s, pattern, how, most)
  s, pattern = text(s, 1, 'gsub'), text(pattern, 2, 'gsub')
  local kind = type(how)
  if kind == 'number' then how, kind = tostring(how), 'string' end
  if kind ~= 'string' and kind ~= 'table' and kind ~= 'function' then
    error("bad argument #3 to 'gsub' (string/function/table expected)", 2)
  end
  most = most == nil and #s + 1 or number(most, 4, 'gsub')
  local out, copied, from, count = {}, 1, 1, 0
  -- An unfinished capture is an error for who looks at it.
  local mode = kind == 'function' and MATCH or LAZY
  local anchored = sub(pattern, 1, 1) == '^'
  local start, last
  local function step(first, ending, ...)
    start, last = first, ending
    if not first then return first, ending end
    return replaced(how, kind, sub(s, first, ending), ...)
  end
  while count < most and from <= #s + 1 do
    local made, failure = step(host.search(s, pattern, from, mode))
    if made == false and failure then error(failure, 2) end
    if not start then break end
    count = count + 1
    out[#out + 1] = sub(s, copied, start - 1)
    out[#out + 1] = made
    copied = last + 1
    from = last < start and start + 1 or last + 1
    if anchored then break end
  end
  out[#out + 1] = sub(s, copied)
  return concat(out), count
end

-- table
local tables = {}
tables.getn = own.table.getn

function tables.concat(list, separator, from, last)
  table_of(list, 1, 'concat')
  separator = separator == nil and '' or text(separator, 2, 'concat')
  from = from == nil and 1 or number(from, 3, 'concat')
  last = last == nil and #list or number(last, 4, 'concat')
  if last > from then host.takes((last - from) * (16 + #separator)) end
  return takes(concat(list, separator, from, last))
end

function tables.foreach(list, f)
  for name, value in base.next, table_of(list, 1, 'foreach') do
    local it = f(name, value)
    if it ~= nil then return it end
  end
end

function tables.foreachi(list, f)
  for at = 1, #table_of(list, 1, 'foreachi') do
    local it = f(at, list[at])
    if it ~= nil then return it end
  end
end

function tables.maxn(list)
  local most = 0
  for name in base.next, table_of(list, 1, 'maxn') do
    if type(name) == 'number' and name > most then most = name end
  end
  return most
end

function tables.insert(list, ...)
  table_of(list, 1, 'insert')
  local count = select('#', ...)
  if count == 1 then
    list[#list + 1] = (...)
  elseif count == 2 then
    local at, value = ...
    at = number(at, 2, 'insert')
    for place = #list, at, -1 do list[place + 1] = list[place] end
    list[at] = value
  else
    error("wrong number of arguments to 'insert'", 2)
  end
end

function tables.remove(list, at)
  table_of(list, 1, 'remove')
  local len = #list
  at = at == nil and len or number(at, 2, 'remove')
  if not (at >= 1 and at <= len) then return end
  local value = list[at]
  for place = at, len - 1 do list[place] = list[place + 1] end
  list[len] = nil
  return value
end

-- A heap, sorted in place: as many comparisons whatever the order is, and however the function compares.
local function sift(list, from, last, before)
  local value = list[from]
  while true do
    local child = 2 * from
    if child > last then break end
    if child < last and before(list[child], list[child + 1]) then child = child + 1 end
    if not before(value, list[child]) then break end
    list[from] = list[child]
    from = child
  end
  list[from] = value
end

local function less(a, b)
  if type(a) == 'string' then host.takes(#a) end
  return a < b
end

function tables.sort(list, before)
  table_of(list, 1, 'sort')
  before = before or less
  local len = #list
  for from = floor(len / 2), 1, -1 do sift(list, from, len, before) end
  for last = len, 2, -1 do
    list[1], list[last] = list[last], list[1]
    sift(list, 1, last - 1, before)
  end
end

-- math
local math = {}
for name, it in base.pairs(own.math) do math[name] = it end
math.randomseed = function(seed) host.seed(number(seed, 1, 'randomseed')) end
function math.random(first, last)
  local drawn = host.random()
  if first == nil then return drawn end
  first = number(first, 1, 'random')
  if last == nil then
    if first < 1 then error("bad argument #1 to 'random' (interval is empty)", 2) end
    return floor(drawn * first) + 1
  end
  last = number(last, 2, 'random')
  if first > last then error("bad argument #2 to 'random' (interval is empty)", 2) end
  return floor(drawn * (last - first + 1)) + first
end

-- redis
local redis = {
  LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
  REPL_NONE = 0, REPL_AOF = 1, REPL_SLAVE = 2, REPL_REPLICA = 2, REPL_ALL = 3,
  REDIS_VERSION = host.version[1], REDIS_VERSION_NUM = host.version[2],
}

local run = host.run
function redis.call(...)
  local value, failed = run.call(...)
  if failed then error(value, 0) end
  return value
end

function redis.pcall(...)
  return (run.call(...))
end

function redis.error_reply(...)
  local words = ...
  if select('#', ...) ~= 1 or type(words) ~= 'string' then
    return { err = 'ERR wrong number or type of arguments' }
  end
  -- The first word is a code, if others follow.
  if sub(words, 1, 1) == '-' then words = sub(words, 2) end
  if not string.find(words, ' ', 1, true) then words = 'ERR ' .. words end
  return { err = words }
end

function redis.status_reply(...)
  local words = ...
  if select('#', ...) ~= 1 or type(words) ~= 'string' then
    return { err = 'ERR wrong number or type of arguments' }
  end
  return { ok = words }
end

function redis.sha1hex(...)
  if select('#', ...) ~= 1 then error('wrong number of arguments', 0) end
  return (raise(host.sha1hex(text((...), 1, 'sha1hex'))))
end

function redis.log(level, ...)
  if select('#', ...) < 1 then error('redis.log() requires two arguments or more.', 0) end
  if type(level) ~= 'number' then error('First argument must be a number (log level).', 0) end
  if level < 0 or level > 3 then error('Invalid log level.', 0) end
  local words = {}
  for at = 1, select('#', ...) do words[at] = tostring((select(at, ...))) end
  host.log(level, concat(words, ' '))
end

function redis.setresp(...)
  local version = ...
  if select('#', ...) ~= 1 then error('redis.setresp() requires one argument.', 0) end
  if version ~= 2 and version ~= 3 then error('RESP version must be 2 or 3.', 0) end
  host.setresp(version)
end

-- What there is to replicate, is not: these are here because scripts call them.
function redis.replicate_commands() return true end
function redis.set_repl() end
function redis.breakpoint() return false end
function redis.debug() end

-- cjson
local cjson = { _NAME = 'cjson', _VERSION = '2.1.0', null = host.null }
local JSON_DEPTH = 1000

local encode
local function encode_list(list, len, out, depth)
  out[#out + 1] = '['
  for at = 1, len do
    if at > 1 then out[#out + 1] = ',' end
    encode(list[at], out, depth)
  end
  out[#out + 1] = ']'
end

local function encode_map(map, out, depth)
  local separator = '{'
  for name, value in base.next, map do
    local kind = type(name)
    if kind ~= 'string' and kind ~= 'number' then
      error('Cannot serialise table: table key must be a number or string', 0)
    end
    out[#out + 1] = separator
    out[#out + 1] = raise(host.quote(tostring(name)))
    out[#out + 1] = ':'
    encode(value, out, depth)
    separator = ','
  end
  out[#out + 1] = separator == '{' and '{}' or '}'
end

-- The length of a list, and nothing if the table is none. As cjson, a list may have holes, but not many.
local function len_of(map)
  local most, count = 0, 0
  for name in base.next, map do
    if type(name) ~= 'number' or name < 1 or name ~= floor(name) then return nil end
    if name > most then most = name end
    count = count + 1
  end
  if most == 0 then return nil end
  if most > 10 and most > 2 * count then error('Cannot serialise table: excessively sparse array', 0) end
  return most
end

function encode(value, out, depth)
  local kind = type(value)
  if kind == 'string' then
    out[#out + 1] = raise(host.quote(value))
  elseif kind == 'number' then
    if value ~= value or value == 1 / 0 or value == -1 / 0 then
      error('Cannot serialise number: must not be NaN or Inf', 0)
    end
    out[#out + 1] = tostring(value)
  elseif kind == 'boolean' then
    out[#out + 1] = tostring(value)
  elseif kind == 'nil' or value == host.null then
    out[#out + 1] = 'null'
  elseif kind == 'table' then
    if depth >= JSON_DEPTH then error('Cannot serialise, excessive depth (' .. depth + 1 .. ')', 0) end
    local len = len_of(value)
    if len then
      encode_list(value, len, out, depth + 1)
    else
      encode_map(value, out, depth + 1)
    end
  else
    error('Cannot serialise ' .. kind .. ': type not supported', 0)
  end
end

function cjson.encode(...)
  if select('#', ...) ~= 1 then error("bad argument #1 to 'encode' (expected 1 argument)", 2) end
  local out = {}
  encode((...), out, 0)
  return concat(out)
end

function cjson.decode(...)
  if select('#', ...) ~= 1 then error("bad argument #1 to 'decode' (expected 1 argument)", 2) end
  local fine, value = host.decode(text((...), 1, 'decode'))
  if not fine then error(value, 2) end
  return value
end

builtins.string, builtins.table, builtins.math = protect(string), protect(tables), protect(math)
builtins.redis, builtins.cjson = protect(redis), protect(cjson)
builtins.os = protect({ clock = host.clock })

-- The methods of texts.
host.methods(string)

setmetatable(builtins, { __index = function(_, name)
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end })
builtins._G = protect(builtins)

return builtins, builtins._G, rawpcall
