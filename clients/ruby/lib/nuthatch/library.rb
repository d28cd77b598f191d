# frozen_string_literal: true

require "fiddle"

module Nuthatch
  # libnuthatch_client, and its calls as Fiddle makes them.
  module Library
    SONAME = "libnuthatch_client.so.0"
    VARIABLE = "NUTHATCH_CLIENT_LIBRARY"

    # What calls return: nuthatch_client_status.
    DONE = 0
    NOT_FOUND = 1
    NOT_STORED = 2
    CHANGED = 3
    COMPUTE = 4
    ASK = 5
    INVALID = -2
    NOT_SENT = -3
    NO_REPLY = -4
    REFUSED = -5
    NOT_A_NUMBER = -6

    # Pointers are passed as integers: Fiddle makes an object of each of its own.
    POINTER = Fiddle::TYPE_UINTPTR_T
    SIZE = Fiddle::TYPE_SIZE_T
    INT = Fiddle::TYPE_INT
    UINT32 = -Fiddle::TYPE_INT
    INT64 = Fiddle::TYPE_LONG_LONG
    UINT64 = -Fiddle::TYPE_LONG_LONG
    VOID = Fiddle::TYPE_VOID

    KEY = [POINTER, POINTER, SIZE].freeze
    STORE = [*KEY, POINTER, SIZE, INT64, UINT32].freeze
    MANY = [POINTER, POINTER, SIZE, POINTER].freeze

    # Other threads of Ruby run while these wait.
    WAITING = {
      get_item: [INT, [*KEY, POINTER]],
      set: [INT, STORE],
      add: [INT, STORE],
      replace: [INT, STORE],
      cas: [INT, [*STORE, UINT64]],
      append: [INT, [*KEY, POINTER, SIZE]],
      prepend: [INT, [*KEY, POINTER, SIZE]],
      touch: [INT, [*KEY, INT64]],
      delete: [INT, KEY],
      delete_cas: [INT, [*KEY, UINT64]],
      incr: [INT, [*KEY, UINT64, POINTER]],
      decr: [INT, [*KEY, UINT64, POINTER]],
      flush_all: [INT, [POINTER]],
      lease: [INT, [*KEY, UINT64, INT64, POINTER]],
      get_many_items: [INT, MANY],
      set_many: [INT, MANY],
      delete_many: [INT, MANY]
    }.freeze

    # These wait for nothing. In the middle of them no other thread runs, and none is interrupted.
    SHORT = {
      version: [POINTER, []],
      connect: [INT, [POINTER, POINTER]],
      error: [POINTER, []],
      get_local: [INT, [*KEY, POINTER]],
      value_free: [VOID, [POINTER]]
    }.freeze

    # The calls of one file.
    class Calls
      attr_reader(*WAITING.keys, *SHORT.keys, :destroy)

      def initialize(file)
        library = Fiddle.dlopen(file)
        { false => WAITING, true => SHORT }.each do |need_gvl, calls|
          calls.each do |name, (result, arguments)|
            call = Fiddle::Function.new(library["nuthatch_client_#{name}"], arguments, result, need_gvl: need_gvl)
            instance_variable_set("@#{name}", call)
          end
        end
        # For Fiddle, which calls it when an object goes.
        @destroy = library["nuthatch_client_destroy"]
        @library = library
      end

      # The string at a pointer that a call returned.
      def text(pointer)
        Fiddle::Pointer.new(pointer).to_s
      end

      # The error that a failure is.
      def failure(status)
        words = text(error.call).force_encoding(Encoding::UTF_8)
        words = "the call failed" if words.empty?
        FAILURES.fetch(status, LibraryError).new(words)
      end
    end

    FAILURES = {
      INVALID => InvalidError, NOT_SENT => NotSentError, NO_REPLY => NoReplyError, REFUSED => RefusedError,
      NOT_A_NUMBER => NotANumberError
    }.freeze

    # Without a lock, which the handler of a signal could not take: to load a file twice changes nothing.
    @loaded = {}

    # The calls of the library in this file; or of the one that the environment names; or of the one that the system finds by its
    # name.
    def self.load(file)
      file = File.path(file || ENV.fetch(VARIABLE, SONAME))
      # For dlopen that would be this program.
      raise InvalidError, "the name of the library's file is empty" if file.empty?

      @loaded[file] ||= Calls.new(file)
    rescue TypeError, ArgumentError, EncodingError => e
      raise InvalidError, "the library's file: #{e.message}"
    rescue Fiddle::DLError => e
      raise LibraryError, "#{e.message}: see \"Setting up\" in README.md"
    end
  end
end
