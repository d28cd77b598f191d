"""The example: gunicorn with four workers that share one cache."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time
import urllib.request

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[4] / "examples/python"


@pytest.mark.parametrize("is_direct", [False, True])
def test_four_workers_share_a_cache(server, tmp_path, is_direct):
    pytest.importorskip("gunicorn")
    log = tmp_path / "log"
    command = [sys.executable, "-m", "gunicorn", "--workers", "4", "--preload", "--bind", "127.0.0.1:0"]
    command += ["--chdir", str(EXAMPLES), "--log-file", str(log), "--worker-tmp-dir", str(tmp_path), "shared_cache:app"]
    environment = {**os.environ, "NUTHATCH_URL": server.address, "PYTHONDONTWRITEBYTECODE": "1"}
    if is_direct:
        environment["NUTHATCH_SHARED"] = str(server.shared)
    gunicorn = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        # It has written where it listens, and all its workers have started.
        while not (log.exists() and log.read_text().count("Booting worker") == 4):
            assert gunicorn.poll() is None, log.read_text()
            time.sleep(0.05)
        url = log.read_text().split("Listening at: ")[1].split()[0]

        def ask(_):
            with urllib.request.urlopen(f"{url}/ann") as answer:
                return answer.read().decode().splitlines()

        makers, readers = set(), set()
        # Until all four have answered: which one takes a connection is the kernel's choice.
        while len(readers) < 4:
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                for made, read in pool.map(ask, range(64)):
                    makers.add(made)
                    readers.add(read)
        assert len(makers) == 1 and makers.pop().startswith("/ann made by")
    finally:
        gunicorn.terminate()
        gunicorn.wait()
