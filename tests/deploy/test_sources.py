"""Ways to install from the source, and what a release fills in: one version, and paths that exist."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import tomllib

import pytest
from deploy import NUTHATCH, ROOT, VERSION


def metadata():
    command = ["cargo", "metadata", "--no-deps", "--locked", "--offline", "--format-version", "1"]
    return json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)["packages"]


def packages_of(program):
    return [package for package in metadata() if any(t["name"] == program and "bin" in t["kind"] for t in package["targets"])]


def test_cargo_finds_the_program_and_binstall_its_tarball():
    (package,) = packages_of("nuthatch")
    assert package["name"] == "nuthatch-cli" and package["version"] == VERSION
    said = package["metadata"]["binstall"]
    known = {"version": VERSION, "target-arch": os.uname().machine, "bin": "nuthatch", "binary-ext": "", "repo": "REPOSITORY"}
    filled = {name: re.sub(r"\{ ([\w-]+) \}", lambda found: known[found[1]], text) for name, text in said.items()}
    # As scripts/package-tar.sh names it, and what is in it.
    name = f"nuthatch-{VERSION}-{os.uname().machine}"
    assert filled["pkg-url"] == f"REPOSITORY/releases/download/v{VERSION}/{name}.tar.gz" and filled["pkg-fmt"] == "tgz"
    assert filled["bin-dir"] == f"{name}/bin/nuthatch"
    script = (ROOT / "scripts/package-tar.sh").read_text()
    assert "name=nuthatch-$version-$(uname -m)\n" in script and "PREFIX=/ DESTDIR" in script


def test_all_say_one_version():
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    inner = {crate["version"] for crate in workspace["dependencies"].values() if "version" in crate}
    assert workspace["package"]["version"] == VERSION and inner == {VERSION}
    assert {package["version"] for package in metadata()} == {VERSION}
    for lock in ("Cargo.lock", "fuzz/Cargo.lock"):
        locked = tomllib.loads((ROOT / lock).read_text())["package"]
        assert {crate["version"] for crate in locked if crate["name"].startswith("nuthatch") and "source" not in crate} <= {VERSION, "0.0.0"}
    # What scripts/release.sh cut changes.
    script = (ROOT / "scripts/release.sh").read_text()
    for name in re.search(r'^versioned="(.*)"$', script, re.M)[1].split():
        numbers = set(re.findall(r'[-:" ](\d+\.\d+\.\d+)\b', (ROOT / name).read_text()))
        assert numbers - {"127.0.0", "0.0.0"} == {VERSION}, name
    ended = subprocess.run([NUTHATCH, "--version"], capture_output=True, text=True, check=True)
    assert ended.stdout == f"nuthatch {VERSION}\n"


def test_a_formula_is_filled_in(tmp_path):
    """What scripts/release.sh fills in, and nothing else is left open."""
    text = (ROOT / "dist/homebrew/nuthatch.rb.in").read_text()
    script = (ROOT / "scripts/release.sh").read_text()
    left = {name for name in re.findall(r"@(\w+)@", "".join(line for line in text.splitlines(True) if not line.startswith("#")))}
    assert left == set(re.findall(r"s\|@(\w+)@\|", script))
    for path in re.findall(r'"((?:scripts|dist)/[^"]+)"', text):
        assert (ROOT / path).is_file(), path
    if not shutil.which("ruby"):
        pytest.skip("no ruby")
    ended = subprocess.run(["ruby", "-c"], input=re.sub(r"@\w+@", "1", text), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.skipif(not shutil.which("nix-instantiate"), reason="no nix (scripts/setup-deploy.sh)")
def test_nix_reads_the_version_and_the_files(tmp_path):
    """Without nixpkgs, which would have to be fetched: what the expression asks of it is given back."""
    stand_in = """
        let made = import %s/dist/nix/package.nix {
            lib = { cleanSource = path: path; licenses.asl20 = "Apache-2.0"; };
            rustPlatform.buildRustPackage = asked: asked;
            installShellFiles = "shells";
        };
        in { inherit (made) pname version; lock = builtins.pathExists made.cargoLock.lockFile;
             source = builtins.pathExists (made.src + "/crates"); }
    """ % ROOT
    environment = {**os.environ, "NIX_STATE_DIR": str(tmp_path / "state"), "NIX_STORE_DIR": str(tmp_path / "store"), "HOME": str(tmp_path)}
    command = ["nix-instantiate", "--eval", "--strict", "--json", "--expr", stand_in]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {"pname": "nuthatch", "version": VERSION, "lock": True, "source": True}
    parsed = subprocess.run(["nix-instantiate", "--parse", ROOT / "dist/nix/default.nix"], capture_output=True, check=False, env=environment)
    assert parsed.returncode == 0, parsed.stderr


def test_nix_installs_the_pages_that_there_are():
    text = (ROOT / "dist/nix/package.nix").read_text()
    listed = re.search(r'^commands="(.*)"$', (ROOT / "scripts/installed.sh").read_text(), re.M)[1]
    assert f"for command in {listed}; do" in text


def test_what_is_searched_for_is_said():
    """Who looks for a memcached or a redis finds the package."""
    for name in ("scripts/package-deb.sh", "dist/rpm/nuthatch.spec", "dist/homebrew/nuthatch.rb.in", "dist/nix/package.nix"):
        assert "n-memory cache for clients of memcached and redis" in (ROOT / name).read_text(), name


def test_each_way_of_the_document_exists():
    text = (ROOT / "docs/install.md").read_text()
    for path in re.findall(r"(?:scripts|dist|crates)/[\w./-]+\w", text):
        assert (ROOT / path).exists(), path
    package = packages_of("nuthatch")[0]
    assert f"--path {os.path.relpath(os.path.dirname(package['manifest_path']), ROOT)}" in text


@pytest.mark.skipif(not shutil.which("gpg"), reason="no gpg")
def test_checksums_are_signed_if_they_belong_to_the_files():
    # The path of the agent's socket is a short one.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        home, files = pathlib.Path(folder, "home"), pathlib.Path(folder, "files")
        home.mkdir(mode=0o700)
        files.mkdir()
        environment = {**os.environ, "GNUPGHOME": str(home)}

        def run(*command):
            return subprocess.run(command, cwd=files, capture_output=True, text=True, check=False, env=environment)

        (files / "nuthatch.tar.gz").write_text("a tarball\n")
        (files / "SHA256SUMS-x").write_text(run("sha256sum", "nuthatch.tar.gz").stdout)
        made = run("gpg", "--batch", "--passphrase", "", "--quick-generate-key", "release@nuthatch.invalid", "ed25519", "sign")
        assert made.returncode == 0, made.stderr
        sign = [str(ROOT / "scripts/release.sh"), "sign", str(files), "release@nuthatch.invalid"]
        signed = run(*sign)
        assert signed.returncode == 0 and run("gpg", "--verify", "SHA256SUMS-x.asc").returncode == 0, signed.stderr
        (files / "nuthatch.tar.gz").write_text("another\n")
        assert "does not belong to the files" in run(*sign).stderr
        run("gpgconf", "--kill", "all")
