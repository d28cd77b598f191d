# frozen_string_literal: true

require_relative "lib/nuthatch/version"

Gem::Specification.new do |gem|
  gem.name = "nuthatch"
  gem.version = Nuthatch::VERSION
  gem.summary = "A cache that all processes of a host share"
  gem.description = "A client of Nuthatch and memcached over libnuthatch_client, by Fiddle, and a cache store for Rails."
  gem.authors = ["The Nuthatch developers"]
  gem.license = "Apache-2.0"
  # There is no page of the project yet.
  gem.homepage = "https://nuthatch.invalid"
  gem.required_ruby_version = ">= 3.0"
  gem.files = Dir["lib/**/*.rb", "README.md", base: __dir__]
  gem.metadata["rubygems_mfa_required"] = "true"
  # Ruby has it as a default gem until 3.4.
  gem.add_dependency "fiddle", "~> 1.0"
end
