# frozen_string_literal: true

module Nuthatch
  VERSION = "0.1.0"
end
