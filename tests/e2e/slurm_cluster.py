# SPDX-License-Identifier: Apache-2.0
"""A real Slurm cluster on this one host: munged, slurmctld and a slurmd per node, all in one folder.

Needs root and Debian's packages slurm-wlm and munge. Everything is ended when the `with` block is left.
"""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time


class Unavailable(Exception):
    """This machine cannot run the daemons; the text says why."""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Cluster:
    def __init__(self, nodes=2):
        self.names = [f"node{index + 1}" for index in range(nodes)]
        self.daemons = []

    def __enter__(self):
        missing = [name for name in ("munged", "slurmctld", "slurmd", "srun") if self.program(name) is None]
        if missing:
            raise Unavailable(f"not installed: {', '.join(missing)} (packages slurm-wlm and munge)")
        if os.geteuid() != 0:
            raise Unavailable("slurmd and slurmctld have to be started by root")
        # A test that is ended for taking too long must not leave daemons behind.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="joulemark-slurm-"))
        try:
            self.configure()
            self.start()
        except BaseException:  # the end that SIGTERM asks for, too
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
        for daemon in reversed(self.daemons):
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def program(name):
        return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")

    def environment(self):
        return dict(os.environ, SLURM_CONF=str(self.folder / "slurm.conf"))

    def configure(self):
        folder, host = self.folder, socket.gethostname()
        control, *ports = free_ports(1 + len(self.names))
        cpus = os.cpu_count()
        (folder / "key").write_bytes(os.urandom(128))
        (folder / "key").chmod(0o400)
        for name in ("state", *(f"spool.{node}" for node in self.names)):
            (folder / name).mkdir()
        nodes = "\n".join(
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} State=UNKNOWN"
            for name, port in zip(self.names, ports))
        (folder / "slurm.conf").write_text(f"""
ClusterName=joulemark
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
{nodes}
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
""")

    def daemon(self, *words):
        log = open(self.folder / f"{words[0]}.{len(self.daemons)}.out", "w")
        self.daemons.append(subprocess.Popen([self.program(words[0]), *words[1:]], stdin=subprocess.DEVNULL,
                                             stdout=log, stderr=log, env=self.environment()))

    def start(self):
        folder = self.folder
        self.daemon("munged", "--foreground", "--force", f"--key-file={folder}/key", f"--socket={folder}/munge.socket",
                    f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log",
                    f"--seed-file={folder}/munged.seed")
        self.wait_until(lambda: (folder / "munge.socket").exists(), "munged does not listen")
        self.daemon("slurmctld", "-D", "-f", str(folder / "slurm.conf"))
        for name in self.names:
            self.daemon("slurmd", "-D", "-N", name, "-f", str(folder / "slurm.conf"))
        self.wait_until(self.ready, "the nodes do not become idle")

    def ready(self):
        sinfo = subprocess.run(["sinfo", "-h", "-N", "-o", "%N %T"], env=self.environment(), text=True,
                               capture_output=True)
        return sinfo.stdout.split() == [word for name in self.names for word in (name, "idle")]

    def wait_until(self, condition, complaint, timeout_s=30):
        deadline = time.monotonic() + timeout_s
        while not condition():
            dead = [daemon.args[0] for daemon in self.daemons if daemon.poll() is not None]
            if dead or time.monotonic() > deadline:
                raise Unavailable(f"{complaint}; ended: {dead or 'none'}; logs: {self.logs()}")
            time.sleep(0.1)

    def logs(self):
        return " | ".join(f"{path.name}: {path.read_text(errors='replace')[-400:]}"
                          for path in sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*.out")))
