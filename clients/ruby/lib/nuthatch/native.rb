# frozen_string_literal: true

require_relative "library"
require_relative "slot"
require_relative "many"

module Nuthatch
  # The library's calls, with bytes and flags for values.
  #
  # The library's client is destroyed once: when this is closed and no call is under way any more, or when this object goes. A call
  # has a slot, with its thread in it, before it looks whether the client is there, and gives it back as its last step. So who sees
  # that no slot is used after a close, knows that nobody uses the client.
  class Native
    include Many

    # Fiddle works in the main one only.
    RACTOR = Ractor.current

    def initialize(address, file)
      raise LibraryError, "Fiddle calls no library from a Ractor: use threads, or a client in the main Ractor" unless Ractor.current == RACTOR
      raise InvalidError, "an address is a string without zero bytes" unless address.is_a?(String) && !address.b.include?("\0")

      @calls = Library.load(file)
      # All slots there are, and those that no call has. Their methods are each one step for other threads.
      @slots = []
      @idle = []
      connect(address)
    end

    def version
      @calls.text(@calls.version.call)
    end

    # Bytes and flags; nil if there are none. What the server's memory says, is read without giving other threads their turn: Ruby
    # would give it back after a while that is a thousand times as long.
    def get(key)
      lent(key) do |client, slot|
        status = nil
        begin
          status = @calls.get_local.call(client, slot.key, key.bytesize, slot.value) if @has_memory
          status = @calls.get_item.call(client, slot.key, key.bytesize, slot.value) if status.nil? || status == Library::ASK
          slot.read if found(status) == Library::DONE
        ensure
          # An exception from another thread comes when the call is over: there may be a value then.
          @calls.value_free.call(slot.value) unless status == Library::NOT_FOUND
        end
      end
    end

    # The same, if the server's memory says it; else nil.
    def get_local(key)
      return unless @has_memory

      lent(key) do |client, slot|
        slot.read if done?(@calls.get_local.call(client, slot.key, key.bytesize, slot.value))
      ensure
        @calls.value_free.call(slot.value)
      end
    end

    # Bytes, number for cas, flags, seconds that are left or -1.
    def get_item(key)
      lent(key) do |client, slot|
        status = found(@calls.get_item.call(client, slot.key, key.bytesize, slot.value))
        slot.read_item if status == Library::DONE
      ensure
        @calls.value_free.call(slot.value)
      end
    end

    # DONE or COMPUTE, and the same as get_item.
    def lease(key, lease, early)
      lent(key) do |client, slot|
        slot.clear
        status = found(@calls.lease.call(client, slot.key, key.bytesize, lease, early, slot.value))
        item = [status, *slot.read_item]
      ensure
        # An exception from another thread comes when the call is over. Then nobody computes, and those that wait need not.
        place = item ? 0 : slot.place
        @calls.value_free.call(slot.value)
        @calls.delete_cas.call(client, slot.key, key.bytesize, place) unless place.zero?
      end
    end

    # Stores bytes by the call of this name: set, add or replace. False: not stored.
    def store(name, key, bytes, lifetime, flags)
      lent(key) do |client, slot|
        data = Fiddle::Pointer[bytes]
        call = @calls.public_send(name)
        done?(call.call(client, slot.key, key.bytesize, data.to_i, bytes.bytesize, lifetime, flags))
      end
    end

    # Stores bytes if the item has this number still: DONE, CHANGED or NOT_FOUND.
    def cas(key, bytes, lifetime, flags, number)
      lent(key) do |client, slot|
        data = Fiddle::Pointer[bytes]
        found(@calls.cas.call(client, slot.key, key.bytesize, data.to_i, bytes.bytesize, lifetime, flags, number))
      end
    end

    # Puts bytes behind the value or in front of it: append or prepend. False: there is none.
    def extend(name, key, bytes)
      lent(key) do |client, slot|
        data = Fiddle::Pointer[bytes]
        done?(@calls.public_send(name).call(client, slot.key, key.bytesize, data.to_i, bytes.bytesize))
      end
    end

    # Adds to a number or subtracts from it: incr or decr. Nil: there is none.
    def count(name, key, delta)
      lent(key) do |client, slot|
        slot.read_number if done?(@calls.public_send(name).call(client, slot.key, key.bytesize, delta, slot.number))
      end
    end

    # False: there is none.
    def touch(key, lifetime)
      lent(key) { |client, slot| done?(@calls.touch.call(client, slot.key, key.bytesize, lifetime)) }
    end

    # False: there was none.
    def delete(key)
      lent(key) { |client, slot| done?(@calls.delete.call(client, slot.key, key.bytesize)) }
    end

    # Removes an item if it has this number still.
    def delete_cas(key, number)
      lent(key) { |client, slot| done?(@calls.delete_cas.call(client, slot.key, key.bytesize, number)) }
    end

    # Removes all items of all servers.
    def flush
      lent { |client| found(@calls.flush_all.call(client)) }
    end

    # Calls that are under way end as if it were not closed.
    def close
      @client = nil
      destroy_unused
    end

    def closed?
      @client.nil?
    end

    def initialize_copy(_other)
      raise TypeError, "a client has no copy: threads share it"
    end

    private

    def connect(address)
      place = Fiddle::Pointer.malloc(Fiddle::SIZEOF_VOIDP, Fiddle::RUBY_FREE)
      status = @calls.connect.call(Fiddle::Pointer["#{address.b}\0"].to_i, place.to_i)
      raise @calls.failure(status) unless status == Library::DONE

      # With this object, Fiddle destroys the client.
      @handle = Fiddle::Pointer.new(place.ptr.to_i, 0, @calls.destroy)
      @client = @handle.to_i
      @has_memory = address.start_with?("shm:")
    end

    # Has a block call with the client and a slot, which has a copy of the key.
    def lent(key = nil)
      slot = @idle.pop || slot_more
      begin
        slot.thread = Thread.current
        client = @client || raise(ClosedError, "the client was closed")
        slot.key = key if key
        yield client, slot
      ensure
        slot.thread = nil
        @idle.push(slot)
        destroy_unused if @client.nil?
      end
    end

    def slot_more
      slot = Slot.new
      @slots.push(slot)
      slot
    end

    def destroy_unused
      # Another thread may be here, too: this does it once.
      @handle.call_free if @slots.none?(&:used?)
    end

    # Whether a change was made.
    def done?(status)
      found(status) == Library::DONE
    end

    # A status that is no failure.
    def found(status)
      status.negative? ? raise(@calls.failure(status)) : status
    end
  end
end
