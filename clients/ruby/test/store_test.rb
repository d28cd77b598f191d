# frozen_string_literal: true

require_relative "helper"
require_relative "stores"

# Rails' cache.
class StoreTest < Minitest::Test
  include EachWay

  def setup
    skip Stores::MISSING if Stores::MISSING
  end

  by_each_way :values_of_any_class_come_back do |way|
    store = Stores.made(way, expires_in: 60)
    store.clear
    now = Time.now
    { a: [1, nil], "time" => now, symbol: :of, large: "x" * 50_000, nothing: nil }.each do |key, value|
      assert store.write(key, value)
      value.nil? ? assert_nil(store.read(key)) : assert_equal(value, store.read(key))
      assert store.exist?(key)
    end
    assert_operator store.client.get_item("time").seconds_left, :<=, 60
    assert_equal({ "x" => 1, "y" => 1 }, store.fetch_multi("x", "y") { 1 })
    assert_equal({ "x" => 1, "y" => 1 }, store.read_multi("x", "y", "z"))
    assert store.write_multi({ "x" => 2, "y" => 3 }, expires_in: 5)
    assert_operator store.client.get_item("x").seconds_left, :<=, 5
    assert_equal 2, store.delete_multi(%w[x y z])
    assert_nil store.read("x")
  end

  by_each_way :counters_count do |way|
    store = Stores.made(way)
    store.clear
    assert_equal 5, store.increment("n", 5, expires_in: 60)
    assert_operator store.client.get_item("n").seconds_left, :<=, 60
    assert_equal 7, store.increment("n", 2)
    assert_equal 6, store.increment("n", -1)
    assert_equal 7, store.decrement("n", -1)
    assert_equal 0, store.decrement("n", 10)
    assert_equal "0", store.read("n", raw: true)
    assert_nil store.decrement("none")
    store.write("n", 41, raw: true)
    assert_equal 42, store.increment("n")
    store.write("word", "one")
    assert_nil store.increment("word")
  end

  by_each_way :long_keys_and_odd_ones do |way|
    store = Stores.made(way, namespace: "of ä")
    store.clear
    keys = ["x" * 300, "#{"x" * 300}y", "ä" * 150, "a b\n\0", "\xFF".b, "z" * 170]
    keys.each_with_index { |key, number| store.write(key, number) }
    keys.each_with_index { |key, number| assert_equal number, store.read(key) }
    assert_equal keys.length, store.read_multi(*keys).length
  end

  # ActiveSupport puts keys and options in one line.
  def test_long_keys_can_be_logged
    log = StringIO.new
    store = Stores.made(:unix, namespace: "of ä")
    store.logger = Logger.new(log)
    assert store.write("ä" * 150, "v")
    assert_equal "v", store.read("ä" * 150)
    assert_predicate log.string, :valid_encoding?
    assert_includes log.string, ":sha256:"
  ensure
    store&.logger = nil
  end

  by_each_way :what_has_expired_is_given_once_more do |way|
    store = Stores.made(way)
    store.clear
    store.write("k", "old", expires_in: 0.3, race_condition_ttl: 10)
    Wait.for("the end of an entry") { store.read("k").nil? || sleep(0.05) && false }
    store.write("k", "old", expires_in: 0.3, race_condition_ttl: 10)
    sleep 0.05 until Time.now.to_f > store.send(:read_entry, "k").expires_at
    made = store.fetch("k", expires_in: 60, race_condition_ttl: 10) do
      # The others, meanwhile.
      assert_equal "old", store.fetch("k", race_condition_ttl: 10) { flunk }
      "new"
    end
    assert_equal ["new", "new"], [made, store.read("k")]
    # One that has expired already is none.
    assert store.write("k", "v", expires_in: -1)
    assert_nil store.read("k")
    store.write_multi({ "k" => "v" }, expires_in: 0)
    assert_nil store.read("k")
  end

  by_each_way :what_others_have_written_is_nothing do |way|
    store = Stores.made(way)
    store.client.flush
    [1, "garbage", "", "\x04\x08".b, "\x04\x08/\x06(\x00".b, { "a" => 1 }, 1.5].each do |value|
      store.client.set("k", value)
      assert_nil store.read("k")
      assert_empty store.read_multi("k")
      assert_equal "v", store.fetch("k", expires_in: 60) { "v" }
      store.delete("k")
    end
  end

  def test_a_dead_server_is_logged
    log = StringIO.new
    store = ActiveSupport::Cache::NuthatchStore.new("unix:///nowhere/socket")
    store.logger = Logger.new(log)
    assert_nil store.read("k")
    assert_equal false, store.write("k", "v")
    assert_equal "v", store.fetch("k") { "v" }
    assert_nil store.clear
    assert_equal 0, store.delete_multi(["k"])
    assert_includes log.string, "Nuthatch::NotSentError"
  ensure
    store&.logger = nil
  end

  def test_a_dead_server_takes_nothing_from_the_others
    servers = [Server.new(:tcp), Server.new(:tcp)]
    address = "tcp://#{servers.map { |server| server.address(:tcp).delete_prefix("tcp://") }.join(",")}"
    store = ActiveSupport::Cache::NuthatchStore.new(address)
    keys = (0...100).map { |number| "k#{number}" }
    store.write_multi(keys.to_h { |key| [key, key] })
    servers.last.end_by(:KILL)
    found = store.read_multi(*keys)
    assert_includes 10..90, found.length
    assert_equal found.keys, found.values
  ensure
    servers&.each(&:stop)
  end

  # Its client's prefix is of the key, too.
  def test_long_keys_have_room_beside_a_prefix
    prefix = "of one of our services, in Frankfurt: "
    store = ActiveSupport::Cache::NuthatchStore.new(client(:unix, prefix: prefix))
    ["a b" * 50, "x" * 186, "x" * 300].each do |key|
      assert store.write(key, "v")
      assert_equal({ key => "v" }, store.read_multi(key))
    end
    error = assert_raises(Nuthatch::InvalidError) { ActiveSupport::Cache::NuthatchStore.new(client(:unix, prefix: "x" * 150)) }
    assert_includes error.message, "prefix"
  end

  def test_a_client_is_taken_as_it_is
    client = client(:unix, prefix: "of mine ")
    store = ActiveSupport::Cache::NuthatchStore.new(client, expires_in: 5)
    store.write("k", "v")
    assert_same client, store.client
    assert client(:unix, prefix: "") && store.write("k", "v") && client.exist?("k")
    assert_raises(Nuthatch::InvalidError) { ActiveSupport::Cache::NuthatchStore.new("nothing://") }
  end
end
