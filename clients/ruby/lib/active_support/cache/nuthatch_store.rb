# frozen_string_literal: true

require "active_support"
require "active_support/cache"
require "active_support/notifications"
require "digest"
require "nuthatch"

module ActiveSupport
  module Cache
    # Rails' cache in a server of Nuthatch or memcached, with single reads out of its memory where it is on the same host:
    #
    #   config.cache_store = :nuthatch_store, "shm:///run/nuthatch/shared?or=unix:///run/nuthatch/nuthatch.sock", { expires_in: 1.hour }
    #
    # The first argument is an address or a Nuthatch::Client. Options are those of all stores, and `library`, a Client's.
    #
    # A server that fails does not make its program fail: a read then finds nothing, a write returns false, and what failed is
    # logged. The coder is ActiveSupport's, which is Marshal: who can write to the server can make its readers run code.
    class NuthatchStore < Store
      # Longer keys are stored under their hash. Keys with other bytes than text travel in base64, and have no more room.
      KEY_MAX = 186
      HASH_MARK = ":sha256:"
      HASH_LENGTH = HASH_MARK.length + 64
      # Later versions pass their options on.
      CODER_OPTIONS = instance_method(:serialize_entry).arity != 1

      def self.supports_cache_versioning?
        true
      end

      # Raw values are strings, for the local cache, too.
      module RawEntries # :nodoc:
        private

        def write_entry(key, entry, **options)
          return super unless options[:raw] && !entry.value.is_a?(String)

          text = Entry.new(entry.value.to_s, compress: false)
          text.expires_at = entry.expires_at if entry.expires_at
          super(key, text, **options)
        end
      end

      prepend Strategy::LocalCache
      prepend RawEntries

      # The Nuthatch::Client.
      attr_reader :client

      def initialize(server, options = nil)
        options = (options || {}).dup
        library = options.delete(:library)
        super(options)
        @client = server.is_a?(::Nuthatch::Client) ? server : ::Nuthatch::Client.new(server, library: library)
        @key_max = KEY_MAX - @client.prefix.bytesize
        return if @key_max > HASH_LENGTH

        raise ::Nuthatch::InvalidError, "a prefix of #{@client.prefix.bytesize} bytes: it leaves no room for keys"
      end

      # Adds to a value that was written with `raw: true`. One that is not there is 0 before.
      def increment(name, amount = 1, options = nil)
        instrument(:increment, name, amount: amount) { count(name, amount, options) }
      end

      # Subtracts from a value that was written with `raw: true`, down to 0. Nil: there is none.
      def decrement(name, amount = 1, options = nil)
        instrument(:decrement, name, amount: amount) { count(name, -amount, options) }
      end

      # Removes all that the servers have, whatever its namespace.
      def clear(_options = nil)
        attempt(nil) { client.flush }
      end

      # Expired items need nobody who removes them.
      def cleanup(_options = nil)
        nil
      end

      def inspect
        "#<#{self.class} options=#{options.inspect}>"
      end

      private

      def read_entry(key, **options)
        deserialized(read_serialized_entry(key, **options), options)
      end

      def read_serialized_entry(key, **_options)
        attempt(nil) { payload(client.get(key)) }
      end

      def write_entry(key, entry, **options)
        write_serialized_entry(key, serialized(entry, options), **options)
      end

      def write_serialized_entry(key, bytes, **options)
        attempt(false) do
          if options[:expires_in] && options[:expires_in] <= 0
            client.delete(key)
            next true
          end
          options[:unless_exist] ? client.add(key, bytes, lifetime(options)) : client.set(key, bytes, lifetime(options))
        end
      end

      def read_multi_entries(names, **options)
        keys = names.to_h { |name| [name, normalize_key(name, options)] }
        found = attempt({}) { client.get_multi(keys.values, failed: method(:log)) }
        keys.each_with_object({}) do |(name, key), values|
          entry = deserialized(payload(found[key]), options)
          next if entry.nil? || entry.expired? || entry.mismatched?(normalize_version(name, options))

          values[name] = entry.value
        end
      end

      # All at once, if each goes the same way: the local cache takes them one by one.
      def write_multi_entries(entries, **options)
        return super if local_cache || options[:unless_exist] || options[:raw] || (options[:expires_in] || 1) <= 0

        attempt(false) { client.set_multi(entries.transform_values { |entry| serialized(entry, options) }, lifetime(options)) }
      end

      def delete_entry(key, **_options)
        attempt(false) { client.delete(key) }
      end

      def delete_multi_entries(keys, **options)
        return super if local_cache

        attempt(0) { client.delete_multi(keys) }
      end

      # A key that has room, in bytes.
      def normalize_key(key, options)
        key = super or return
        return key if key.bytesize <= @key_max

        # Without what is cut of a character: the key is logged, too.
        "#{key.byteslice(0, @key_max - HASH_LENGTH).scrub("")}#{HASH_MARK}#{::Digest::SHA256.hexdigest(key)}"
      end

      def count(name, amount, options)
        options = merged_options(options)
        key = normalize_key(name, options)
        attempt(nil) do
          next client.decr(key, -amount) if amount.negative?

          # As a raw write has it, so that a raw read gives a string.
          client.incr(key, amount) || (client.add(key, amount.to_s, lifetime(options)) ? amount : client.incr(key, amount))
        end
      end

      # How long the server keeps an item: a while longer, if one that has expired may be given once more.
      def lifetime(options)
        seconds = options[:expires_in] or return
        seconds + (options[:raw] ? 0 : options[:race_condition_ttl].to_f)
      end

      # What this store has written: not what else may be under a key.
      def payload(value)
        value.is_a?(Integer) ? value.to_s : (value if value.is_a?(String))
      end

      def serialized(entry, options)
        return entry.value.to_s if options[:raw]

        CODER_OPTIONS ? serialize_entry(entry, **options) : serialize_entry(entry)
      end

      def deserialized(bytes, options)
        return if bytes.nil?
        return Entry.new(bytes, compress: false) if options[:raw]

        CODER_OPTIONS ? deserialize_entry(bytes, **options) : deserialize_entry(bytes)
      # Whatever the methods of the classes raise that the bytes name.
      rescue StandardError => e
        log(e)
        nil
      end

      def attempt(fallback)
        yield
      rescue ::Nuthatch::Error => e
        log(e)
        fallback
      end

      def log(failure)
        logger&.error("#{failure.class}: #{failure.message}")
      end
    end
  end
end
