"""Projects' own tests, from their source packages, against the server: what passes, and why the rest does not.

Their packages are what pip installs from; a suite whose package is not there is skipped. With FRAMEWORKS_AGAINST=redis and
REDIS_SERVER=PROGRAM they run against redis-server, and nothing but what is broken there, too, may fail.
"""

import os
import re
import subprocess
import sys

import pytest
from servers import AGAINST_REDIS, INSTALLED, server  # noqa: F401
from suites import Suite, judge, run, unpacked

DJANGO = "django-5.2.9"
# As `django-admin startproject` and the manual of its cache have it.
SETTINGS = """
SECRET_KEY = "secret"
USE_TZ = False
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
DATABASES = {name: {"ENGINE": "django.db.backends.sqlite3"} for name in ("default", "other")}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:PORT"}}
"""

ROUNDED = "an item lives up to 63 ms longer than it was asked to, and the test looks at the very moment"

# Its settings for what values are stored as, and for caches that expire early so that not all ask at once. In a process each:
# its own runner separates them, too.
DJANGO_REDIS = {
    f"django-redis {name}": Suite("django_redis-6.0.0", ["-k", f"[{name}]"], passing=80, lacks={"other data": 28})
    for name in ("sqlite", "sqlite_json", "sqlite_herd")
}

SUITES = DJANGO_REDIS | {
    "aiocache": Suite(
        "aiocache-0.12.3",
        ["-k", "redis"],
        ["acceptance", "ut/backends/test_redis.py"],
        passing=160,
        differs={"(int|float)_ttl": ROUNDED},
        broken={
            "TestRedisBackend.test_close": "its substitute for a connection is not that of redis-py 7",
            "test_locking_dogpile": "it measures how long its own sleeps take",
            "test_cached_stampede": "it counts on its two tasks to begin within half a second",
        },
    ),
    "Flask-Caching": Suite("flask_caching-2.5.1", ["-k", "redis or Redis"], port="6360", passing=63),
    "limits": Suite(
        "limits-5.8.0",
        [
            *("-p", "no_containers", "-p", "no:asyncio"),
            *("-k", "redis and not async and not cluster and not sentinel and not ssl and not uds and not auth"),
        ],
        ["test_storage.py", "test_strategy.py", "storage/test_redis.py"],
        port="7379",
        passing=10,
        lacks={"Lua": 18},
    ),
}


def has(package):
    return (INSTALLED / "sources" / f"{package}.tar.gz").exists()


@pytest.mark.parametrize("name", SUITES)
def test_suite(name, server, tmp_path):  # noqa: F811
    suite = SUITES[name]
    if not has(suite.package):
        pytest.skip(f"the source of {suite.package} is not to be had (scripts/setup-frameworks.sh)")
    passed, failed = run(suite, server, tmp_path)
    if AGAINST_REDIS:
        suite.lacks, suite.differs, suite.passing = {}, {}, 0
    judge(suite, passed, failed)


@pytest.mark.skipif(not has(DJANGO), reason="Django's source is not to be had (scripts/setup-frameworks.sh)")
def test_django(server, tmp_path):  # noqa: F811
    """All of Django's tests of caches and sessions, the default cache being its RedisCache."""
    tests = unpacked(DJANGO, tmp_path) / "tests"
    (tests / "of_redis.py").write_text(SETTINGS.replace("PORT", str(server.port)))
    command = [sys.executable, "runtests.py", "--settings=of_redis", "--parallel=1", "cache", "sessions_tests"]
    environment = {**os.environ, "PYTHONPATH": str(tests.parent)}
    said = subprocess.run(command, cwd=tests, env=environment, capture_output=True, text=True, check=False).stderr
    ran = re.search(r"Ran (\d+) tests", said)
    assert ran and int(ran[1]) > 1200 and re.search("^OK", said, re.M), said[-4000:]
