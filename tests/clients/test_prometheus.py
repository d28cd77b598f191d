"""Prometheus itself: it takes the rules and the configuration of dist/, and reads a running server. Skipped where its programs
are missing."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import conftest
import pytest
from conftest import ROOT, Server
from judge import MEMCACHED, converse, needs_right
from ports import free_port

# scripts/setup.sh puts the programs beside this Python.
os.environ["PATH"] += os.pathsep + str(pathlib.Path(sys.executable).parent)

DIST = ROOT / "dist/prometheus"
EXPORTER = os.environ.get("MEMCACHED_EXPORTER", "memcached_exporter")

with_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool")
with_prometheus = pytest.mark.skipif(not shutil.which("prometheus"), reason="no prometheus")
with_exporter = pytest.mark.skipif(not shutil.which(EXPORTER), reason="no memcached_exporter")


def fetched(url):
    """What a program answers that may have just started."""
    end = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return answer.read().decode()
        except (urllib.error.URLError, ConnectionError):
            assert time.monotonic() < end, url
            time.sleep(0.1)


@contextlib.contextmanager
def running(*command):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@with_promtool
def test_rules_and_configuration_are_lawful(tmp_path):
    for command in (["check", "rules", "nuthatch.rules.yml"], ["check", "config", "prometheus.yml"]):
        ended = subprocess.run(["promtool", *command], cwd=DIST, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    cases = pathlib.Path(__file__).with_name("rules.test.yml").read_text()
    (tmp_path / "rules.test.yml").write_text(cases.replace("RULES", str(DIST / "nuthatch.rules.yml")))
    ended = subprocess.run(["promtool", "test", "rules", "rules.test.yml"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_each_alert_is_tried():
    """Once silent, and once not."""
    cases = pathlib.Path(__file__).with_name("rules.test.yml").read_text().split("- alertname: ")[1:]
    silent = {case.split()[0] for case in cases if "exp_alerts: []" in case}
    loud = {case.split()[0] for case in cases if "exp_labels" in case}
    alerts = set(re.findall(r"- alert: (\w+)", (DIST / "nuthatch.rules.yml").read_text()))
    assert silent == loud == alerts and len(alerts) > 10


@with_prometheus
def test_prometheus_reads_a_server(start, tmp_path):
    server = start("--metrics", "127.0.0.1:0", "--log", str(tmp_path / "log"), "-v", "--save", str(tmp_path / "saved"), "--save-every", "3600", "-U", "-1")
    metrics = conftest.said(tmp_path / "log", r"metrics at http://(\S+)/metrics")
    converse(server.address, b"set a 0 0 1\r\nx\r\nget a\r\n")
    config = (DIST / "prometheus.yml").read_text().replace("127.0.0.1:9150", metrics[1]).replace("15s", "1s")
    (tmp_path / "prometheus.yml").write_text(config)
    shutil.copy(DIST / "nuthatch.rules.yml", tmp_path)
    port = free_port()
    flags = [f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address=127.0.0.1:{port}"]
    with running("prometheus", *flags):
        def asked(query):
            return json.loads(fetched(f"http://127.0.0.1:{port}/api/v1/{query}"))["data"]

        end = time.monotonic() + 120
        while not (found := asked("query?query=nuthatch_items")["result"]):
            assert time.monotonic() < end, asked("targets")
            time.sleep(0.2)
        assert found[0]["metric"]["job"] == "nuthatch" and found[0]["value"][1] == "1"
        hits = asked("query?query=nuthatch_request_duration_seconds_count%7Bcommand%3D%22get%22%2Csize%3D%2264B%22%7D")
        assert hits["result"][0]["value"][1] == "1"
        rules = [rule for group in asked("rules")["groups"] for rule in group["rules"]]
        assert {"NuthatchDown", "NuthatchSavesFail", "NuthatchCertificateEnds"} <= {rule["name"] for rule in rules}
        # Each has been evaluated, some time.
        end = time.monotonic() + 120
        while any(rule["health"] == "unknown" for rule in rules):
            assert time.monotonic() < end
            time.sleep(0.2)
            rules = [rule for group in asked("rules")["groups"] for rule in group["rules"]]
        assert {rule["health"] for rule in rules} == {"ok"}
        # The dashboard's queries can be evaluated: labels match from side to side.
        for panel in json.loads((ROOT / "dist/grafana/nuthatch.json").read_text())["panels"]:
            for target in panel.get("targets", []):
                query = target["expr"].replace("$instance", ".*").replace("$__rate_interval", "10s")
                assert "result" in asked("query?query=" + urllib.parse.quote(query)), query


@with_exporter
@needs_right
def test_memcached_exporter_finds_all_it_finds_in_memcached(tmp_path):
    """memcached_exporter of prometheus, another program than --metrics."""
    names = []
    for name, arguments in [("memcached", {"program": MEMCACHED}), ("ours", {})]:
        folder = tmp_path / name
        folder.mkdir()
        server = Server(folder, "-m", "64", **arguments)
        converse(server.address, b"set a 0 0 1\r\nx\r\nget a\r\n")
        port = free_port()
        with running(EXPORTER, f"--memcached.address=127.0.0.1:{server.port}", f"--web.listen-address=127.0.0.1:{port}"):
            text = fetched(f"http://127.0.0.1:{port}/metrics")
        server.end()
        assert "\nmemcached_up 1\n" in text
        names.append(set(re.findall(r"^(memcached_\w+)", text, re.M)))
    assert names[0] - names[1] == set()
