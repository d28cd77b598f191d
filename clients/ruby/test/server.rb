# frozen_string_literal: true

require "fileutils"
require "socket"
require "tmpdir"

# Waits for what a test needs, as long as a slow machine may need.
module Wait
  BOUND = 60

  def self.for(what)
    last = now + BOUND
    until (found = yield)
      raise "no #{what} within #{BOUND} s" if now > last

      sleep 0.005
    end
    found
  end

  def self.now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

# A server with sockets of its own: Nuthatch at unix sockets (and a socket for its memory) or at TCP, or memcached. NUTHATCH in the
# environment is its program, and MEMCACHED memcached's.
class Server
  attr_reader :folder

  def self.memcached
    ENV.fetch("MEMCACHED", "memcached")
  end

  # Whether there is one that knows the meta protocol.
  def self.memcached?
    @found ||= IO.popen([memcached, "--version"], &:read)[/\d+\.\d+/]
    @found.to_f >= 1.6
  rescue SystemCallError
    false
  end

  def self.free_port
    TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
  end

  # unix, tcp or memcached
  def initialize(kind)
    @kind = kind
    @folder = Dir.mktmpdir("nuthatch")
    @port = Server.free_port if kind == :tcp
    start
  end

  # unix, shm, tcp or memcached
  def address(way)
    socket = "unix://#{@folder}/socket"
    case way
    # Without a second way, which a client would take unseen where it cannot read this server's memory.
    when :shm then "shm://#{@folder}/shared"
    when :tcp then "tcp://127.0.0.1:#{@port}"
    else socket
    end
  end

  def start
    FileUtils.rm_f(["#{@folder}/socket", "#{@folder}/shared"])
    @process = Process.spawn(*command, %i[out err] => "#{@folder}/log")
    Wait.for("server") do
      raise "the server ended: #{File.read("#{@folder}/log")}" if Process.wait(@process, Process::WNOHANG)

      connect.close
      UNIXSocket.new("#{@folder}/shared").close if @kind == :unix
      true
    rescue SystemCallError
      false
    end
  end

  def connect
    @port ? TCPSocket.new("127.0.0.1", @port) : UNIXSocket.new("#{@folder}/socket")
  end

  # A number of its statistics.
  def statistic(name)
    connection = connect
    connection.write("stats\r\nquit\r\n")
    connection.read[/STAT #{name} (\d+)/, 1].to_i
  ensure
    connection&.close
  end

  # Stores bytes under any flags.
  def store(key, flags, bytes)
    connection = connect
    connection.write("set #{key} #{flags} 0 #{bytes.bytesize}\r\n#{bytes}\r\nquit\r\n")
    raise "not stored" unless connection.read == "STORED\r\n"
  ensure
    connection&.close
  end

  def signal(name)
    Process.kill(name, @process)
  end

  # Has it answer nothing until it is sent CONT.
  def suspend
    signal(:STOP)
    Wait.for("stop of the server") { File.read("/proc/#{@process}/stat").include?(") T ") }
  end

  # Ends it, and waits for its end.
  def end_by(name)
    signal(name)
    # If a test has stopped it.
    signal(:CONT)
    Process.wait(@process)
    @process = nil
  end

  def stop
    end_by(:TERM) if @process
    FileUtils.rm_rf(@folder)
  end

  private

  def command
    user = Process.uid.zero? ? %w[-u root] : []
    return [Server.memcached, "-s", "#{@folder}/socket", "-m", "64", *user] if @kind == :memcached

    sockets = @port ? ["-l", "127.0.0.1", "-p", @port.to_s] : ["-s", "#{@folder}/socket", "--shared", "#{@folder}/shared"]
    [ENV.fetch("NUTHATCH"), *sockets, "-t", "1", "-m", "64", *user]
  end
end
