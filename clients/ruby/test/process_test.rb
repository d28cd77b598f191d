# frozen_string_literal: true

require_relative "helper"
require "timeout"

# Several processes: children of a fork, one that computes for all, and signals.
class ProcessTest < Minitest::Test
  include EachWay

  # Runs a block in children, and fails if it is not true in all of them.
  def in_children(count)
    children = (0...count).map do |number|
      fork do
        is_right = begin
          yield number
        rescue Exception => e # rubocop:disable Lint/RescueException
          warn e.full_message
        end
        # Without what the parent has to do at its end.
        exit!(is_right == true)
      end
    end
    children.each { |child| assert_predicate Process.wait2(child).last, :success? }
  end

  by_each_way :a_child_has_its_own_connections do |way|
    client = client(way)
    client.set("parent", "v")
    calls = lambda do |who|
      300.times do |round|
        key = "#{who} #{round % 10}"
        client.set(key, "#{who} #{round}")
        raise key unless client.get(key) == "#{who} #{round}" && client.get_multi(key) == { key => "#{who} #{round}" }
      end
      client.get("parent") == "v"
    end
    # All at once, each with the object that it has from its parent.
    parent = Thread.new { calls.call("parent itself") }
    in_children(3) { |number| calls.call("child #{number}") }
    assert parent.value
    assert_equal "child 2 299", client.get("child 2 9")
  end

  by_each_way :a_child_of_a_thread_that_calls_works do |way|
    client = client(way)
    client.set("k", "v")
    stop = false
    threads = Array.new(4) { Thread.new { client.set("k", "v") && client.get_multi("k", "l") until stop } }
    5.times { in_children(2) { 20.times.all? { client.get("k") == "v" && client.set("k", "v") } } }
    stop = true
    threads.each(&:join)
    assert_equal "v", client.get("k")
  end

  # The slots of calls that the parent's threads had do not come back in the child.
  by_each_way :a_child_of_a_thread_that_calls_closes_at_once, %i[unix shm] do |way|
    client = client(way)
    stop = false
    threads = Array.new(4) { Thread.new { client.exist?("k") until stop } }
    native = client.instance_variable_get(:@native)
    5.times do
      Wait.for("a call under way") { native.instance_variable_get(:@idle).length < native.instance_variable_get(:@slots).length }
      in_children(1) do
        client.set("child", "v")
        client.close
        native.instance_variable_get(:@handle).freed?
      end
    end
  ensure
    stop = true
    threads&.each(&:join)
  end

  # Ruby's own end of a process, with all finalizers, and a client that is closed there.
  by_each_way :a_child_may_close_its_client_and_end do |way|
    client = client(way)
    client.set("k", "v")
    [-> {}, -> { client.close }, -> { client.get("k") && client.close }, -> { client.get("k") }].each do |call|
      read, write = IO.pipe
      child = fork do
        # What Minitest has for the end of its process is not for this one.
        Minitest.class_variable_set(:@@after_run, [])
        at_exit { write.write("ended") }
        call.call
        exit
      end
      write.close
      assert_predicate Process.wait2(child).last, :success?
      assert_equal "ended", read.read
    end
    assert_equal "v", client.get("k")
  end

  by_each_way :one_process_computes_for_all do |way|
    client = client(way)
    client.set("computed", 0)
    in_children(4) do
      threads = Array.new(2) do
        Thread.new do
          (0...5).all? do |number|
            value = client.fetch("k#{number}", 60) do
              client.incr("computed")
              sleep 0.05
              { "number" => number }
            end
            value == { "number" => number }
          end
        end
      end
      threads.all?(&:value)
    end
    assert_equal 5, client.get("computed")
  end

  by_each_way :a_computation_that_fails_lets_the_next_one_compute do |way|
    client = client(way)
    assert_raises(RuntimeError) { client.fetch("k", 60, lease: 60) { raise "no database" } }
    refute client.exist?("k")
    assert_raises(Nuthatch::SerializationError) { client.fetch("k", 60, lease: 60) { Object.new } }
    refute client.exist?("k")
    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { client.fetch("k", 60, lease: 60) { sleep } } }
    refute client.exist?("k")
    assert_equal :thrown, catch(:out) { client.fetch("k", 60, lease: 60) { throw :out, :thrown } }
    refute client.exist?("k")
    Thread.new { client.fetch("k", 60, lease: 60) { Thread.current.kill } }.join
    refute client.exist?("k")
    assert_nil client.fetch("k", 60, lease: 60) { nil }
    assert_nil client.fetch("k", 60) { flunk "computed again" }
    # Who computes dies: the others wait for the time of the lease.
    child = fork { client.fetch("d", 60, lease: 1) { Process.kill(:KILL, Process.pid) } }
    assert_predicate Process.wait2(child).last, :signaled?
    assert_equal "v", client.fetch("d", 60) { "v" }
  end

  # An exception from outside comes when the wait is over: by then this one may have been chosen to compute.
  by_each_way :who_is_ended_while_it_waits_leaves_the_task_to_the_next_one do |way|
    client = client(way)
    waiting = nil
    assert_raises(RuntimeError) do
      client.fetch("k", 60, lease: 60) do
        waiting = Thread.new { client.fetch("k", 60, lease: 60) { flunk "computed" } }
        Wait.for("a call under way") { waiting.stop? }
        waiting.kill
        raise "no database"
      end
    end
    waiting.join
    refute client.exist?("k")
  end

  by_each_way :a_value_is_computed_before_it_expires do |way|
    client = client(way)
    client.set("early", "old", 20)
    assert_equal "old", client.fetch("early", 60, early: 10) { "new" }
    # One has the task, and the others have the old value meanwhile.
    value = client.fetch("early", 60, early: 30) do
      assert_equal "old", client.fetch("early", 60, early: 30) { "another" }
      "new"
    end
    assert_equal "new", value
    assert_equal "new", client.fetch("early", 60, early: 30) { "newest" }
    # If it fails, the old one stays.
    assert_raises(RuntimeError) { client.fetch("early", 60, early: 90) { raise "no database" } }
    assert_equal "new", client.get("early")
  end

  def test_a_handler_of_a_signal_may_make_a_client
    client(:unix).set("k", "v")
    address = EachWay.address(:unix)
    handled = Queue.new
    before = trap(:USR1) { handled.push(Nuthatch::Client.new(address).get("k")) }
    Process.kill(:USR1, Process.pid)
    assert_equal "v", handled.pop
  ensure
    trap(:USR1, before) if before
  end

  by_each_way :signals_may_call_in_the_middle_of_a_call do |way|
    client = client(way)
    client.set("k", "mine")
    client.set("other", "another")
    wrong = nil
    handled = Queue.new
    before = trap(:USR1) do
      wrong ||= "get" unless client.get("other") == "another"
      wrong ||= "get_multi" unless client.get_multi("other", "none") == { "other" => "another" }
      handled.push(true)
    end
    # Each when the last one was handled: else no call would end. In the middle of a call, because calls wait without the lock.
    sender = Thread.new do
      300.times do
        Process.kill(:USR1, Process.pid)
        handled.pop
      end
    end
    while sender.alive?
      assert_equal "mine", client.get("k")
      assert_equal({ "k" => "mine" }, client.get_multi("k"))
      assert_equal "mine", client.get_item("k").value
      assert client.set("k", "mine")
    end
    assert_nil wrong
  ensure
    trap(:USR1, before) if before
  end
end
