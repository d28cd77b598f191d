# frozen_string_literal: true

require "minitest/autorun"
require "nuthatch"
require_relative "server"

# Those of a real server; with memcached, where it is installed.
module EachWay
  SERVERS = Hash.new { |servers, kind| servers[kind] = Server.new(kind) }
  Minitest.after_run { SERVERS.each_value(&:stop) }
  WAYS = %i[unix shm tcp memcached].select { |way| way != :memcached || Server.memcached? }.freeze

  def self.included(tests)
    tests.extend(Definitions)
  end

  # A client of an empty server.
  def client(way, **options)
    client = Nuthatch::Client.new(EachWay.address(way), **options)
    client.flush
    client
  end

  def self.server(way)
    SERVERS[way == :shm ? :unix : way]
  end

  # On a busy machine a call may take longer than a program would wait.
  def self.address(way)
    "#{server(way).address(way)}?timeout_ms=60000"
  end

  module Definitions
    # A test for each way to a server.
    def by_each_way(name, ways = WAYS, &body)
      ways.each { |way| define_method("test_#{name}_by_#{way}") { instance_exec(way, &body) } }
    end
  end
end
