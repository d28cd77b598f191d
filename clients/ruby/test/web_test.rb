# frozen_string_literal: true

require_relative "helper"

# The example, in the processes of puma: their client was made before they were.
class WebTest < Minitest::Test
  EXAMPLE = File.expand_path("../../../examples/ruby/config.ru", __dir__)

  def setup
    skip "puma or rack is not installed" unless system("ruby", "-e", 'require "puma"; require "rack"', err: File::NULL)
    @cache = Server.new(:unix)
    @port = Server.free_port
    @log = "#{@cache.folder}/web"
    environment = { "CACHE" => "#{@cache.address(:shm)}?or=#{@cache.address(:unix)}", "RUBYLIB" => $LOAD_PATH.join(":") }
    words = %W[--quiet --workers 4 --threads 2:2 --preload --bind tcp://127.0.0.1:#{@port} --environment production]
    @web = Process.spawn(environment, "puma", *words, EXAMPLE, chdir: @cache.folder, %i[out err] => @log)
    Wait.for("the web server") do
      raise "it ended: #{File.read(@log)}" if Process.wait(@web, Process::WNOHANG)

      ask("/ready")
    rescue SystemCallError
      false
    end
  end

  def teardown
    if @web
      Process.kill(:TERM, @web)
      Process.wait(@web)
    end
    @cache&.stop
  end

  # Headers, by their names, and the body.
  def ask(path, cookie = nil)
    socket = TCPSocket.new("127.0.0.1", @port)
    socket.write("GET #{path} HTTP/1.0\r\n#{"Cookie: #{cookie}\r\n" if cookie}\r\n")
    head, body = socket.read.split("\r\n\r\n", 2)
    assert_match(%r{\AHTTP/1.\d 200}, head, File.read(@log))
    [head.scan(/^([\w-]+): (.*?)\r?$/).to_h { |name, value| [name.downcase, value] }, body]
  ensure
    socket&.close
  end

  def test_one_page_is_made_for_all_processes
    answers = Array.new(8) { Thread.new { ask("/page?query") } }.map(&:value)
    made = answers.map { |headers, _| headers["x-cache"] }
    assert_equal({ "made" => 1, "found" => 7 }, made.tally)
    assert_equal 1, answers.map(&:last).uniq.length
    assert_match(/made at .* by process \d+/, answers.first.last)
  end

  def test_processes_share_sessions
    headers, = ask("/")
    cookie = headers.fetch("set-cookie")[/\A[^;]+/]
    processes = [headers["x-process"]]
    visits = 1
    Wait.for("a visit to another process") do
      headers, = ask("/", cookie)
      visits += 1
      assert_equal visits.to_s, headers["x-visits"]
      processes.push(headers["x-process"]).uniq.length > 1
    end
    # A name that somebody has made up is none.
    headers, = ask("/", "rack.session=#{"a" * 64}")
    assert_equal "1", headers["x-visits"]
    refute_includes headers.fetch("set-cookie"), "a" * 64
  end

  def test_the_cache_may_end
    @cache.end_by(:KILL)
    headers, = ask("/page")
    assert_equal ["made", "1"], [headers["x-cache"], headers["x-visits"]]
    @cache.start
    Wait.for("pages that are kept") { ask("/again").first["x-cache"] == "found" }
  end
end
