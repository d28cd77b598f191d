# frozen_string_literal: true

require_relative "codecs"

module Nuthatch
  # How values become bytes and flags, and values again. Strings and integers are kept as they are, so that other clients read
  # them, and `incr` counts.
  class Values
    # As those of the Python client: bytes, and text in UTF-8.
    BYTES = 0
    TEXT = 1 << 4
    INTEGER = 1 << 1
    # The encodings whose text is the same bytes in UTF-8.
    TEXTS = [Encoding::UTF_8, Encoding::US_ASCII].freeze
    # More is no counter. A limit on what a server can have Ruby make of digits.
    DIGITS_MAX = 4096

    # Another thread may change a string while the library reads it. A copy shares the bytes of a long one.
    def self.frozen(string)
      string.frozen? ? string : string.dup.freeze
    end

    def initialize(codec)
      @codec = codec_of(codec)
      @flags = @codec.flags
    end

    # Bytes that nobody changes any more, and flags.
    def pack(value)
      case value
      when String
        bytes = Values.frozen(value)
        [bytes, text?(bytes) ? TEXT : BYTES]
      when Integer then [digits(value), INTEGER]
      else
        bytes = @codec.dump(value)
        raise SerializationError, "the codec made a #{bytes.class} instead of a string" unless bytes.is_a?(String)

        [Values.frozen(bytes), @flags]
      end
    end

    # `bytes` belong to the caller of this, and become the value where it is a string.
    def unpack(bytes, flags)
      case flags
      when BYTES then bytes
      when TEXT then bytes.force_encoding(Encoding::UTF_8)
      when INTEGER then integer(bytes)
      when @flags then @codec.load(bytes)
      else raise SerializationError, "a value with the flags #{flags}: another codec made it, or another client"
      end
    end

    private

    def codec_of(codec)
      case codec
      when :json then JsonCodec.new
      when :marshal then MarshalCodec.new
      when Symbol then raise InvalidError, "no codec is called #{codec}: there are :json and :marshal"
      else
        missing = %i[dump load flags].reject { |method| codec.respond_to?(method) }
        raise InvalidError, "a codec without #{missing.join(", ")}" unless missing.empty?

        check_flags(codec.flags)
        codec
      end
    end

    def check_flags(flags)
      return if flags.is_a?(Integer) && flags.between?(0, (1 << 32) - 1) && ![BYTES, TEXT, INTEGER].include?(flags)

      raise InvalidError, "a codec with the flags #{flags.inspect}: they are a number of 32 bits that marks no strings and integers"
    end

    def text?(string)
      TEXTS.include?(string.encoding) && string.valid_encoding?
    end

    def digits(number)
      digits = number.to_s
      raise InvalidError, "an integer of #{digits.length} digits: it has #{DIGITS_MAX} at most" if digits.length > DIGITS_MAX

      digits
    end

    def integer(bytes)
      # memcached leaves spaces behind a number that has become shorter.
      raise NotANumberError, "an integer that has no digits" unless bytes.bytesize <= DIGITS_MAX && /\A-?\d+ *\z/.match?(bytes)

      bytes.to_i
    end
  end
end
