# frozen_string_literal: true

# Pages and sessions for puma, or any other server of Rack, shared by all its processes:
#
#     nuthatch -s /tmp/nuthatch.sock --shared /tmp/nuthatch.shared &
#     export CACHE='shm:///tmp/nuthatch.shared?or=unix:///tmp/nuthatch.sock' RUBYLIB=clients/ruby/lib
#     puma --workers 4 --preload --bind tcp://127.0.0.1:8080 examples/ruby/config.ru
#
# The first who asks for a page waits for it to be made; those who ask meanwhile wait for that one; all others read it from the
# server's memory. The client is made before the workers are: each of them has connections of its own.

require "digest"
require "nuthatch"
require "rack"
require_relative "sessions"

CACHE = Nuthatch::Client.new(ENV.fetch("CACHE", "tcp://127.0.0.1:11211"))

# A page that takes a while, as one with a database behind it does.
def page(path)
  sleep 0.3
  "<h1>#{Rack::Utils.escape_html(path)}</h1><p>made at #{Time.now.strftime("%T")} by process #{Process.pid}</p>\n"
end

use CacheSessions, cache: CACHE
run(lambda do |environment|
  request = Rack::Request.new(environment)
  request.session["visits"] = request.session["visits"].to_i + 1
  is_made = false
  # Keys are short, paths need not be. In the last two seconds of a page one process makes the next, and nobody waits.
  body = CACHE.fetch("page #{Digest::SHA256.hexdigest(request.path)}", 10, early: 2) do
    is_made = true
    page(request.path)
  end
  headers = {
    "content-type" => "text/html", "x-cache" => is_made ? "made" : "found", "x-process" => Process.pid.to_s,
    "x-visits" => request.session["visits"].to_s
  }
  [200, headers, [body]]
end)
