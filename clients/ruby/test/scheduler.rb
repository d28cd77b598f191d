# frozen_string_literal: true

# Runs the fibers of a thread in turn, as much as tests of waiting need: what reads and writes, blocks.
class Scheduler
  def initialize
    @ready = Thread::Queue.new
    @blocked = {}
  end

  # Called at the end of the thread.
  def close
    resume(@ready.pop) until @ready.empty? && @blocked.empty?
  end

  def fiber(&block)
    Fiber.new(blocking: false, &block).tap(&:resume)
  end

  def block(_blocker, timeout = nil)
    fiber = Fiber.current
    @blocked[fiber] = true
    later(fiber, timeout) if timeout
    Fiber.yield
  ensure
    @blocked.delete(fiber)
  end

  # Of other threads, too.
  def unblock(_blocker, fiber)
    @ready.push(fiber)
  end

  def kernel_sleep(seconds = nil)
    block(:sleep, seconds)
  end

  def io_wait(_io, events, _timeout = nil)
    events
  end

  private

  def later(fiber, seconds)
    Thread.new do
      sleep seconds
      @ready.push(fiber)
    end
  end

  def resume(fiber)
    fiber.resume if @blocked.include?(fiber)
  end
end
