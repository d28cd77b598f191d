# frozen_string_literal: true

require_relative "lifetime"
require_relative "native"
require_relative "values"

module Nuthatch
  # An item with what the server knows of it: its value, the number for set_cas, and the seconds that are left (nil: without an
  # end).
  Item = Struct.new(:value, :cas, :seconds_left)

  # A client of Nuthatch and memcached, for all threads of a program. A child of a fork uses the one that it has, with connections
  # of its own. README.md has addresses, values and errors.
  #
  # Lifetimes are in seconds, a part of one is rounded up; nil is without an end. Keys are strings or symbols of 1 to 250 bytes, with
  # the prefix; a symbol is the same key as its name. All that calls raise by themselves is a Nuthatch::Error.
  class Client
    # The most that one call of the library is given.
    KEYS_MAX = 1024
    BYTES_MAX = 8 << 20
    # What counts are: the library's are without signs.
    COUNT_MAX = (1 << 64) - 1

    # What is put in front of all keys, in binary.
    attr_reader :prefix

    # address:: "unix:///PATH", "shm:///PATH?or=unix:///PATH", "tcp://HOST:PORT,HOST:PORT" or "tls://HOST:PORT?ca=FILE", with
    #           options behind "?", as docs/clients.md describes them. Nothing is connected yet
    # codec::   for values that are neither strings nor integers: :json, :marshal (with its danger: MarshalCodec), or an object with
    #           the methods of JsonCodec
    # prefix::  what is put in front of all keys
    # library:: the file of libnuthatch_client, if the system does not find it
    def initialize(address, codec: :json, prefix: "", library: nil)
      raise InvalidError, "a prefix of the class #{prefix.class}: it is a string" unless prefix.is_a?(String)

      @values = Values.new(codec)
      @prefix = prefix.b.freeze
      @native = Native.new(address, library)
    end

    # The library's version.
    def version
      @native.version
    end

    # The value under a key, or the default if there is none.
    def get(key, default = nil)
      bytes, flags = @native.get(key(key))
      bytes ? @values.unpack(bytes, flags) : default
    end

    # The Item under a key; nil if there is none.
    def get_item(key)
      bytes, cas, flags, left = @native.get_item(key(key))
      Item.new(@values.unpack(bytes, flags), cas, left.negative? ? nil : left) if bytes
    end

    # Whether there is a value under a key.
    def exist?(key)
      !@native.get(key(key)).nil?
    end

    # The values under keys, by the keys as they were given; those that there are. If one of several servers fails, this raises; or
    # it calls `failed` with the error, and returns the values of the others.
    def get_multi(*keys, failed: nil)
      keys.flatten.each_slice(KEYS_MAX).with_object({}) do |some, values|
        @native.get_many(some.map { |key| key(key).b }) { |index, bytes, flags| values[some[index]] = @values.unpack(bytes, flags) }
      rescue NotSentError, NoReplyError, RefusedError => e
        raise if failed.nil?

        failed.call(e)
      end
    end

    # Stores a value.
    def set(key, value, ttl = nil)
      store(:set, key, value, ttl)
    end

    # Stores values by their keys. If it raises, some may be stored.
    def set_multi(values, ttl = nil)
      lifetime = Lifetime.milliseconds(ttl)
      items = []
      bytes = 0
      values.each do |key, value|
        items.push([key(key).b, *@values.pack(value)])
        bytes += items.last[1].bytesize
        next if items.length < KEYS_MAX && bytes < BYTES_MAX

        @native.set_many(items, lifetime)
        items = []
        bytes = 0
      end
      @native.set_many(items, lifetime) unless items.empty?
      true
    end

    # Stores a value if there is none. Returns whether it did.
    def add(key, value, ttl = nil)
      store(:add, key, value, ttl)
    end

    # Stores a value if there is one. Returns whether it did.
    def replace(key, value, ttl = nil)
      store(:replace, key, value, ttl)
    end

    # Gives the block the value, and stores what it returns, if nobody has changed the item meanwhile. Returns true if it was
    # stored, false if somebody has changed it, nil if there is none, or none any more.
    def cas(key, ttl = nil)
      raise InvalidError, "cas has a block, which makes the new value" unless block_given?

      item = get_item(key) or return
      set_cas(key, yield(item.value), item.cas, ttl)
    end

    # Stores a value if the item has this number of get_item's still. Returns what cas does.
    def set_cas(key, value, cas, ttl = nil)
      unless cas.is_a?(Integer) && cas.between?(0, COUNT_MAX)
        raise InvalidError, "#{cas.inspect} is no number of an item: get_item gives it"
      end

      bytes, flags = @values.pack(value)
      status = @native.cas(key(key), bytes, Lifetime.milliseconds(ttl), flags, cas)
      status == Library::DONE || (status == Library::NOT_FOUND ? nil : false)
    end

    # Puts bytes behind a string. Returns whether there was one.
    def append(key, bytes)
      @native.extend(:append, key(key), piece(bytes))
    end

    # Puts bytes in front of a string. Returns whether there was one.
    def prepend(key, bytes)
      @native.extend(:prepend, key(key), piece(bytes))
    end

    # Adds to an integer, and returns the sum, which wraps around at 2^64. If there is none, returns nil; or stores the default, if
    # there is one, for the lifetime, and returns it.
    def incr(key, by = 1, ttl = nil, default: nil)
      count(:incr, key, by, ttl, default)
    end

    # Subtracts from an integer, down to 0, and returns what is left. The default is incr's.
    def decr(key, by = 1, ttl = nil, default: nil)
      count(:decr, key, by, ttl, default)
    end

    # Gives an item this lifetime from now on. Returns whether there is one.
    def touch(key, ttl = nil)
      @native.touch(key(key), Lifetime.milliseconds(ttl))
    end

    # Removes an item. Returns whether there was one.
    def delete(key)
      @native.delete(key(key))
    end

    # Removes items. Returns how many there were.
    def delete_multi(*keys)
      keys.flatten.each_slice(KEYS_MAX).sum { |some| @native.delete_many(some.map { |key| key(key).b }) }
    end

    # The value under a key; if there is none, what the block returns, which is stored. Of all that ask at a time, in all threads and
    # processes, one computes, and the others wait for it.
    #
    # Who waits is interrupted (Timeout, Thread#kill, signals) only when the wait is over: that is after two leases at the latest.
    #
    # If the server cannot be asked, the value is computed and not stored. If the block raises, so does this, and one of those that
    # wait computes. While one computes, there is an empty string under the key.
    #
    # lease:: how many seconds others wait; then another one computes
    # early:: when no more than so many seconds of its lifetime are left, one computes the value anew, and the others get the old
    #         one meanwhile
    def fetch(key, ttl = nil, lease: 10, early: nil, &compute)
      raise InvalidError, "fetch has a block, which computes the value" unless compute

      key = key(key)
      keep = Lifetime.milliseconds(ttl)
      lease = Lifetime.milliseconds(lease)
      raise InvalidError, "a lease is a number of seconds" if lease.negative?

      early = Lifetime.milliseconds(early)
      bytes, flags = @native.get_local(key) if early.negative?
      # An empty string may be the place that is kept for who computes.
      return @values.unpack(bytes, flags) unless bytes.nil? || bytes.empty?

      status, bytes, cas, flags = leased(key, lease, early)
      case status
      when nil then yield
      when Library::DONE then @values.unpack(bytes, flags)
      else computed(key, keep, cas, !bytes.nil?, &compute)
      end
    end

    # Removes all items of all servers, whatever their prefix.
    def flush
      @native.flush
      true
    end

    # Ends the connections. Calls of other threads that are under way end as if it were not closed; later ones raise ClosedError.
    def close
      @native.close
      nil
    end

    def closed?
      @native.closed?
    end

    def initialize_copy(_other)
      raise TypeError, "a client has no copy: threads share it"
    end

    # Without what strings of addresses may contain.
    def inspect
      "#<#{self.class}#{" closed" if closed?}>"
    end

    private

    # The bytes of a key, which nobody changes any more: their number is what the library reads.
    def key(key)
      key = key.name if key.is_a?(Symbol)
      raise InvalidError, "a key of the class #{key.class}: it is a string or a symbol" unless key.is_a?(String)

      key = @prefix.empty? ? Values.frozen(key) : @prefix + key.b
      return key if key.bytesize.between?(1, Slot::KEY_MAX)

      raise InvalidError, "a key of #{key.bytesize} bytes, with the prefix: it has 1 to #{Slot::KEY_MAX}"
    end

    def store(call, key, value, ttl)
      bytes, flags = @values.pack(value)
      @native.store(call, key(key), bytes, Lifetime.milliseconds(ttl), flags)
    end

    def piece(bytes)
      raise InvalidError, "a #{bytes.class} at a string's end: it is a string" unless bytes.is_a?(String)

      Values.frozen(bytes)
    end

    def count(call, key, by, ttl, default)
      [by, default || 0].each do |number|
        next if number.is_a?(Integer) && number.between?(0, COUNT_MAX)

        raise InvalidError, "a count of #{number.inspect}: it is an integer from 0 to 2^64 - 1"
      end
      lifetime = Lifetime.milliseconds(ttl)
      bytes = key(key)
      # Another client may remove what a third one has added, again and again: none goes on for ever.
      3.times do
        number = @native.count(call, bytes, by)
        return number if number || default.nil?
        return default if @native.store(:add, bytes, default.to_s, lifetime, Values::INTEGER)
      end
      nil
    end

    # What `lease` returns; nil if the server cannot be asked.
    def leased(key, lease, early)
      Fiber.blocking? || Fiber.scheduler.nil? ? @native.lease(key, lease, early) : leased_beside(key, lease, early)
    rescue InvalidError
      raise
    rescue Error
      nil
    end

    # The same where fibers are scheduled, in another thread: who computes may be another fiber of this one.
    def leased_beside(key, lease, early)
      asking = Thread.new { @native.lease(key, lease, early) }
      asking.report_on_exception = false
      found = asking.value
    ensure
      # A fiber that is ended meanwhile does not compute.
      Thread.new { leave(key, asking) } unless found
    end

    # Has another one compute, if the lease that a thread asks for is got.
    def leave(key, asking)
      attempt do
        _, bytes, cas = asking.value
        @native.delete_cas(key, cas) unless bytes || cas.zero?
      end
    end

    # The value that the block makes, which is stored under this number if it is not 0.
    def computed(key, keep, cas, is_old)
      is_stored = cas.zero?
      value = yield
      unless is_stored
        bytes, flags = @values.pack(value)
        is_stored = attempt { @native.cas(key, bytes, keep, flags, cas) == Library::DONE }
      end
      value
    ensure
      # Others wait for this one: now they need not.
      attempt { @native.delete_cas(key, cas) } unless is_stored || is_old
    end

    # What a change came to whose failure changes nothing about a value.
    def attempt
      yield
    rescue Error
      false
    end
  end
end
