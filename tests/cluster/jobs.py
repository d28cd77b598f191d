"""Jobs of nuthatch-pe under a launcher, on this machine."""

import os
import pathlib
import re
import signal
import subprocess
import threading

from pymemcache.client.base import Client

ROOT = pathlib.Path(__file__).resolve().parents[2]
NUTHATCH_PE = os.environ["NUTHATCH_PE"]
JOBS = {
    "dedicated": ("4", "--servers", "2"),
    "co-located": ("2", "--co-located"),
    "three gateways": ("4", "--servers", "1"),
}


def children(pid):
    """Process ids of what a process has started."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


class Job:
    """A running job, on any free ports; what it says is kept."""

    @staticmethod
    def start(kind, *flags):
        """The launcher's process."""
        pes, *places = JOBS[kind]
        command = ["oshrun", "--oversubscribe", "-n", pes, NUTHATCH_PE, *places]
        command += ["-l", "127.0.0.1", "-p", "0", "-m", "64", "-t", "2", *flags]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def __init__(self, kind, *flags, gateways=2):
        self.process = self.start(kind, *flags)
        self.ports, self.said = [], []
        while len(self.ports) < gateways:
            line = self.process.stderr.readline()
            assert line, self.said
            self.said.append(line)
            self.ports += [int(port) for port in re.findall(r"gateway at \S+:(\d+)", line)]
        # Nobody may wait for a reader.
        threading.Thread(target=self.said.extend, args=(self.process.stderr,), daemon=True).start()

    def clients(self):
        return [Client(("127.0.0.1", port), default_noreply=False) for port in self.ports]

    def pes(self):
        """Process ids of its PEs."""
        return children(self.process.pid)

    def end(self):
        """Tells one PE, which tells the others. (Told itself, the launcher ends them too, but says that it failed.)"""
        os.kill(min(self.pes()), signal.SIGTERM)
        return self.process.wait()
