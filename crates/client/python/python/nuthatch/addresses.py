"""Addresses as people write them, for the client, which takes one kind."""


def _one(server):
    """HOST:PORT of a server."""
    if isinstance(server, str):
        return server
    if isinstance(server, tuple) and len(server) == 2:
        host, port = server
        return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
    raise TypeError(f"a server is 'HOST:PORT' or (HOST, PORT), not {server!r}")


def address(servers, options):
    """An address: one already, a server, or a list of servers; with options behind it, by their names in docs/clients.md."""
    if isinstance(servers, str) and "://" in servers:
        made = servers
    elif isinstance(servers, str) and servers.startswith("unix:"):
        made = "unix://" + servers[len("unix:") :]
    elif isinstance(servers, str) and servers.startswith("/"):
        made = "unix://" + servers
    elif isinstance(servers, list):
        made = "tcp://" + ",".join(map(_one, servers))
    else:
        made = "tcp://" + _one(servers)
    if not options:
        return made
    words = "&".join(f"{name}={value}" for name, value in options.items())
    return made + ("&" if "?" in made else "?") + words
