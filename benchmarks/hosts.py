"""Count operations and bytes exchanged on 1, 2 and 3 hosts: training, soft labels, sensitivity.

Hosts are network namespaces of this machine, one process each under torchrun; needs root and `ip`.
Bytes are those that the interface of a host sends; operations are the multiplications and additions
of matrix products, and the number of torch's operations that a process calls. No seconds: the
hosts share cores.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

NETWORK, BRIDGE, PORT = "10.77.84", "mh-bridge", 29_555

SHAPE: dict[str, Any] = {
    "model.cutoffs": [300, 900],
    "model.embedding_widths": [48, 16, 8],
    "model.width": 48,
    "model.layers": 2,
    "model.heads": 2,
    "model.key_width": 24,
    "model.value_width": 24,
    "model.ffn_width": 96,
    "model.context": 17,
    "train.batch": 6,
    "train.window": 64,
    "train.precision": "float32",
}
STEPS, SHARDS, ANALYSED, GRID = 3, 12, 256, (0.3, 0.6)


class Calls(TorchDispatchMode):
    """Counts torch's operations."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


def sent_bytes() -> int:
    """Return what this host's interface has sent since it exists."""
    lines = Path("/proc/net/dev").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[9]) for line in lines if line.strip().startswith("eth0:"))


def worker(folder: Path) -> None:
    """Do all three kinds of work as one of the hosts' processes, and write what was counted."""
    from micronet_lm.compression.sensitivity import analyse
    from micronet_lm.compression.softlabels import write_soft_labels
    from micronet_lm.config import load_recipe
    from micronet_lm.corpus import Corpus
    from micronet_lm.model import LanguageModel
    from micronet_lm.training import Run, next_word_loss
    from micronet_lm.training.loop import make_deterministic
    from micronet_lm.training.processes import Processes, joined_processes
    from micronet_lm.training.trainer import Trainer

    make_deterministic()
    corpus = Corpus.open(folder / "corpus")
    recipe = load_recipe("demo", {**SHAPE, "model.vocabulary": len(corpus.vocabulary)})
    found: dict[str, dict[str, float]] = {}

    @contextmanager
    def counted(name: str, processes: Processes) -> Iterator[None]:
        processes.wait()
        before = sent_bytes()
        with FlopCounterMode(display=False) as flops, Calls() as calls:
            yield
        own = {"operations": flops.get_total_flops(), "calls": calls.count}
        processes.wait()
        found[name] = {**own, "bytes": sent_bytes() - before}

    with joined_processes() as processes:
        with counted("nothing", processes):
            pass
        run = Run(folder / f"run-{processes.count}")
        trainer = Trainer(run, recipe, corpus, processes, next_word_loss)
        trainer.step()  # buckets of gradients are laid out after the first
        with counted("training", processes):
            for _ in range(STEPS):
                trainer.step()
        parameters = sum(p.numel() for p in trainer.model.parameters())
        del trainer
        torch.manual_seed(0)
        model = LanguageModel(recipe.model, recipe.cache).eval()
        place = folder / f"labels-{processes.count}"
        tokens = corpus.tokens("train")
        with counted("soft labels", processes):
            write_soft_labels(
                model, corpus, place, shard_tokens=-(-tokens // SHARDS), quiet=True, count=10
            )
        points = folder / f"points-{processes.count}.jsonl"
        with counted("sensitivity", processes):
            result = analyse(model, corpus.split("valid")[:ANALYSED], points, processes, grid=GRID)
        found["facts"] = {
            "parameters": parameters,
            "tokens": tokens,
            "points": 1 + sum(map(len, result.losses.values())),
        }
        said = processes.texts(json.dumps(found))
        if processes.leads:
            (folder / f"hosts-{processes.count}.json").write_text(f"[{','.join(said)}]")


@contextmanager
def network(hosts: int) -> Iterator[list[str]]:
    """Make namespaces that see each other, and nothing else; return the words that enter each."""
    names = [f"mh{number}" for number in range(hosts)]
    try:
        _do("ip", "link", "add", BRIDGE, "type", "bridge")
        _do("ip", "link", "set", BRIDGE, "up")
        for number, name in enumerate(names, 1):
            _do("ip", "netns", "add", name)
            peer = ["peer", "name", "eth0", "netns", name]
            _do("ip", "link", "add", f"{name}-host", "type", "veth", *peer)
            _do("ip", "link", "set", f"{name}-host", "master", BRIDGE, "up")
            _do("ip", "-n", name, "addr", "add", f"{NETWORK}.{number}/24", "dev", "eth0")
            for link in ("eth0", "lo"):
                _do("ip", "-n", name, "link", "set", link, "up")
        yield names
    finally:
        for name in names:
            _do("ip", "netns", "delete", name, check=False)
        _do("ip", "link", "delete", BRIDGE, check=False)


def _do(*words: str, check: bool = True) -> None:
    subprocess.run(words, check=check, capture_output=True)


def on_hosts(folder: Path, hosts: int) -> list[dict[str, dict[str, float]]]:
    """Run the workers on so many hosts; return what each has counted."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0"}
    with network(hosts) as names:
        started = []
        for number, name in enumerate(names):
            words = ["ip", "netns", "exec", name, sys.executable, "-m", "torch.distributed.run"]
            words += [f"--nnodes={hosts}", "--nproc-per-node=1", f"--node-rank={number}"]
            words += [f"--master-addr={NETWORK}.1", f"--master-port={PORT}"]
            words += [__file__, "--worker", str(folder)]
            started.append(subprocess.Popen(words, env=environment))
        codes = [process.wait() for process in started]
    if any(codes):
        raise SystemExit(f"the processes on {hosts} hosts ended with {codes}")
    found: list[dict[str, dict[str, float]]] = json.loads(
        (folder / f"hosts-{hosts}.json").read_text()
    )
    return found


def make_text(folder: Path) -> None:
    """Build a corpus of random words with frequencies by Zipf's law."""
    from micronet_lm.config import CorpusConfig
    from micronet_lm.training.preparation import make_corpus

    numbers = random.Random(0)  # noqa: S311
    words = [f"w{n}" for n in range(2000)]
    weights = [1 / (n + 1) for n in range(2000)]
    lines = (" ".join(numbers.choices(words, weights, k=20)) for _ in range(400))
    (folder / "text.txt").write_text("\n".join(lines) + "\n")
    config = CorpusConfig(source=str(folder / "text.txt"), min_count=1)
    make_corpus(config, folder / "corpus")


def summary(hosts: Mapping[int, list[dict[str, dict[str, float]]]]) -> list[dict[str, Any]]:
    """Return one row per kind of work and number of hosts; numbers of a training are per step."""
    rows = []
    for kind in ("training", "soft labels", "sensitivity"):
        for count, found in hosts.items():
            part = STEPS if kind == "training" else 1
            own = [process[kind] for process in found]
            rows.append(
                {
                    "work": kind,
                    "hosts": count,
                    "operations": [process["operations"] / part for process in own],
                    "calls": [process["calls"] / part for process in own],
                    "bytes": [process["bytes"] / part for process in own],
                }
            )
    return rows


def main() -> None:
    """Count on 1, 2 and 3 hosts, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.worker:
        worker(arguments.worker)
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_text(folder)
        hosts = {count: on_hosts(folder, count) for count in (1, 2, 3)}
        same = all(
            file.read_bytes() == (folder / f"labels-{count}" / file.name).read_bytes()
            for file in (folder / "labels-1").glob("*.npy")
            for count in (2, 3)
        )
    facts = {**hosts[1][0]["facts"], "same labels": same}
    rows = summary(hosts)
    if arguments.json:
        print(json.dumps({"facts": facts, "rows": rows}))
        return
    print(", ".join(f"{name} {value:,}" for name, value in facts.items()))
    for row in rows:
        told = (f"{key} {_list(row[key])}" for key in ("operations", "calls", "bytes"))
        print(f"{row['work']} on {row['hosts']}:", "; ".join(told))


def _list(values: list[float]) -> str:
    return " / ".join(f"{value:,.0f}" for value in values)


if __name__ == "__main__":
    main()
