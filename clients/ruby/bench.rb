# frozen_string_literal: true

# What a get takes from Ruby, by each way to Nuthatch and by other clients. Two servers of one build, because one listens at TCP or at
# a unix socket:
#
#     nuthatch -t 1 -l 127.0.0.1 -p 21211 --redis-port 21212 --shared /tmp/bench.shared &
#     nuthatch -t 1 -s /tmp/bench.socket &
#     ruby -I clients/ruby/lib clients/ruby/bench.rb 21211 21212 /tmp/bench.shared /tmp/bench.socket
#
# Prints a table of microseconds: the median of rounds (the least to the greatest). The second table has gets beside a thread that
# computes all the time.

require "nuthatch"
require "dalli"
require "redis"
require "logger"
require "active_support"
require "active_support/cache/nuthatch_store"
require "active_support/core_ext/numeric/time"

ROUNDS = Integer(ENV.fetch("ROUNDS", 5))
SECONDS = Float(ENV.fetch("SECONDS", 0.5))
KEYS = Array.new(100) { |number| "key-#{number}" }
VALUE = "x" * 32

tcp, redis_port, shared, socket = ARGV
Way = Struct.new(:get, :many, :set)

def nuthatch(address)
  client = Nuthatch::Client.new(address)
  Way.new(->(key) { client.get(key) }, -> { client.get_multi(KEYS) }, ->(key) { client.set(key, VALUE) })
end

def dalli(server)
  client = Dalli::Client.new(server, compress: false)
  # Its values are marshalled, if they are not raw.
  Way.new(->(key) { client.get(key) }, -> { client.get_multi(KEYS) }, ->(key) { client.set(key, VALUE, nil, raw: true) })
end

def store(cache)
  Way.new(->(key) { cache.read(key) }, -> { cache.read_multi(*KEYS) }, ->(key) { cache.write(key, VALUE) })
end

redis = Redis.new(host: "127.0.0.1", port: redis_port)
WAYS = {
  "`Nuthatch::Client`, `shm://`" => nuthatch("shm://#{shared}?or=tcp://127.0.0.1:#{tcp}"),
  "`Nuthatch::Client`, `unix://`" => nuthatch("unix://#{socket}"),
  "`Nuthatch::Client`, `tcp://`" => nuthatch("tcp://127.0.0.1:#{tcp}"),
  "dalli, a unix socket" => dalli(socket),
  "dalli, TCP" => dalli("127.0.0.1:#{tcp}"),
  "redis-rb, TCP" => Way.new(
    ->(key) { redis.get(key) }, -> { KEYS.zip(redis.mget(KEYS)).to_h }, ->(key) { redis.set(key, VALUE) }
  ),
  "Rails' `:nuthatch_store`, `shm://`" =>
    store(ActiveSupport::Cache.lookup_store(:nuthatch_store, "shm://#{shared}?or=tcp://127.0.0.1:#{tcp}")),
  "Rails' `:mem_cache_store` (dalli), a unix socket" => store(ActiveSupport::Cache.lookup_store(:mem_cache_store, socket))
}.freeze

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

# Microseconds of a call.
def time_of(keys)
  calls = 0
  start = now
  last = start + SECONDS
  loop do
    keys.each { |key| yield key }
    calls += keys.length
    break if now >= last
  end
  (now - start) / calls * 1e6
end

def told(times)
  times = times.sort.map { |time| time < 1000 ? format("%.3g", time) : time.round(-2).to_i.to_s }
  "#{times[times.length / 2]} (#{times.first} to #{times.last})"
end

def table(title, columns, times)
  puts "| #{title} | #{columns.join(" | ")} |", "|---|#{"---|" * columns.length}"
  times.each { |name, of| puts "| #{name} | #{of.map { |column| told(column) }.join(" | ")} |" }
end

times = Hash.new { |all, name| all[name] = [[], [], []] }
ROUNDS.times do
  WAYS.each do |name, way|
    gets, manys, sets = times[name]
    sets << time_of(KEYS, &way.set)
    # Each gets what it has set, and nothing else is measured.
    raise "#{name}: wrong values" unless way.get.call(KEYS[0]) == VALUE && way.many.call == KEYS.to_h { |key| [key, VALUE] }

    gets << time_of(KEYS, &way.get)
    manys << time_of(KEYS.first(10)) { way.many.call } / KEYS.length
  end
end
table("us", ["a get", "a get, 100 at a time", "a set"], times)
puts

beside = Hash.new { |all, name| all[name] = [[]] }
computing = Thread.new { loop { Math.sqrt(2) } }
ROUNDS.times do
  WAYS.first(6).each do |name, way|
    KEYS.first(5).each(&way.set)
    beside[name][0] << time_of(KEYS.first(5), &way.get)
  end
end
computing.kill
table("us, beside a thread that computes", ["a get"], beside)
