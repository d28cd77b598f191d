# frozen_string_literal: true

module Nuthatch
  # Lifetimes in seconds, as the library takes them.
  module Lifetime
    # What has a later end has none: the protocol has no dates after 2038.
    LONGEST = 100 * 365 * 24 * 60 * 60

    # Milliseconds; -1 without an end.
    def self.milliseconds(seconds)
      return -1 if seconds.nil?
      # ActiveSupport's durations say that they are numbers. A Time is none, although it has to_f.
      unless seconds.is_a?(Numeric) && seconds.real?
        raise InvalidError, "a lifetime of the class #{seconds.class}: it is a number of seconds, or nil for one without an end"
      end

      number = seconds.to_f
      # Neither is NaN.
      unless number.positive?
        raise InvalidError, "a lifetime of #{seconds} s: it is more than 0, or nil for one without an end"
      end

      ([number, LONGEST].min * 1000).ceil
    end
  end
end
