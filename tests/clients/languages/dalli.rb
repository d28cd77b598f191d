# dalli against a server: ruby dalli.rb PORT. Ends with 0 if all is as expected.
require "dalli"

def same(expected, found, what)
  abort "#{what}: #{found.inspect}, not #{expected.inspect}" unless expected == found
end

client = Dalli::Client.new("127.0.0.1:#{ARGV[0]}", compress: true)
client.flush
same nil, client.get("none"), "get of none"
[7, "text", { "a" => [1, nil] }, "x" * 500_000].each do |value|
  client.set("typed", value, 100)
  same value, client.get("typed"), "get"
end
same false, client.add("typed", 1), "add of what is there"
same true, client.replace("typed", 1) ? true : false, "replace"
same 40, client.incr("counter", 1, nil, 40), "incr of none"
same 45, client.incr("counter", 5), "incr"
same 0, client.decr("counter", 100), "decr"
client.multi { 500.times { |number| client.set("key:#{number}", number) } }
found = client.get_multi((0...500).map { |number| "key:#{number}" } + ["none"])
same 500, found.size, "get_multi"
same 123, found["key:123"], "get_multi"
same true, client.cas("key:1") { |value| value + 1 } ? true : false, "cas"
same 2, client.get("key:1"), "what cas stored"
client.set("raw", "b", 100, raw: true)
same true, client.append("raw", "c") ? true : false, "append"
same true, client.prepend("raw", "a") ? true : false, "prepend"
same "abc", client.get("raw", raw: true), "get of it"
same true, client.touch("raw", 200) ? true : false, "touch"
same true, client.delete("raw"), "delete"
same nil, client.delete("raw") || nil, "delete of none"
same 1, client.stats.size, "stats"
same 1, client.version.size, "version"
client.close
