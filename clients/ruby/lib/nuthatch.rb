# frozen_string_literal: true

# A client of Nuthatch and memcached: see Nuthatch::Client.
module Nuthatch
end

require_relative "nuthatch/version"
require_relative "nuthatch/errors"
require_relative "nuthatch/client"
