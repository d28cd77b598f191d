"""Runs a project's own tests from its source package, with only host and port changed, and judges what fails."""

import collections
import dataclasses
import os
import re
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as xml

from servers import INSTALLED

# What the server says to a test that asks for what there is not.
LACKS = {
    "other data": re.compile("a cache of plain values"),
    "Lua": re.compile("there is no Lua here|NoScriptError|NOSCRIPT"),
}


@dataclasses.dataclass
class Suite:
    # The source package, as pip stores it.
    package: str
    # pytest's words.
    words: list[str]
    # Files of its folder of tests; all of them, if not said.
    files: list[str] = dataclasses.field(default_factory=lambda: ["."])
    # The port as the tests have it.
    port: str = "6379"
    # At least so many tests pass.
    passing: int = 0
    # How many fail at most because of what LACKS names.
    lacks: dict[str, int] = dataclasses.field(default_factory=dict)
    # Other tests that fail, or may: a pattern of their names, and the reason.
    differs: dict[str, str] = dataclasses.field(default_factory=dict)
    # Tests that fail beside redis-server, too.
    broken: dict[str, str] = dataclasses.field(default_factory=dict)


def unpacked(package, folder):
    with tarfile.open(INSTALLED / "sources" / f"{package}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / package


def move(folder, port, to):
    """Names the other port wherever the tests do."""
    for path in folder.rglob("*.py"):
        text = path.read_text()
        moved = re.sub(rf"(?<!\d){port}(?!\d)", str(to), text)
        if moved != text:
            path.write_text(moved)


def run(suite, server, folder):
    """Runs the suite; returns the tests that passed, and what those that did not say."""
    project = unpacked(suite.package, folder)
    move(project, suite.port, server.port)
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-o", "addopts=", "-o", "filterwarnings=", f"--junitxml={report}"]
    command += [*suite.words, *(f"tests/{name}" for name in suite.files)]
    # Plugins of ours that take the place of what starts containers.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(project), os.path.dirname(__file__)])}
    # It is a session of its own, not a worker of this one.
    for name in [name for name in environment if name.startswith("PYTEST_")]:
        del environment[name]
    said = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert report.exists(), said.stdout[-4000:] + said.stderr[-4000:]
    passed, failed = set(), {}
    for case in xml.parse(report).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        faults = [*case.iter("failure"), *case.iter("error")]
        if faults:
            failed[name] = "\n".join((fault.get("message") or "") + (fault.text or "") for fault in faults)
        elif case.find("skipped") is None:
            passed.add(name)
    return passed - failed.keys(), failed


def lacking(text):
    """What the server has not, by its words."""
    return next((name for name, words in LACKS.items() if words.search(text)), None)


def judge(suite, passed, failed):
    """All that fails has its reason, and enough passes."""
    known = [*suite.differs, *suite.broken]
    others = {name: text for name, text in failed.items() if not any(re.search(pattern, name) for pattern in known)}
    lacks = collections.Counter(lacking(text) for text in others.values())
    unexplained = [f"{name}: {text[-600:]}" for name, text in others.items() if not lacking(text)]
    told = f"{len(passed)} passed, {len(failed)} failed, of them {dict(lacks)}"
    print(told)
    assert not unexplained, "\n".join([told, *unexplained])
    assert len(passed) >= suite.passing and all(lacks[name] <= suite.lacks.get(name, 0) for name in LACKS), told
