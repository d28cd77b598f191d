"""Writes an OCI archive of one layer: oci-archive.py FOLDER ARCHIVE NAME:TAG

The same folder gives the same bytes: names are sorted, times are 0. The image runs the server as a user without rights,
in the folder /data, as Containerfile's does. (OCI image specification 1.1; `manifest.json` besides, for older `docker
load`. The health check is Docker's: the specification has none, and other programs skip it.)
"""

import gzip
import hashlib
import io
import json
import platform
import sys
import tarfile

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
USER = 65532
SECOND = 10**9
HEALTH = {
    "Test": ["CMD", "/usr/bin/nuthatch", "ping"],
    "Interval": 30 * SECOND,
    "Timeout": 5 * SECOND,
    "StartPeriod": 60 * SECOND,
    "Retries": 3,
}


def plain(entry):
    entry.mtime, entry.uname, entry.gname = 0, "", ""
    entry.uid = entry.gid = USER if entry.name == "data" else 0
    return entry


def layer(folder):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(folder, arcname="", filter=lambda entry: plain(entry) if entry.name else None, recursive=False)
        for name in sorted(tarfile.os.listdir(folder)):
            tar.add(f"{folder}/{name}", arcname=name, filter=plain)
    return packed.getvalue()


class Archive:
    def __init__(self, path):
        self.tar = tarfile.open(path, "w")

    def put(self, name, data):
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(data), 0o644
        self.tar.addfile(entry, io.BytesIO(data))

    def blob(self, data, kind):
        digest = hashlib.sha256(data).hexdigest()
        self.put(f"blobs/sha256/{digest}", data)
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data)}


def main(folder, path, name):
    archive = Archive(path)
    clear = layer(folder)
    packed = archive.blob(gzip.compress(clear, compresslevel=6, mtime=0), "application/vnd.oci.image.layer.v1.tar+gzip")
    config = {
        "architecture": MACHINES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "WorkingDir": "/data",
            "Entrypoint": ["/usr/bin/nuthatch"],
            "ExposedPorts": {"11211/tcp": {}},
            "StopSignal": "SIGTERM",
            "Healthcheck": HEALTH,
            "Labels": {"org.opencontainers.image.title": "nuthatch", "org.opencontainers.image.licenses": "Apache-2.0"},
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(clear).hexdigest()}"]},
    }
    config = archive.blob(json.dumps(config).encode(), "application/vnd.oci.image.config.v1+json")
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [packed],
    }
    manifest = archive.blob(json.dumps(manifest).encode(), "application/vnd.oci.image.manifest.v1+json")
    manifest["annotations"] = {
        "org.opencontainers.image.ref.name": name.partition(":")[2],
        "io.containerd.image.name": f"docker.io/library/{name}",
    }
    archive.put("index.json", json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode())
    archive.put("oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}).encode())
    blob = "blobs/sha256/{}".format
    old = {"Config": blob(config["digest"][7:]), "RepoTags": [name], "Layers": [blob(packed["digest"][7:])]}
    archive.put("manifest.json", json.dumps([old]).encode())
    archive.tar.close()


main(*sys.argv[1:])
