"""Containerfile, the image without a builder, and dist/container/compose.yml."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import time

import pytest
from deploy import NUTHATCH, ROOT, VERSION, accepts, suffices

CONTAINERFILE = (ROOT / "Containerfile").read_text()
NUTHATCH_COMMAND = ["/usr/bin/nuthatch"]


def instructions(stage):
    """The instructions of a stage by their names, the last of each."""
    lines = stage.replace("\\\n", " ").splitlines()
    return dict(line.split(" ", 1) for line in lines if re.match("[A-Z]+ ", line))


def final_stage():
    return CONTAINERFILE[CONTAINERFILE.rindex("\nFROM ") + 1 :]


def nanoseconds(text):
    return int(text.removesuffix("s")) * 10**9


def without_a_builder(folder):
    """What scripts/oci-archive.py says of an image."""
    (folder / "root/data").mkdir(parents=True)
    archive = folder / "image.tar"
    command = [sys.executable, ROOT / "scripts/oci-archive.py", folder / "root", archive, "nuthatch:1"]
    subprocess.run(command, check=True)
    with tarfile.open(archive) as tar:
        (old,) = json.load(tar.extractfile("manifest.json"))
        return json.load(tar.extractfile(old["Config"]))["config"]


def test_both_images_are_run_alike(tmp_path):
    said, other = instructions(final_stage()), without_a_builder(tmp_path)
    options, command = said["HEALTHCHECK"].split(" CMD ")
    times = dict(option[2:].split("=") for option in options.split())
    health = {
        "Test": ["CMD", *json.loads(command)],
        "Interval": nanoseconds(times["interval"]),
        "Timeout": nanoseconds(times["timeout"]),
        "StartPeriod": nanoseconds(times["start-period"]),
        "Retries": int(times["retries"]),
    }
    assert health["Test"] == ["CMD", *NUTHATCH_COMMAND, "ping"]
    assert other == {
        "User": said["USER"],
        "WorkingDir": said["WORKDIR"],
        "Entrypoint": json.loads(said["ENTRYPOINT"]),
        "ExposedPorts": {said["EXPOSE"]: {}},
        "StopSignal": said["STOPSIGNAL"],
        "Healthcheck": health,
        "Labels": dict(re.findall(r'(\S+)="(.*?)"', said["LABEL"])),
    }


def test_the_build_has_all_that_it_needs(tmp_path):
    """The context that .containerignore leaves: cargo reads each manifest of it, and no crate is missing."""
    kept = [line[1:] for line in (ROOT / ".containerignore").read_text().splitlines() if line.startswith("!")]
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *kept], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        # What a manifest names has to be there; what is in it, the compiler looks at.
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith((".toml", ".lock", ".sh")):
            shutil.copy(ROOT / name, target)
        else:
            target.touch()
    command = ["cargo", "metadata", "--no-deps", "--locked", "--offline", "--format-version", "1"]
    told = json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)
    assert any(target["name"] == "nuthatch" and "bin" in target["kind"] for package in told["packages"] for target in package["targets"])
    # What is compiled into the program from outside of its crate.
    for file in [*ROOT.glob("crates/core/*/src/**/*.rs"), *ROOT.glob("crates/server/*/src/**/*.rs")]:
        for path in re.findall(r'include_(?:str|bytes)!\("(\.\./.*?)"\)', file.read_text()):
            named = (file.parent / path).resolve().relative_to(ROOT)
            assert (tmp_path / named).exists(), f"{file} includes {named}"
    for script in re.findall(r"scripts/\S+\.sh", CONTAINERFILE[CONTAINERFILE.index("FROM") :]):
        assert os.access(tmp_path / script, os.X_OK), script
    assert (ROOT / ".dockerignore").readlink().name == ".containerignore"


def test_the_compiler_is_new_enough():
    wanted = re.search(r'^rust-version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.M)[1]
    image = re.search(r"rust:([\d.]+)-", CONTAINERFILE)[1]
    assert [int(part) for part in image.split(".")] >= [int(part) for part in wanted.split(".")]
    assert f"RUSTUP_TOOLCHAIN={image}\n" in CONTAINERFILE


def test_compose_starts_the_program_as_it_can_be_started(tmp_path):
    yaml = pytest.importorskip("yaml")
    file = ROOT / "dist/container/compose.yml"
    service = yaml.safe_load(file.read_text())["services"]["cache"]
    words = service["command"]
    accepts(words, tmp_path)
    suffices(int(service["mem_limit"].removesuffix("m")), words)
    assert service["image"].endswith(f":-nuthatch:{VERSION}}}")
    context = (file.parent / service["build"]["context"]).resolve()
    assert (context / service["build"]["dockerfile"]).is_file()
    published = {port.split(":")[-1] for port in service["ports"]}
    assert published == {"11211", words[words.index("--redis-port") + 1], "9150"}
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["healthcheck"]["test"] == ["CMD", *NUTHATCH_COMMAND, "ping"]


def test_docker_reads_the_compose_file():
    """Its own reading, which needs no engine."""
    compose = ["docker", "compose"]
    if not shutil.which("docker") or subprocess.run([*compose, "version"], capture_output=True, check=False).returncode:
        pytest.skip("no docker compose")
    command = [*compose, "--file", str(ROOT / "dist/container/compose.yml"), "config", "--quiet"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


class Builder:
    """buildah with a store of its own, without the network."""

    def __init__(self, folder):
        self.common = ["buildah", "--storage-driver", "vfs", "--root", str(folder / "store"), "--runroot", str(folder / "run")]

    def __call__(self, *words):
        return subprocess.run([*self.common, *words], capture_output=True, text=True, check=False)

    def started(self, *words):
        return subprocess.Popen([*self.common, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture
def builder(tmp_path):
    if not shutil.which("buildah"):
        pytest.skip("no buildah (scripts/setup-packages.sh)")
    builder = Builder(tmp_path)
    tried = builder("from", "--name", "tried", "scratch")
    if tried.returncode:
        pytest.skip(f"buildah makes no container here: {tried.stderr.strip()[-200:]}")
    yield builder
    builder("rm", "--all")
    builder("rmi", "--all", "--force")


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_the_image_is_built_and_run(builder, tmp_path):
    """The last stage as it is; the first, which fetches a compiler and builds, is what is here already."""
    context = tmp_path / "context"
    subprocess.run([ROOT / "scripts/image-root.sh", NUTHATCH, context / "image"], check=True)
    (context / "image/data").rename(context / "data")
    built = "FROM scratch AS build\nCOPY image /image\nCOPY data /data\n"
    (context / "Containerfile").write_text(built + final_stage())
    made = builder("bud", "--isolation", "chroot", "--format", "docker", "--tag", "nuthatch", "--file", str(context / "Containerfile"), str(context))
    assert made.returncode == 0, made.stderr
    config = json.loads(builder("inspect", "--type", "image", "nuthatch").stdout)["Docker"]["config"]
    assert config["User"] == "65532:65532" and config["Entrypoint"] == NUTHATCH_COMMAND
    assert config["Healthcheck"]["Test"] == ["CMD", *NUTHATCH_COMMAND, "ping"]
    name = builder("from", "--name", "cache", "nuthatch").stdout.strip()
    root = builder("mount", name).stdout.strip()
    assert os.stat(f"{root}/data").st_uid == 65532 and os.stat(f"{root}/usr/bin/nuthatch").st_uid == 0
    assert not os.path.exists(f"{root}/bin/sh") and not os.path.exists(f"{root}/usr/bin/env")
    port = free_port()
    isolated = ["run", "--isolation", "chroot", name, "--", *NUTHATCH_COMMAND]
    ping = [*isolated, "ping", f"127.0.0.1:{port}"]
    assert builder(*ping).returncode != 0
    server = builder.started(*isolated, "-l", "127.0.0.1", "-p", str(port), "-e", "/data/items")
    try:
        while (answered := builder(*ping)).returncode:
            assert server.poll() is None, "the server ended at once"
            time.sleep(0.1)
        assert ": VERSION " in answered.stdout
    finally:
        server.terminate()
        server.wait()
