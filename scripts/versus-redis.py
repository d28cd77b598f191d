#!/usr/bin/env python3
"""redis-benchmark against redis-server and ours, turn by turn: requests a second, and the server's processor time an
operation (of /proc/PID/stat), at pipelines of 1, 10 and 100.

    scripts/versus-redis.py [REQUESTS [ROUNDS]]

Both have one thread that serves, and no files. The medians of the rounds are told.
"""

import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

NUTHATCH = os.environ.get("NUTHATCH", "target/release/nuthatch")
REQUESTS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
TESTS = ["set", "get", "incr", "mset"]
PORTS = {"redis": 21_379, "ours": 21_380}
TICK = os.sysconf("SC_CLK_TCK")


def processor_seconds(process):
    with open(f"/proc/{process.pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def start(name, folder):
    port = str(PORTS[name])
    if name == "redis":
        command = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        command += ["--dir", folder, "--maxmemory", "512mb", "--maxmemory-policy", "allkeys-lru"]
    else:
        command = [NUTHATCH, "-l", "127.0.0.1", "-p", "0", "--redis-port", port, "-t", "1", "-m", "512"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        try:
            socket.create_connection(("127.0.0.1", int(port))).close()
            return process
        except OSError:
            assert process.poll() is None, f"{name} ended"
            time.sleep(0.01)


def measure(name, process, test, pipeline):
    requests = max(REQUESTS * min(pipeline, 10) // 10, 1000)
    command = ["redis-benchmark", "-p", str(PORTS[name]), "-t", test, "-n", str(requests), "-P", str(pipeline)]
    command += ["-c", "50", "-r", "100000", "-d", "64", "--csv"]
    before = processor_seconds(process)
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    spent = processor_seconds(process) - before
    rate = float(re.findall(r'"([\d.]+)"', said.splitlines()[-1])[0])
    return rate, spent / requests * 1e9


def main():
    with tempfile.TemporaryDirectory() as folder:
        processes = {name: start(name, folder) for name in PORTS}
        try:
            print("test  pipeline  redis/s  ours/s  redis ns CPU/op  ours ns CPU/op  ratio")
            for test in TESTS:
                for pipeline in (1, 10, 100):
                    found = {name: [] for name in PORTS}
                    for _ in range(ROUNDS):
                        for name, process in processes.items():
                            found[name].append(measure(name, process, test, pipeline))
                    medians = [[statistics.median(column) for column in zip(*found[name])] for name in ("redis", "ours")]
                    (redis_rate, redis_cpu), (our_rate, our_cpu) = medians
                    print(f"{test:5} {pipeline:4} {redis_rate:12.0f} {our_rate:12.0f} {redis_cpu:10.0f} {our_cpu:10.0f} {our_cpu / redis_cpu:6.2f}", flush=True)
        finally:
            for process in processes.values():
                process.terminate()
                process.wait()


main()
