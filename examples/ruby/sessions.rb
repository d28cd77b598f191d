# frozen_string_literal: true

require "nuthatch"
require "rack/session/abstract/id"

# Sessions of Rack in a cache that all processes share. A session is a hash of what JSON has. Without a server there are new ones.
class CacheSessions < Rack::Session::Abstract::PersistedSecure
  def initialize(app, cache:, **options)
    super(app, { expire_after: 3600 }.merge(options))
    @cache = cache
  end

  # A name that the cache does not know, and that a visitor may have made up, gets no session of this name.
  def find_session(_request, name)
    session = name && @cache.get(key(name))
    session ? [name, session] : [generate_sid, {}]
  rescue Nuthatch::Error
    [generate_sid, {}]
  end

  def write_session(_request, name, session, options)
    @cache.set(key(name), session, options[:expire_after])
    name
  rescue Nuthatch::Error
    # Rack then gives the visitor no cookie.
    false
  end

  def delete_session(_request, name, options)
    @cache.delete(key(name))
    generate_sid unless options[:drop]
  end

  private

  # Not the name in the cookie: who can list the cache's keys has nobody's session by that.
  def key(name)
    "session #{name.private_id}"
  end
end
