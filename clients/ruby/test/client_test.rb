# frozen_string_literal: true

require_relative "helper"

# Each call, by each way to a server.
class ClientTest < Minitest::Test
  include EachWay

  by_each_way :strings_are_kept_as_they_are do |way|
    client = client(way)
    assert_nil client.get("k")
    assert_equal "other", client.get("k", "other")
    ["value", "", "123", "Grüße", "\0\r\n\xFF".b, "Grüße".b, "x" * 900_000].each do |value|
      assert client.set("k", value)
      found = client.get("k")
      assert_equal value, found
      assert_equal value.encoding, found.encoding
      refute_predicate found, :frozen?
      assert client.exist?("k")
    end
    assert client.delete("k")
    refute client.delete("k")
    refute client.exist?("k")
  end

  by_each_way :strings_in_other_encodings_come_back_as_bytes do |way|
    client = client(way)
    # What is text in UTF-8 as it is: hexadecimal digits, names of symbols.
    client.set("k", "text".encode("US-ASCII"))
    assert_equal Encoding::UTF_8, client.get("k").encoding
    [
      "Gr\xFC\xDFe".dup.force_encoding("ISO-8859-1"), "Grüße".encode("UTF-16LE"), "broken \xFF",
      "broken \xFF".dup.force_encoding("US-ASCII")
    ].each do |value|
      client.set("k", value)
      assert_equal value.b, client.get("k")
      assert_equal Encoding::BINARY, client.get("k").encoding
    end
  end

  by_each_way :values_come_back_of_their_type do |way|
    values = [0, -5, 2**64, -(2**200), 1.5, 2.0, true, false, nil, [], { "a" => [1, nil, "ä"] }, [[{}]]]
    [:json, :marshal, Nuthatch::JsonCodec.new].each do |codec|
      client = client(way, codec: codec)
      values.each_with_index do |value, number|
        client.set("k#{number}", value, 60)
        [client.get("k#{number}", :none), client.get_item("k#{number}").value].each do |found|
          value.nil? ? assert_nil(found) : assert_equal(value, found)
          assert_instance_of value.class, found
        end
      end
    end
    client = client(way, codec: Nuthatch::JsonCodec.new(symbolize_names: true))
    client.set("k", { name: "Ada", of: [{ a: 1 }] })
    assert_equal({ name: "Ada", of: [{ a: 1 }] }, client.get("k"))
  end

  by_each_way :many_keys_travel_together do |way|
    client = client(way, prefix: "of mine ")
    assert_empty client.get_multi
    assert_empty client.get_multi([])
    assert_equal 0, client.delete_multi
    assert client.set_multi({})
    values = (0...3000).to_h { |number| ["key #{number}", number.odd? ? number : [number]] }
    assert client.set_multi(values, 60)
    client.delete("key 7")
    values.delete("key 7")
    assert_equal values, client.get_multi(values.keys, "none")
    assert_equal({ "key 1" => 1, "key 3": 3 }, client.get_multi("key 1", :"key 3"))
    assert_equal 2, client.delete_multi("key 8", %w[none], "key 9")
    # Keys of several encodings in one call.
    mixed = { "ä" => "1", "\xFF\0 ".b => "2", "ä".encode("UTF-16BE") => "3" }
    client.set_multi(mixed)
    assert_equal mixed, client.get_multi(mixed.keys)
  end

  by_each_way :large_values_of_many_keys_are_stored_in_parts do |way|
    client = client(way)
    values = (0...20).to_h { |number| ["k#{number}", (65 + number).chr * 900_000] }
    client.set_multi(values)
    assert_equal values, client.get_multi(values.keys)
  end

  by_each_way :changes_depend_on_what_there_is do |way|
    client = client(way)
    refute client.replace("k", 1)
    assert client.add("k", 2)
    refute client.add("k", 3)
    item = client.get_item("k")
    assert_equal [2, nil], [item.value, item.seconds_left]
    assert client.replace("k", 4, 60)
    assert_equal false, client.set_cas("k", 5, item.cas)
    assert_equal true, client.set_cas("k", 5, client.get_item("k").cas)
    assert_equal 5, client.get("k")
    assert_nil client.set_cas("none", 5, item.cas)
    assert_nil client.get_item("none")
  end

  by_each_way :cas_gives_the_block_what_there_is do |way|
    client = client(way)
    assert_nil client.cas("k") { flunk "there is none" }
    client.set("k", [1])
    assert_equal true, client.cas("k", 60) { |value| value + [2] }
    assert_equal [1, 2], client.get("k")
    assert_operator client.get_item("k").seconds_left, :<=, 60
    assert_equal false, client.cas("k") { client.set("k", "of another") }
    assert_equal "of another", client.get("k")
    assert_nil client.cas("k") { client.delete("k") }
  end

  by_each_way :strings_grow do |way|
    client = client(way)
    refute client.append("k", "x")
    refute client.prepend("k", "x")
    client.set("k", "b")
    assert client.append("k", "c\0".b)
    assert client.prepend("k", "a")
    assert_equal "abc\0", client.get("k")
    assert_raises(Nuthatch::InvalidError) { client.append("k", 1) }
  end

  by_each_way :integers_count do |way|
    client = client(way)
    assert_nil client.incr("n")
    assert_equal 5, client.incr("n", 1, 60, default: 5)
    assert_operator client.get_item("n").seconds_left, :<=, 60
    assert_equal 7, client.incr("n", 2, default: 50)
    assert_equal 4, client.decr("n", 3)
    assert_equal 0, client.decr("n", 30)
    assert_equal 0, client.get("n")
    client.set("n", (1 << 64) - 2)
    assert_equal (1 << 64) - 1, client.incr("n")
    assert_equal (1 << 64) - 1, client.get("n")
    assert_equal 0, client.incr("n")
    client.set("n", 100)
    assert_equal 99, client.decr("n")
    # memcached leaves a space there.
    assert_equal 99, client.get("n")
    client.set("n", "nothing")
    assert_raises(Nuthatch::NotANumberError) { client.incr("n") }
    [-1, 1.5, nil, "1", 1 << 64].each { |by| assert_raises(Nuthatch::InvalidError) { client.incr("n", by) } }
    assert_raises(Nuthatch::InvalidError) { client.incr("n", default: -1) }
  end

  by_each_way :lifetimes_end do |way|
    client = client(way)
    client.set("short", "v", 0.5)
    client.set("touched", "v")
    client.set("kept", "v", 1)
    assert client.touch("touched", 1)
    assert client.touch("kept")
    refute client.touch("none", 1)
    Wait.for("the end of two items") { client.get_multi("short", "touched", "kept") == { "kept" => "v" } }
    client.set("k", "v", 100_000)
    assert_includes 99_990..100_000, client.get_item("k").seconds_left
    client.set("k", "v", 1e300)
    assert_equal "v", client.get("k")
    [0, -1, -0.5, Float::NAN, -Float::INFINITY, "60", :ever, [], Time.now + 60, Complex(1, 1)].each do |ttl|
      [
        -> { client.set("k", "new", ttl) }, -> { client.add("k", "new", ttl) }, -> { client.touch("k", ttl) },
        -> { client.set_multi({ "k" => "new" }, ttl) }, -> { client.fetch("k", ttl) { "new" } },
        -> { client.incr("k", 1, ttl) }
      ].each { |call| assert_raises(Nuthatch::InvalidError) { call.call } }
    end
    assert_equal "v", client.get("k")
  end

  by_each_way :keys_are_any_bytes do |way|
    client = client(way)
    keys = ["ä", "a b", "\r\nflush_all\r\n", "\0", "\xFF\xFE".b, "x" * 250, " " * 186, "ä".encode("UTF-16LE")]
    keys.each_with_index { |key, number| client.set(key, number) }
    keys.each_with_index { |key, number| assert_equal number, client.get(key) }
    assert_equal keys.each_with_index.to_h, client.get_multi(keys)
    # The bytes are the key.
    assert_equal 0, client.get("ä".b)
    client.set(:symbol, "s")
    assert_equal "s", client.get("symbol")
    assert_equal({ symbol: "s" }, client.get_multi(:symbol))
  end

  by_each_way :keys_that_are_none_are_told do |way|
    client = client(way)
    [nil, "", :"", 1, 1.5, [], {}, Object.new, "x" * 251, " " * 187, "x" * 1_000_000].each do |key|
      [
        -> { client.get(key) }, -> { client.get_item(key) }, -> { client.exist?(key) }, -> { client.set(key, "v") },
        -> { client.set_multi({ key => "v" }) }, -> { client.incr(key) }, -> { client.touch(key) }, -> { client.delete(key) },
        -> { client.append(key, "v") }, -> { client.set_cas(key, "v", 1) }, -> { client.fetch(key) { flunk "computed" } },
        # A list of keys in a list of keys is a list of keys.
        -> { key == [] ? client.get(key) : client.get_multi("a", key) },
        -> { key == [] ? client.get(key) : client.delete_multi("a", key) }
      ].each { |call| assert_raises(Nuthatch::InvalidError) { call.call } }
    end
    assert_raises(Nuthatch::InvalidError) { client(way, prefix: "x" * 250).get("k") }
  end

  by_each_way :values_that_have_no_form_are_told do |way|
    client = client(way)
    client.set("k", "old")
    nested = (1..200).inject([]) { |inner, _| [inner] }
    cyclic = []
    cyclic << cyclic
    [
      :symbol, Object.new, 1r, Time.now, Float::NAN, Float::INFINITY, [Object.new], { a: 1 }, { 1 => 2 }, { nil => 1 }, ["\xFF"],
      ["\xFF".b], { "\xFF" => 1 }, nested, cyclic, -> {}, $stdout,
      # They would come back as arrays and hashes.
      Class.new(Array).new, Class.new(Hash).new, [Class.new(Hash).new]
    ].each do |value|
      assert_raises(Nuthatch::SerializationError) { client.set("k", value) }
    end
    assert_raises(Nuthatch::SerializationError) { client(way, codec: :marshal).set("k", -> {}) }
    assert_raises(Nuthatch::InvalidError) { client.set("k", 10**5000) }
    assert_raises(Nuthatch::RefusedError) { client.set("large", "x" * 2_000_000) }
    assert_raises(Nuthatch::RefusedError) { client.set_multi({ "large" => "x" * 2_000_000, "small" => "v" }) }
    assert_equal "v", client.get("small")
  end

  by_each_way :values_of_others_are_told_apart do |way|
    json = client(way)
    json.set("k", [1])
    marshal = Nuthatch::Client.new(EachWay.address(way), codec: :marshal)
    assert_raises(Nuthatch::SerializationError) { marshal.get("k") }
    marshal.set("k", :symbol)
    assert_equal :symbol, marshal.get("k")
    assert_raises(Nuthatch::SerializationError) { json.get("k") }
    assert_raises(Nuthatch::SerializationError) { json.get_multi("k") }
    assert json.exist?("k")
  end

  by_each_way :a_closed_client_says_so do |way|
    client = client(way)
    client.set("k", "v")
    refute_predicate client, :closed?
    3.times { assert_nil client.close }
    assert_predicate client, :closed?
    [
      -> { client.get("k") }, -> { client.get_item("k") }, -> { client.get_multi("k") }, -> { client.set("k", "v") },
      -> { client.set_multi({ "k" => "v" }) }, -> { client.delete("k") }, -> { client.flush }, -> { client.fetch("k") { "v" } }
    ].each { |call| assert_raises(Nuthatch::ClosedError) { call.call } }
    assert_includes client.inspect, "closed"
  end

  def test_a_client_has_no_copy
    client = client(:unix)
    assert_raises(TypeError) { client.dup }
    assert_raises(TypeError) { client.clone }
    assert_raises(TypeError) { Marshal.dump(client) }
    # One in a constant may be frozen.
    client.freeze
    assert client.set("k", "v")
    assert_equal "v", client.get("k")
    client.close
  end

  def test_wrong_addresses_and_options_are_told
    [nil, "", "x", "unix://\0", "tcp://", "tcp://a?nothing=1", "http://a", 5, :symbol, "unix:///x".encode("UTF-16LE"), "中".encode("UTF-16LE")].each do |address|
      error = assert_raises(Nuthatch::InvalidError, address.inspect) { Nuthatch::Client.new(address) }
      refute_empty error.message
    end
    assert_raises(Nuthatch::InvalidError) { client(:unix, codec: :yaml) }
    assert_raises(Nuthatch::InvalidError) { client(:unix, codec: Object.new) }
    [0, 2, 16, -1, 1 << 32, nil].each do |flags|
      codec = Struct.new(:dump, :load, :flags).new(nil, nil, flags)
      assert_raises(Nuthatch::InvalidError) { client(:unix, codec: codec) }
    end
    assert_raises(Nuthatch::InvalidError) { client(:unix, prefix: nil) }
    ["", "a\0", 5, :symbol].each do |library|
      assert_raises(Nuthatch::InvalidError, library.inspect) { client(:unix, library: library) }
    end
    assert_raises(Nuthatch::InvalidError) { client(:unix).fetch("k") }
    assert_raises(Nuthatch::InvalidError) { client(:unix).cas("k") }
    assert_raises(Nuthatch::InvalidError) { client(:unix).fetch("k", lease: nil) { 1 } }
    assert_raises(Nuthatch::InvalidError) { client(:unix).set_cas("k", "v", nil) }
  end
end
