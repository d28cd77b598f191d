# frozen_string_literal: true

require_relative "helper"
require_relative "scheduler"

# Threads, fibers, exceptions from outside, garbage collection, Ractors.
class ThreadTest < Minitest::Test
  include EachWay

  # Threads that end by an exception are what some tests are about.
  def setup
    @before = Thread.report_on_exception
    Thread.report_on_exception = false
  end

  def teardown
    Thread.report_on_exception = @before
  end

  # Waits for threads that each run a block, and stops them by what they are told.
  def in_threads(count)
    threads = Array.new(count) { |number| Thread.new { yield number } }
    threads.map(&:value)
  ensure
    threads&.each(&:kill)
  end

  by_each_way :threads_share_a_client do |way|
    client = client(way)
    found = in_threads(8) do |number|
      100.times.all? do |round|
        key = "#{number} #{round % 7}"
        value = "#{number} #{round}" * 20
        client.set(key, value)
        client.get(key) == value && client.get_multi(key, "none") == { key => value }
      end
    end
    assert_equal [true] * 8, found
    client.set("n", 0)
    in_threads(8) { 50.times { client.incr("n") } }
    assert_equal 400, client.get("n")
    client.set("list", [])
    in_threads(4) { |number| 10.times { nil until client.cas("list") { |list| list + [number] } } }
    assert_equal({ 0 => 10, 1 => 10, 2 => 10, 3 => 10 }, client.get("list").tally)
  end

  # A thread that computes has its turn for 100 ms, where Ruby is asked.
  def test_reads_of_memory_do_not_wait_for_threads_that_compute
    client = client(:shm)
    client.set("k", "v")
    turns = 0
    stop = false
    computing = Thread.new { turns += 1 until stop }
    Wait.for("another thread") { turns.positive? }
    # Some are at the end of this thread's own turn.
    few = (1..50).count do
      before = turns
      20.times { client.get("k") }
      turns == before
    end
    assert_operator few, :>, 10
  ensure
    stop = true
    computing&.join
  end

  # What another thread changes is what was given, or nothing of it.
  by_each_way :strings_may_change_while_they_are_stored do |way|
    client = client(way)
    value = "a" * 100_000
    stop = false
    changing = Thread.new do
      until stop
        value.replace("b" * 10)
        value.replace("a" * 100_000)
        Thread.pass
      end
    end
    100.times do
      client.set("k", value)
      assert_match(/\A(a{100000}|b{10})\z/, client.get("k"))
      client.set_multi({ "k" => value })
      assert_match(/\A(a{100000}|b{10})\z/, client.get_multi("k")["k"])
    end
  ensure
    stop = true
    changing&.join
  end

  # The same of keys: none is read beyond its end, or is of parts of two.
  by_each_way :keys_may_change_while_they_are_read do |way|
    client = client(way)
    keys = ["a", "b" * 250]
    keys.each { |key| client.set(key, key) }
    key = +"a"
    stop = false
    changing = Thread.new do
      until stop
        keys.each { |other| key.replace(other) }
        Thread.pass
      end
    end
    300.times do
      assert_includes keys, client.get(key)
      client.get_multi(key, key).each_value { |value| assert_includes keys, value }
    end
  ensure
    stop = true
    changing&.join
  end

  by_each_way :what_a_close_finds_under_way_ends_first do |way|
    20.times do
      client = client(way)
      client.set("k", "v")
      threads = Array.new(4) do
        Thread.new do
          loop { raise "another value" unless client.get("k") == "v" && client.get_multi("k") == { "k" => "v" } }
        rescue Nuthatch::ClosedError
          :closed
        end
      end
      Thread.pass
      client.close
      assert_equal [:closed] * 4, threads.map(&:value)
    end
  end

  # A thread's exceptions may come at any moment: what was got is freed, and what a call had is there for the next one.
  by_each_way :exceptions_from_other_threads_leave_nothing, %i[unix shm] do |way|
    client = client(way)
    client.set("k", "x" * 900_000)
    50.times { interrupted(client) }
    before = resident
    150.times { interrupted(client) }
    # One value for each of them would be 135 MB.
    assert_operator resident - before, :<, 60 << 20
    assert_equal 900_000, client.get("k").length
    slots = client.instance_variable_get(:@native).instance_variable_get(:@slots)
    assert_operator slots.length, :<, 20
    client.close
  end

  # A thread that gets until it is ended.
  def interrupted(client)
    thread = Thread.new do
      loop do
        client.get("k")
        client.get_item("k")
        client.get_multi("k", "k")
      end
    rescue RuntimeError => e
      e.message
    end
    sleep rand * 0.002
    rand < 0.5 ? thread.kill : thread.raise("from outside")
    # Nil: ended. A thread that had not begun yet raises it.
    assert_includes [nil, "from outside"], thread.value
  rescue RuntimeError => e
    assert_equal "from outside", e.message
  end

  # Bytes of this process that are in use, after what is free has been given back.
  def resident
    GC.start
    TRIM&.call(0)
    File.read("/proc/self/statm").split[1].to_i * 4096
  end

  # Of glibc alone.
  TRIM = begin
    Fiddle::Function.new(Fiddle.dlopen(nil)["malloc_trim"], [Fiddle::TYPE_SIZE_T], Fiddle::TYPE_INT)
  rescue Fiddle::DLError
    nil
  end

  by_each_way :what_is_got_is_freed, %i[unix shm] do |way|
    client = client(way)
    client.set("k", "x" * 400_000)
    client.set("l", "x" * 400_000)
    calls = lambda do
      client.get("k")
      client.get_item("k")
      client.get_multi("k", "l", "none")
      client.exist?("k")
      client.fetch("k") { flunk }
    end
    50.times { calls.call }
    before = resident
    300.times { calls.call }
    # What one of these calls left would be 120 MB.
    assert_operator resident - before, :<, 60 << 20
  end

  by_each_way :a_client_that_nobody_has_ends_its_connections do |way|
    server = EachWay.server(way)
    connections = -> { server.statistic("curr_connections") }
    few = connections.call + 5
    Thread.new { 50.times { Nuthatch::Client.new(EachWay.address(way)).set("k", "v") } }.join
    Wait.for("the end of connections") do
      GC.start
      connections.call <= few
    end
    client = Nuthatch::Client.new(EachWay.address(way))
    # A finalizer calls it.
    done = []
    20.times { ObjectSpace.define_finalizer(Object.new, proc { done << client.set("finalized", "v") }) }
    Wait.for("a finalizer") do
      GC.start
      client.get("k") && !done.empty?
    end
    assert_equal "v", client.get("finalized")
  end

  # Who computes is a fiber of the same thread, which has to go on.
  by_each_way :fibers_wait_for_each_other do |way|
    client = client(way)
    made = 0
    found = []
    thread = Thread.new do
      Fiber.set_scheduler(Scheduler.new)
      3.times do
        Fiber.schedule do
          found << client.fetch("k", 60, lease: 2) do
            sleep 0.05
            made += 1
          end
        end
      end
    end
    thread.join
    assert_equal [1, 1, 1], found
  end

  # Its wait goes on, and may end with the task to compute.
  by_each_way :a_fiber_that_is_ended_leaves_the_task_to_the_next_one do |way|
    client = client(way)
    before = Thread.list
    assert_raises(RuntimeError) do
      client.fetch("k", 60, lease: 60) do
        assert_equal "from outside", Thread.new { ended_fiber(client) }.value
        raise "no database"
      end
    end
    (Thread.list - before).each(&:join)
    refute client.exist?("k")
  end

  # What a fiber is told while it waits for another one that computes.
  def ended_fiber(client)
    Fiber.set_scheduler(Scheduler.new)
    told = nil
    waiting = Fiber.schedule do
      client.fetch("k", 60, lease: 60) { flunk "computed" }
    rescue RuntimeError => e
      told = e.message
    end
    waiting.raise("from outside")
    told
  end

  # Objects that move while calls wait.
  by_each_way :memory_may_be_compacted, %i[unix shm] do |way|
    skip "Ruby has no compaction here" unless GC.respond_to?(:compact)
    begin
      GC.compact
    rescue NotImplementedError
      skip "Ruby has no compaction here"
    end
    client = client(way)
    stop = false
    compacting = Thread.new do
      until stop
        GC.compact
        sleep 0.01
      end
    end
    in_threads(3) do |number|
      40.times do |round|
        value = "#{number} #{round}"
        client.set(value, value)
        client.set_multi({ "a#{value}" => value, "b#{value}" => value })
        found = client.get_multi("a#{value}", "b#{value}", value).values.uniq
        raise "#{found} instead of #{value}" unless found == [value] && client.get(value) == value
      end
    end
  ensure
    stop = true
    compacting&.join
  end

  def test_ractors_are_told_that_there_is_none
    address = EachWay.address(:unix)
    client = client(:unix)
    client.set("k", "v")
    before = Warning[:experimental]
    Warning[:experimental] = false
    error = assert_raises(Ractor::RemoteError) do
      Ractor.new(address) { |of| Nuthatch::Client.new(of) }.take
    end
    assert_kind_of Nuthatch::LibraryError, error.cause
    assert_includes error.cause.message, "Ractor"
    # Neither a copy nor the client itself goes to another one.
    assert_raises(TypeError) { Ractor.new(client) { |of| of.get("k") } }
    assert_raises(Ractor::Error, TypeError) { Ractor.make_shareable(client) }
    assert_equal "v", client.get("k")
  ensure
    Warning[:experimental] = before
  end
end
