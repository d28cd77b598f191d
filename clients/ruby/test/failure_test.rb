# frozen_string_literal: true

require_relative "helper"

# Servers that are dead, end, are silent or lie.
class FailureTest < Minitest::Test
  include EachWay

  # Pauses are short, because servers begin again.
  SOON = "retry_least_ms=1&retry_most_ms=20"

  def attempt
    yield
  rescue Nuthatch::Error => e
    e.class
  end

  def test_a_dead_server_is_told
    client = Nuthatch::Client.new("unix:///nowhere/socket")
    [
      -> { client.get("k") }, -> { client.exist?("k") }, -> { client.get_item("k") }, -> { client.get_multi("k") },
      -> { client.set("k", "v") }, -> { client.set_multi({ "k" => "v" }) }, -> { client.incr("k", default: 1) },
      -> { client.delete("k") }, -> { client.delete_multi("k") }, -> { client.touch("k") }, -> { client.flush },
      -> { client.append("k", "v") }, -> { client.cas("k") { flunk } }, -> { client.set_cas("k", "v", 1) }
    ].each do |call|
      error = assert_raises(Nuthatch::NotSentError) { call.call }
      assert_includes error.message, "is down"
      assert_predicate error.message, :valid_encoding?
    end
    assert_equal "v", client.fetch("k") { "v" }
    assert_equal "of the computation", assert_raises(RuntimeError) { client.fetch("k") { raise "of the computation" } }.message
    # Nor is a value needed that has a form.
    assert_equal :symbol, client.fetch("k") { :symbol }
    client.close
  end

  by_each_way :a_server_that_is_killed_and_begins_again_is_used_again do |way|
    server = Server.new(way == :shm ? :unix : way)
    address = server.address(way)
    client = Nuthatch::Client.new("#{address}#{address.include?("?") ? "&" : "?"}#{SOON}")
    client.set("k", "old")
    assert_equal "old", client.get("k")
    server.end_by(:KILL)
    Wait.for("failure of a call") { [Nuthatch::NotSentError, Nuthatch::NoReplyError].include?(attempt { client.set("k", "v") }) }
    server.start
    Wait.for("call that succeeds") { attempt { client.set("k", "v") } == true }
    Wait.for("new value") { attempt { client.get("k") } == "v" }
  ensure
    server&.stop
  end

  # A function is told what failed, and the call returns what the other server has.
  def test_of_many_keys_those_of_other_servers_are_there
    servers = [Server.new(:tcp), Server.new(:tcp)]
    client = Nuthatch::Client.new("tcp://#{servers.map { |server| server.address(:tcp).delete_prefix("tcp://") }.join(",")}")
    values = (0...100).to_h { |number| ["k#{number}", number] }
    client.set_multi(values)
    servers.last.end_by(:KILL)
    failures = []
    found = client.get_multi(values.keys, failed: failures.method(:push))
    assert_includes 10..90, found.length
    assert_operator values, :>=, found
    assert_includes [[Nuthatch::NotSentError], [Nuthatch::NoReplyError]], failures.map(&:class)
    assert_raises(Nuthatch::NotSentError) { client.get_multi(values.keys) }
    # What is no failure of a server is raised all the same.
    assert_raises(Nuthatch::InvalidError) { client.get_multi(nil, failed: ->(_) { flunk }) }
    client.close
    assert_raises(Nuthatch::ClosedError) { client.get_multi("k", failed: ->(_) { flunk }) }
  ensure
    servers&.each(&:stop)
  end

  def test_a_silent_server_is_told
    server = Server.new(:tcp)
    client = Nuthatch::Client.new("#{server.address(:tcp)}?timeout_ms=50")
    client.set("k", "v")
    server.suspend
    assert_includes assert_raises(Nuthatch::NoReplyError) { client.set("k", "new") }.message, "may have been"
    assert_equal "computed", client.fetch("k") { "computed" }
    server.signal(:CONT)
    Wait.for("change") { attempt { client.get("k") } == "new" }
  ensure
    server&.stop
  end

  # The server is in this process: it answers only if its threads run while a call waits.
  def test_other_threads_run_while_a_call_waits
    asked = Queue.new
    answer = lambda do |connection|
      greet(connection)
      loop { asked.push([connection, connection.readpartial(4096)]) }
    end
    with_fake(answer) do |address|
      client = Nuthatch::Client.new("#{address}?timeout_ms=60000")
      [-> { client.get("k") }, -> { client.get_item("k") }, -> { client.get_multi("k")["k"] }].each do |call|
        waiting = Thread.new { call.call }
        connection, request = asked.pop
        assert_match(/\Amg k /, request)
        100.times { Thread.pass }
        assert_predicate waiting, :alive?
        connection.write("EN\r\n")
        assert_nil waiting.value
      end
      # One that is ended waits for the end of its call.
      waiting = Thread.new { client.get("k") }
      connection, = asked.pop
      waiting.kill
      100.times { Thread.pass }
      assert_predicate waiting, :alive?
      connection.write("EN\r\n")
      assert_nil waiting.value
    end
  end

  # As the server answers the first words of a connection.
  def greet(connection)
    assert_equal "mn\r\n", connection.readpartial(4096)
    connection.write("MN\r\n")
  end

  # A server at a socket of its own, whose connections are each given to a function.
  def with_fake(answer)
    Dir.mktmpdir("nuthatch") do |folder|
      socket = UNIXServer.new("#{folder}/socket")
      threads = []
      accepting = Thread.new do
        Thread.current.report_on_exception = false
        loop do
          connection = socket.accept
          threads << Thread.new do
            Thread.current.report_on_exception = false
            answer.call(connection)
          end
        end
      end
      yield "unix://#{folder}/socket"
    ensure
      [accepting, *threads].compact.each(&:kill).each { |thread| attempt_join(thread) }
      socket&.close
    end
  end

  def attempt_join(thread)
    thread.join
  rescue SystemCallError, IOError
    # Its connection has ended.
  end

  # The first words of a connection are answered as they should, or with the lie, too.
  LIES = [
    "VA 3 f0 c1 t-1 O9\r\nabc\r\n", "VA 9 f0 c1 t-1 O1\r\nabc\r\n", "VA 3 f99999999999 c1 t-1 O1\r\nabc\r\n",
    "VA 3 f0\r\nabc\r\n", "HD\r\n", "garbage\r\n", "x" * 5000, "VA 99999999999 f0\r\n", "VA 5 f0 O123\r\nwrong\r\n", "",
    "VA 3 f0 O0\r\nabcdefgh", "\0" * 100, "END\r\n" * 50, "VA -1 f0\r\n\r\n"
  ].freeze

  # The kind of fault is a reply that is none, or is to something else.
  def test_a_lying_server_gives_no_value
    LIES.product([true, false]).each do |lie, is_greeted|
      answer = lambda do |connection|
        greet(connection) if is_greeted
        connection.readpartial(4096)
        connection.write(lie)
        connection.close
      end
      with_fake(answer) do |address|
        client = Nuthatch::Client.new("#{address}?timeout_ms=2000&#{SOON}")
        [-> { client.get("k") }, -> { client.get_multi("k", "l") }, -> { client.get_item("k") }].each do |call|
          error = assert_raises(Nuthatch::Error, lie[0, 20]) { call.call }
          refute_empty error.message
        end
        assert_equal "computed", client.fetch("k") { "computed" }
      end
    end
  end

  # It takes requests, and has closed its side; or answers, and closes that.
  def test_a_half_closed_connection_is_told
    [:close_write, :close_read].each do |half|
      answer = lambda do |connection|
        greet(connection)
        connection.readpartial(4096)
        connection.public_send(half)
        sleep
      end
      with_fake(answer) do |address|
        client = Nuthatch::Client.new("#{address}?timeout_ms=200&#{SOON}")
        assert_includes [Nuthatch::NoReplyError, Nuthatch::NotSentError], attempt { client.set("k", "v") }
        assert_includes [Nuthatch::NoReplyError, Nuthatch::NotSentError], attempt { client.get("k") }
      end
    end
  end

  # A server's bytes that are no value, under flags that are known.
  by_each_way :bytes_that_are_no_value_are_told do |way|
    client = client(way)
    marshal = Nuthatch::Client.new(EachWay.address(way), codec: :marshal)
    {
      1 << 5 => ["", "{", "[NaN]", "nul", "\xFF", "[" * 1000], 1 << 8 => ["", "x", "\x04\x08o:\x09Gone\x00", "\x04\x08/\x06(\x00", "\x04\x08U:\x0DRational[\x07i\x06i\x00"],
      2 => ["", "x", "1" * 5000, "--1"], 77 => ["x"]
    }.each do |flags, values|
      values.each do |bytes|
        EachWay.server(way).store("k", flags, bytes)
        reader = flags == 1 << 8 ? marshal : client
        error = assert_raises(Nuthatch::SerializationError, Nuthatch::NotANumberError, bytes[0, 10]) { reader.get("k") }
        refute_empty error.message
        assert client.exist?("k")
      end
    end
    client.set("k", "v")
    assert_equal "v", client.get("k")
  end
end
