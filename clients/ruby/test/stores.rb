# frozen_string_literal: true

# Stores of Rails, where ActiveSupport is installed.
module Stores
  begin
    # Versions before 7.1 use it without a word.
    require "logger"
    require "active_support"
    require "active_support/test_case"
    require "active_support/testing/method_call_assertions"
    require "active_support/core_ext/numeric/time"
    require "active_support/cache/nuthatch_store"
    MISSING = nil
  rescue LoadError => e
    MISSING = "ActiveSupport is not installed: #{e.message}"
  end

  def self.made(way, options = {})
    ActiveSupport::Cache.lookup_store(:nuthatch_store, EachWay.address(way), options)
  end
end
