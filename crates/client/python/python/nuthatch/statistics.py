"""What servers tell of themselves, as pymemcache gives it."""


def typed(value):
    """A number if it is one, else bytes."""
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            pass
    return value.encode()


def by_server(servers, make):
    """What the only server said; of several, by their addresses."""
    if len(servers) == 1:
        return make(servers[0][1])
    return {server: make(said) for server, said in servers}


def stats(servers):
    return by_server(servers, lambda said: {name.encode(): typed(value) for name, value in said})


def version(servers):
    return by_server(servers, str.encode)
