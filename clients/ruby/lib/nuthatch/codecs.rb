# frozen_string_literal: true

require "json"

module Nuthatch
  # Makes bytes of the values that are neither strings nor integers, and values of bytes. One of your own has the same methods;
  # `flags` is a number that marks its values, other than those here.
  #
  # What does not come back as it was is refused, so hashes have strings for keys; or symbols, with `symbolize_names`. Other
  # languages read these values.
  class JsonCodec
    DEPTH_MAX = 100

    def initialize(symbolize_names: false)
      @symbolize_names = symbolize_names
      @key = symbolize_names ? Symbol : String
    end

    # As the Python client's.
    def flags
      1 << 5
    end

    def dump(value)
      check(value, 0)
      JSON.generate(value, max_nesting: DEPTH_MAX)
    rescue JSON::JSONError, EncodingError => e
      raise SerializationError, e.message
    end

    def load(bytes)
      JSON.parse(bytes, max_nesting: DEPTH_MAX, symbolize_names: @symbolize_names, create_additions: false)
    rescue JSON::JSONError, EncodingError => e
      raise SerializationError, e.message
    end

    private

    # JSON would make strings of all other objects, without a word.
    def check(value, depth)
      raise SerializationError, "a value that is more than #{DEPTH_MAX} deep" if depth > DEPTH_MAX

      case value
      when nil, true, false, Integer, Float then nil
      else check_object(value, depth)
      end
    end

    # Of a class of one's own, which may be derived from these, JSON gives none back.
    def check_object(value, depth)
      if value.instance_of?(Array) then value.each { |element| check(element, depth + 1) }
      elsif value.instance_of?(Hash) then value.each { |key, element| check_pair(key, element, depth) }
      else check_text(value)
      end
    end

    def check_pair(key, element, depth)
      unless key.instance_of?(@key)
        raise SerializationError, "a hash with a key of the class #{key.class}, which JSON would give back as a #{@key}"
      end

      check_text(key.name) if key.is_a?(Symbol)
      check_text(key) if key.is_a?(String)
      check(element, depth + 1)
    end

    def check_text(text)
      unless text.instance_of?(String)
        raise SerializationError, "a value of the class #{text.class}: JSON has none of it; there are codecs of your own, and :marshal"
      end
      return if Values::TEXTS.include?(text.encoding) && text.valid_encoding?

      raise SerializationError, "a string in #{text.encoding} within a value: JSON has text in UTF-8 only"
    end
  end

  # Any object that Ruby can marshal. WHO CAN WRITE TO THE SERVER CAN MAKE ITS READERS RUN CODE: Marshal makes objects of any
  # class that the program has, and calls methods of theirs. Use it where only your own programs reach the server.
  class MarshalCodec
    def flags
      1 << 8
    end

    def dump(value)
      Marshal.dump(value)
    rescue TypeError, ArgumentError => e
      raise SerializationError, e.message
    end

    def load(bytes)
      Marshal.load(bytes)
    # Whatever the methods of the classes raise that the bytes name.
    rescue StandardError => e
      raise SerializationError, e.message
    end
  end
end
