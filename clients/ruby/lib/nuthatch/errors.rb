# frozen_string_literal: true

module Nuthatch
  # All that calls of this gem raise by themselves.
  class Error < StandardError; end

  # The call is wrong by itself: a key, a value, a lifetime, an address or an option. Nothing was sent.
  class InvalidError < Error; end

  # The client was closed.
  class ClosedError < InvalidError; end

  # The server cannot be reached, or too many calls wait for it: surely nothing was changed.
  class NotSentError < Error; end

  # The connection ended, or the time, before the reply came: a change may have been made.
  class NoReplyError < Error; end

  # The server refused the request: a value that is too large for it, say.
  class RefusedError < Error; end

  # The value is no number.
  class NotANumberError < Error; end

  # The codec can make no bytes of the value, or no value of the bytes.
  class SerializationError < Error; end

  # libnuthatch_client cannot be loaded, or has a defect.
  class LibraryError < Error; end
end
