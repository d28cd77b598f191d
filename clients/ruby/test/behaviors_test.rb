# frozen_string_literal: true

require_relative "helper"
require_relative "stores"

# ActiveSupport's own tests of stores, from the folder `activesupport/test` of its source, which ACTIVESUPPORT_TESTS names.
module Behaviors
  FOLDER = ENV.fetch("ACTIVESUPPORT_TESTS", nil)

  def self.named(*names)
    names.map do |name|
      require "#{FOLDER}/cache/behaviors/#{name}"
      Object.const_get(name.camelize)
    end
  end
end

if Stores::MISSING || Behaviors::FOLDER.nil?
  class BehaviorsTest < Minitest::Test
    def test_behaviors
      skip Stores::MISSING || "the source of ActiveSupport is not there"
    end
  end
else
  module StoresOfATest
    def setup
      @namespace = "test-#{SecureRandom.hex}"
      @cache = lookup_store(expires_in: 60)
      @peek = lookup_store(expires_in: 60)
    end

    # A server's memory has a limited number of readers.
    def teardown
      @stores.each { |store| store.client.close }
    end

    def lookup_store(options = {})
      store = Stores.made(:shm, { namespace: @namespace }.merge(options))
      (@stores ||= []).push(store)
      store
    end
  end

  # Of those that all stores share not that of autoloading, which needs other files of Rails, and not that of pools of connections,
  # because a client needs none.
  class BehaviorsTest < ActiveSupport::TestCase
    include ActiveSupport::Testing::MethodCallAssertions
    include StoresOfATest

    Behaviors.named(
      "cache_store_behavior", "cache_store_version_behavior", "cache_store_coder_behavior", "local_cache_behavior",
      "cache_increment_decrement_behavior", "cache_instrumentation_behavior", "encoded_key_cache_behavior"
    ).each { |behavior| include behavior }
  end

  class FailuresTest < ActiveSupport::TestCase
    include StoresOfATest

    Behaviors.named("failure_safety_behavior").each { |behavior| include behavior }

    def emulating_unavailability
      yield ActiveSupport::Cache::NuthatchStore.new("unix:///nowhere/socket", namespace: @namespace)
    end
  end
end
