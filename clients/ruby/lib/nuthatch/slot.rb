# frozen_string_literal: true

require "fiddle"

module Nuthatch
  # Memory of one call: a value that the library writes, and a copy of the key. No call has it while another one does, because
  # threads, handlers of signals and finalizers may call in the middle of a call.
  class Slot
    # nuthatch_client_value: bytes, length, number for cas, flags, seconds that are left.
    VALUE = "JJQLx4q"
    VALUE_SIZE = 40
    # What a key may have, with its prefix.
    KEY_MAX = 250

    # The addresses of the value, the key, and a number.
    attr_reader :value, :key, :number
    # The thread whose call has it; nil if none has.
    attr_accessor :thread

    def initialize
      @number_at = VALUE_SIZE + KEY_MAX + 6
      @memory = Fiddle::Pointer.malloc(@number_at + 8, Fiddle::RUBY_FREE)
      clear
      @value = @memory.to_i
      @key = @value + VALUE_SIZE
      @number = @value + @number_at
    end

    # Whether a call that is under way has it. Threads that ended without giving it back have no call: those that a child of a fork
    # does not have, say.
    def used?
      thread = @thread
      !thread.nil? && thread.alive?
    end

    # A copy: nobody changes it while the library reads it.
    def key=(key)
      @memory[VALUE_SIZE, key.bytesize] = key
    end

    # The value's bytes and flags; nil if there is none.
    def read
      data, length, flags = @memory[0, 28].unpack("JJx8L")
      [Fiddle::Pointer.new(data)[0, length], flags] unless data.zero?
    end

    # The value's bytes, its number for cas, its flags and the seconds that are left; the bytes are nil if there is none.
    def read_item
      data, length, cas, flags, left = @memory[0, VALUE_SIZE].unpack(VALUE)
      [data.zero? ? nil : Fiddle::Pointer.new(data)[0, length], cas, flags, left]
    end

    # Of a call that says in the value whether there is a task: none yet.
    def clear
      @memory[0, VALUE_SIZE] = "\0" * VALUE_SIZE
    end

    # The number for cas where there is no value; else 0.
    def place
      data, cas = @memory[0, 24].unpack("Jx8Q")
      data.zero? ? cas : 0
    end

    def read_number
      @memory[@number_at, 8].unpack1("Q")
    end
  end
end
