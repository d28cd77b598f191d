# frozen_string_literal: true

module Nuthatch
  # The library's calls with many keys, which are binary strings of the caller's. An exception from another thread waits until
  # such a call is over.
  module Many
    # nuthatch_client_entry: key and its length, value and its length, lifetime, flags.
    ENTRY = "JJJJqLx4"
    # nuthatch_client_value, as far as it is used: bytes, length, flags.
    VALUE = "JJx8Lx12"

    # Gives the block index, bytes and flags of those keys that have a value; then raises, if a server failed.
    def get_many(keys, &block)
      whole do |client|
        array, _bytes = key_array(keys)
        values = zeros(Slot::VALUE_SIZE * keys.length)
        begin
          status = @calls.get_many_items.call(client, array.to_i, keys.length, values.to_i)
          # Its words are there until the next call.
          failure = @calls.failure(status) if status.negative?
          each_value(values, &block)
          raise failure if failure
        ensure
          free_values(values)
        end
      end
    end

    # Stores items of key, bytes and flags.
    def set_many(items, lifetime)
      whole do |client|
        # Held until the call is over.
        pointers = items.map { |key, bytes, _| [Fiddle::Pointer[key], Fiddle::Pointer[bytes]] }
        fields = pointers.zip(items).flat_map do |(key, bytes), (_, _, flags)|
          [key.to_i, key.size, bytes.to_i, bytes.size, lifetime, flags]
        end
        entries = Fiddle::Pointer[fields.pack(ENTRY * items.length)]
        found(@calls.set_many.call(client, entries.to_i, items.length, 0))
      end
    end

    # Removes items, and returns how many there were.
    def delete_many(keys)
      whole do |client|
        array, _bytes = key_array(keys)
        outcomes = zeros(Fiddle::SIZEOF_INT * keys.length)
        found(@calls.delete_many.call(client, array.to_i, keys.length, outcomes.to_i))
        outcomes[0, outcomes.size].unpack("i*").count(Library::DONE)
      end
    end

    private

    def whole
      lent { |client| Thread.handle_interrupt(Object => :never) { yield client } }
    end

    # Keys as the library takes many, and their bytes, which the caller holds for as long.
    def key_array(keys)
      bytes = Fiddle::Pointer[keys.join.freeze]
      at = bytes.to_i
      pairs = []
      keys.each do |key|
        pairs << at << key.bytesize
        at += key.bytesize
      end
      [Fiddle::Pointer[pairs.pack("J*")], bytes]
    end

    def zeros(size)
      memory = Fiddle::Pointer.malloc(size, Fiddle::RUBY_FREE)
      memory[0, size] = "\0" * size
      memory
    end

    def each_value(values)
      each_found(values) { |index, data, length, flags| yield index, Fiddle::Pointer.new(data)[0, length], flags }
    end

    def free_values(values)
      each_found(values) { |index| @calls.value_free.call(values.to_i + index * Slot::VALUE_SIZE) }
    end

    # Index, address, length and flags of the values that there are.
    def each_found(values)
      fields = values[0, values.size].unpack(VALUE * (values.size / Slot::VALUE_SIZE))
      fields.each_slice(3).with_index do |(data, length, flags), index|
        yield index, data, length, flags unless data.zero?
      end
    end
  end
end
