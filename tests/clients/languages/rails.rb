# Rails' cache: ruby rails.rb memcached|redis PORT. Ends with 0 if all is as expected.
require "logger"
require "active_support"
require "active_support/cache"
require "active_support/core_ext/numeric/time"

def same(expected, found, what)
  abort "#{what}: #{found.inspect}, not #{expected.inspect}" unless expected == found
end

kind, port = ARGV
cache = case kind
        when "memcached" then ActiveSupport::Cache.lookup_store(:mem_cache_store, "127.0.0.1:#{port}")
        when "redis" then ActiveSupport::Cache.lookup_store(:redis_cache_store, url: "redis://127.0.0.1:#{port}/1")
        end
cache.clear
same nil, cache.read("none"), "read of none"
same true, cache.write("k", { a: [1, nil] }, expires_in: 1.hour) ? true : false, "write"
same({ a: [1, nil] }, cache.read("k"), "read")
same 7, cache.fetch("made") { 7 }, "fetch"
same 7, cache.fetch("made") { 8 }, "fetch of what is there"
cache.write("counter", 1, raw: true)
same 3, cache.increment("counter", 2), "increment"
same 2, cache.decrement("counter"), "decrement"
cache.write_multi({ "a" => 1, "b" => "two" })
same({ "a" => 1, "b" => "two" }, cache.read_multi("a", "b", "c"), "read_multi")
same true, cache.exist?("a"), "exist"
same true, cache.delete("a") ? true : false, "delete"
same false, cache.exist?("a"), "exist of none"
cache.write("large", "x" * 100_000)
same 100_000, cache.read("large").size, "read of a large value"
cache.clear
same nil, cache.read("k"), "read after a clear"
