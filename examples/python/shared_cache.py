"""A web program whose workers share one cache.

    nuthatch -p 11211 --shared /run/user/1000/nuthatch-shared
    NUTHATCH_URL=tcp://127.0.0.1:11211 gunicorn --workers 4 --preload shared_cache:app

Each page takes half a second to make, and is made once for all workers. With NUTHATCH_SHARED=PATH, which is the server's
--shared, a page that is there is read out of the server's memory.
"""

import os
import time

import nuthatch

# Made before gunicorn forks: each worker's first call opens its own connection.
client = nuthatch.Client(os.environ.get("NUTHATCH_URL", "tcp://127.0.0.1:11211"))
shared = os.environ.get("NUTHATCH_SHARED")
direct = nuthatch.Direct(shared) if shared else client


def make(path):
    """The page, and who made it."""
    time.sleep(0.5)
    return f"{path} made by {os.getpid()}"


def page(path):
    key = f"page:{path}"
    found = direct.get(key)
    # Without bytes, too: while one worker makes it, there is an empty item in its place.
    if not found:
        found = client.get_or_compute(key, lambda: make(path), expire=60)
    return found


def app(environ, start_response):
    """What gunicorn calls."""
    body = page(environ["PATH_INFO"]) + f"\nread by {os.getpid()}\n".encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
