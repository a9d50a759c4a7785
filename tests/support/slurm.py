"""A real SLURM cluster on this machine: its daemons started by hand, its nodes network namespaces.

Needs root, `ip`, and Debian's packages `slurm-wlm` and `munge`; `why_not` says what is missing. All
its files are in one folder, and everything that it starts ends with it.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.waiting import wait_until

NETWORK = "10.77.83"
"""Addresses of the nodes (.1, .2, …) and of the controller (.254)."""

NAMES = Path("/etc/netns")
"""Where `ip netns` looks for files of /etc that a namespace has for itself."""

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "srun", "munged", "ip", "unshare")

SWITCH = "MICRONET_CLUSTER"
"""Environment variable without which the tests of the cluster are skipped: they take minutes."""

CONFIG = """
ClusterName=micronet
SlurmctldHost=controller({controller})
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
GresTypes=gpu
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=60
SlurmctldTimeout=10
InactiveLimit=0
KillWait=20
MinJobAge=600
JobRequeue=1
SchedulerParameters=sched_interval=2,bf_interval=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=20
PartitionName=gpu Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=20
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""

DISK_BYTES = 64 << 20
"""Size of the disk that a test may fill."""

GPUS = 2
"""GPUs that each node pretends to have: SLURM counts them, and no process can use one."""

NODE = (
    "NodeName={name} NodeAddr={address} CPUs=4 RealMemory=4000 State=UNKNOWN Feature=fast "
    f"Gres=gpu:{GPUS}"
)


def why_not() -> str | None:
    """Return why no cluster can be started here; None if one can."""
    if os.environ.get(SWITCH, "") in ("", "0"):
        return f"takes minutes: set {SWITCH}=1 to run it"
    if sys.platform != "linux" or os.geteuid() != 0:
        return "needs root on Linux, for network namespaces"
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        return f"needs {', '.join(missing)}: apt-get install slurm-wlm munge iproute2"
    probe = subprocess.run(["ip", "netns", "add", "mn-probe"], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "delete", "mn-probe"], capture_output=True, check=False)
    return "network namespaces are not permitted here" if probe.returncode else None


class Cluster:
    """A running cluster."""

    def __init__(self, folder: Path, nodes: int = 2) -> None:
        self.folder = folder
        self.nodes = [f"mn{number}" for number in range(1, nodes + 1)]
        self.addresses = {name: f"{NETWORK}.{n}" for n, name in enumerate(self.nodes, 1)}
        self.controller = f"{NETWORK}.254"
        self.disk = folder / "disk"
        """A disk of its own, which a test may fill; all nodes see it."""
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def environment(self) -> dict[str, str]:
        """The environment of commands that talk to this cluster."""
        return {
            **os.environ,
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "OMP_NUM_THREADS": "1",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }

    def start(self) -> None:
        """Start the network, the daemons and the nodes; wait until all nodes are idle."""
        self._network()
        self.disk.mkdir()
        _do("mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(self.disk))
        lines = [NODE.format(name=name, address=self.addresses[name]) for name in self.nodes]
        text = CONFIG.format(folder=self.folder, controller=self.controller, nodes="\n".join(lines))
        (self.folder / "slurm.conf").write_text(text)
        files = [self.folder / f"gpu{number}" for number in range(GPUS)]
        for file in files:  # of devices, as SLURM believes
            file.touch()
        gpus = "".join(f"Name=gpu File={file}\n" for file in files)
        (self.folder / "gres.conf").write_text(gpus)
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        socket = self.folder / "munge.socket"
        names = ("pid-file", "log-file", "seed-file")
        own = [f"--{name}={self.folder / f'munge.{name}'}" for name in names]
        self._start(
            "munged",
            ["munged", "--foreground", "--force", f"--socket={socket}", f"--key-file={key}", *own],
        )
        wait_until(socket.exists, "munged's socket")
        self.start_controller()
        for name in self.nodes:
            self.start_node(name)
        wait_until(self.is_idle, f"idle nodes: {self.states()}, see {self.folder}/*.log")

    def start_controller(self) -> None:
        """Start slurmctld, which remembers what it knew before."""
        program = 'hostname controller && exec slurmctld -D -f "$0"'
        words = ["unshare", "--uts", "sh", "-c", program, str(self.folder / "slurm.conf")]
        self._start("slurmctld", words)

    def start_node(self, name: str) -> None:
        """Start a node's daemon in its namespace, with its own host name."""
        (self.folder / f"spool-{name}").mkdir(exist_ok=True)
        program = f'hostname {name} && exec slurmd -D -N {name} -f "$0"'
        inner = ["unshare", "--uts", "sh", "-c", program, str(self.folder / "slurm.conf")]
        self._start(name, ["ip", "netns", "exec", name, *inner])

    def kill(self, name: str) -> None:
        """Kill a daemon, or a node with all that runs on it, without warning."""
        process = self._started.pop(name)
        process.kill()
        process.wait(10)
        if name in self.nodes:
            for pid in self.processes_of(name):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def processes_of(self, name: str) -> list[int]:
        """Return the processes that run on a node."""
        done = subprocess.run(
            ["ip", "netns", "pids", name], capture_output=True, text=True, check=False
        )
        return [int(word) for word in done.stdout.split()]

    def stages_of(self, job: str) -> list[int]:
        """Return the processes of a running job of the pool that do its stage."""
        node = self.job(job)["BatchHost"]
        parents = {pid: _parent(pid) for pid in self.processes_of(node) if _submitted(pid)}
        return [pid for pid, parent in parents.items() if parent in parents]

    def second_node(self, job: str) -> str:
        """Return a node of a running job that is not its first."""
        others = [name for name in self.nodes if name != self.job(job)["BatchHost"]]
        return next(name for name in others if not self.is_free(name))

    def is_free(self, name: str) -> bool:
        """Return whether nothing runs on a node but its daemon."""
        return len(self.processes_of(name)) <= 1

    def cut(self, name: str) -> None:
        """Cut a node off the network."""
        _do("ip", "link", "set", f"{name}-host", "down")

    def mend(self, name: str) -> None:
        """Connect a node again."""
        _do("ip", "link", "set", f"{name}-host", "up")

    def run(
        self, words: Sequence[str], timeout: float = 240, more: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end as a user of this cluster."""
        environment = {**self.environment, **(more or {})}
        return subprocess.run(
            words, capture_output=True, text=True, env=environment, check=False, timeout=timeout
        )

    def states(self) -> str:
        """Return the nodes' states as sinfo tells them."""
        return self.run(["sinfo", "-h", "-N", "-o", "%N=%T"]).stdout.strip()

    def is_idle(self) -> bool:
        """Return whether every node is idle."""
        found = set(self.states().split())
        return {f"{name}=idle" for name in self.nodes} <= found

    def queue(self, form: str = "%i %T %j") -> list[str]:
        """Return the jobs that wait or run."""
        return self.run(["squeue", "-h", "-o", form]).stdout.splitlines()

    def hurry(self) -> None:
        """Let requeued jobs start at once, which SLURM holds back for two minutes.

        A job of which an earlier start is still ending is left alone: the last signals to that one
        would end the new one too, for its steps have the same numbers.
        """
        ending = b"".join(_words(pid) for name in self.nodes for pid in self.processes_of(name))
        for number in self.run(["squeue", "-h", "-t", "PENDING", "-o", "%i"]).stdout.split():
            if b"slurmstepd: [%s." % number.encode() not in ending:
                self.run(["scontrol", "update", f"JobId={number}", "StartTime=now"])

    def job(self, number: str) -> dict[str, str]:
        """Return what the controller knows of a job, by its names."""
        text = self.run(["scontrol", "show", "job", number, "--oneliner"]).stdout
        return dict(word.split("=", 1) for word in text.split() if "=" in word)

    def stop(self) -> None:
        """End everything."""
        with suppress(Exception):
            self.run(["scancel", "--user=root"], timeout=20)
            wait_until(lambda: not self.queue(), "an empty queue", 20)
        for name in [*self.nodes, "slurmctld", "munged"]:
            if process := self._started.pop(name, None):
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(10)
                process.kill()
                process.wait(10)
        for name in self.nodes:
            for pid in self.processes_of(name):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        _do("umount", "--lazy", str(self.disk), check=False)
        self._remove_network()

    def _start(self, name: str, words: Sequence[str]) -> None:
        with (self.folder / f"{name}.out").open("ab") as log:
            self._started[name] = subprocess.Popen(
                words, stdout=log, stderr=log, env=self.environment, start_new_session=True
            )

    def _network(self) -> None:
        self._remove_network()
        _do("ip", "link", "add", "mn-bridge", "type", "bridge")
        _do("ip", "addr", "add", f"{self.controller}/24", "dev", "mn-bridge")
        _do("ip", "link", "set", "mn-bridge", "up")
        known = {"localhost": "127.0.0.1", "controller": self.controller, **self.addresses}
        hosts = "".join(f"{address} {name}\n" for name, address in known.items())
        for name, address in self.addresses.items():
            _do("ip", "netns", "add", name)
            place = NAMES / name  # what `ip netns exec` shows as /etc/hosts
            place.mkdir(parents=True, exist_ok=True)
            (place / "hosts").write_text(hosts)
            peer = ["peer", "name", "eth0", "netns", name]
            _do("ip", "link", "add", f"{name}-host", "type", "veth", *peer)
            _do("ip", "link", "set", f"{name}-host", "master", "mn-bridge", "up")
            inside = ["ip", "-n", name]
            _do(*inside, "addr", "add", f"{address}/24", "dev", "eth0")
            _do(*inside, "link", "set", "eth0", "up")
            _do(*inside, "link", "set", "lo", "up")

    def _remove_network(self) -> None:
        for name in self.nodes:
            _do("ip", "netns", "delete", name, check=False)
            shutil.rmtree(NAMES / name, ignore_errors=True)
        _do("ip", "link", "delete", "mn-bridge", check=False)


def _submitted(pid: int) -> bool:
    """Return whether a process is submitit's, or a fork of it."""
    words = _words(pid).split(b"\0")
    return b"submitit.core._submit" in words and b"python" in words[0]


def _words(pid: int) -> bytes:
    """Return a process's command line, with zeros between the words; nothing if it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _parent(pid: int) -> int:
    """Return a process's parent; 0 if it has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _do(*words: str, check: bool = True) -> None:
    subprocess.run(words, check=check, capture_output=True)


@contextmanager
def running_cluster(folder: Path, nodes: int = 2) -> Iterator[Cluster]:
    """Run a cluster for the time of the body."""
    cluster = Cluster(folder, nodes)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def wait_for_end(cluster: Cluster, job: str, patience: float = 240) -> dict[str, str]:
    """Wait until a job has ended; return what the controller says of it."""
    ended = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED")
    end = time.monotonic() + patience
    while (facts := cluster.job(job)).get("JobState", "") not in ended:
        assert time.monotonic() < end, f"job {job} did not end: {facts}"
        time.sleep(0.5)
    return facts
