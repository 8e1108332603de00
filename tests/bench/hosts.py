"""Clusters on hosts of their own: network namespaces of this machine, each with its address, the database in another.

One, two and four hosts work off a backlog together; then one is lost with its network, and the others go on with its runs.
The processors are this machine's all the while, so that more hosts are not faster here; what is measured is what they cost the
database, and from that what more of them would. Needs Linux and root.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import psutil
import psycopg

from builder.postgres import EmbeddedPostgres
from tests.bench.figures import median, shown

NETWORK = "10.213.77"
"""A private network that only these namespaces and their bridge have."""
DATABASE = f"{NETWORK}.1"
CLONE_NEWNET = 0x40000000
HOSTS, WORKERS = 4, 1
"""Of how many worker processes each: four with one are as many as two processors can be asked to bear."""


def missing() -> str:
    """Why this cannot be measured here; empty when it can."""
    if platform.system() != "Linux" or os.geteuid() != 0 or not shutil.which("ip"):
        return "network namespaces need Linux, root and the program ip"
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True)
    return f"network namespaces cannot be made here: {tried.stderr.strip()}" if tried.returncode else ""


def measure(folder: Path, rounds: int, runs: int, prepare: Callable[[EmbeddedPostgres, Path, int], None], clusters: type) -> None:
    """Prints the figures. `clusters` makes a cluster of so many worker processes; `prepare` makes the tables."""
    if why := missing():
        print(f"Hosts are left out: {why}.")
        return
    figures: dict[str, list[float]] = {}
    with Network(HOSTS) as network, database(folder, network) as postgres:
        prepare(postgres, folder, WORKERS)
        os.environ["DATABASE_URL"] = f"postgresql://holdfast@{DATABASE}/holdfast"  # for the hosts; this process has its own way
        hosts = Hosts(network, clusters)
        try:
            for _ in range(rounds):
                for count in (1, 2, HOSTS):
                    keep(figures, together(hosts, count, runs))
                keep(figures, idle(hosts, 60))
                keep(figures, lost(hosts, 1000))
        finally:
            hosts.stop()
    report(figures)


def keep(figures: dict[str, list[float]], some: dict[str, float]) -> None:
    for name, value in some.items():
        print(f"{name}: {shown(value)}", file=sys.stderr, flush=True)
        figures.setdefault(name, []).append(value)


class Network:
    """A bridge, and namespaces at it: `names[0]` has the database's address, the others those of the hosts."""

    def __init__(self, hosts: int) -> None:
        self.bridge = f"hf{os.getpid()}"
        self.names = [f"{self.bridge}h{n}" for n in range(hosts + 1)]

    def __enter__(self) -> Network:
        ip("link", "add", self.bridge, "type", "bridge")
        ip("link", "set", self.bridge, "up")
        for n, name in enumerate(self.names):
            ip("netns", "add", name)
            ip("link", "add", f"{self.bridge}v{n}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"{self.bridge}v{n}", "master", self.bridge, "up")
            ip("-n", name, "address", "add", f"{NETWORK}.{n + 1}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_: object) -> None:
        for n, name in enumerate(self.names):
            for gone in (["link", "delete", f"{self.bridge}v{n}"], ["netns", "delete", name]):
                subprocess.run(["ip", *gone], capture_output=True)
        subprocess.run(["ip", "link", "delete", self.bridge], capture_output=True)

    def cut(self, host: int) -> None:
        """Nobody is told: neither side sees an end of its connections."""
        ip("link", "set", f"{self.bridge}v{host}", "down")

    def restore(self, host: int) -> None:
        ip("link", "set", f"{self.bridge}v{host}", "up")

    @contextmanager
    def inside(self, number: int) -> Iterator[None]:
        """Processes that this thread starts meanwhile are on that host."""
        with open("/proc/thread-self/ns/net") as here, open(f"/run/netns/{self.names[number]}") as there:
            enter(there)
            try:
                yield
            finally:
                enter(here)


def enter(namespace: IO[str]) -> None:
    """This thread, from now on. (`os.setns` came with Python 3.12.)"""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace.fileno(), CLONE_NEWNET):
        raise OSError(error := ctypes.get_errno(), os.strerror(error))


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


@contextmanager
def database(folder: Path, network: Network) -> Iterator[EmbeddedPostgres]:
    """Postgres on its host, for the others at its address and for this process by its socket."""
    with ExitStack() as stack:
        with network.inside(0):
            place = (folder / "postgres", folder / "postgres.log", {"listen_addresses": DATABASE})
            postgres = stack.enter_context(EmbeddedPostgres(*place))
        with (postgres.data / "pg_hba.conf").open("a") as allowed:
            allowed.write(f"host all all {NETWORK}.0/24 trust\n")
        with psycopg.connect(postgres.url("postgres", "postgres"), autocommit=True) as admin:
            admin.execute("select pg_reload_conf()")
        yield postgres


class Hosts:
    """One cluster on each of the first `count` hosts; `lose` takes one away as a power cut does."""

    def __init__(self, network: Network, clusters: type) -> None:
        self.network, self.clusters = network, clusters
        self.up: dict[int, Any] = {}

    def start(self, count: int) -> None:
        from tests.bench import loads

        for host in range(1, count + 1):
            self.up[host] = self.clusters(WORKERS)
            with self.network.inside(host):
                self.up[host].start()
        loads.until_up(count * WORKERS)

    def stop(self) -> None:
        for cluster in self.up.values():
            cluster.stop()
        self.up.clear()

    def lose(self, host: int) -> None:
        self.network.cut(host)
        process = psutil.Process(self.up.pop(host).process.pid)
        for one in [process, *process.children(recursive=True)]:
            one.kill()
        process.wait()


def together(hosts: Hosts, count: int, runs: int) -> dict[str, float]:
    """A backlog of three-step runs, worked off by so many hosts. Fails when a run had two owners, or a call was made twice."""
    from runtime.doorbell import ring_after_commit
    from tests.bench import loads

    version = loads.three_steps()
    first = loads.begin(version, runs)
    loads.scalar("update dispatch set due_at = due_at + interval '1 day' where run_id >= %s returning 0", first)
    commits = loads.scalar(COMMITS)
    hosts.start(count)
    wal = loads.scalar(WAL)
    loads.scalar("update dispatch set due_at = holdfast_now() where run_id >= %s returning 0", first)
    ring_after_commit()
    seconds = loads.until_done(version, first)
    wal = loads.scalar(WAL) - wal
    connections = loads.scalar("select count(*) from pg_stat_activity where client_addr is not null")
    hosts.stop()  # what a session counted is told at the latest when it ends
    calls, owners = loads.scalar("select array[count(*), count(distinct (run_id, token))] from attempt where run_id >= %s", first)
    assert (calls, owners) == (3 * runs, runs), f"{calls} calls and {owners} claims for {runs} runs"
    shares = "select min(finished) from (select finished from worker order by id desc limit %s) w"
    return {
        f"{count} hosts: three-step runs a second": runs / seconds,
        f"{count} hosts: fewest runs of a process, of an even share": loads.scalar(shares, count * WORKERS) * count * WORKERS / runs,
        f"{count} hosts: connections a worker process": connections / (count * WORKERS),
        f"{count} hosts: commits a run": (loads.scalar(COMMITS) - commits) / runs,
        f"{count} hosts: KiB of WAL a run": float(wal) / 1024 / runs,
    }  # fmt: skip


def idle(hosts: Hosts, seconds: float) -> dict[str, float]:
    """What hosts with nothing to do ask of the database."""
    from tests.bench import loads

    hosts.start(HOSTS)
    began, commits = time.monotonic(), loads.scalar(COMMITS)
    time.sleep(seconds)
    spent = time.monotonic() - began
    hosts.stop()
    return {"idle: transactions a second of a worker process": (loads.scalar(COMMITS) - commits) / spent / (HOSTS * WORKERS)}


def lost(hosts: Hosts, runs: int) -> dict[str, float]:
    """Of two hosts one goes, in the middle of its calls; seconds until the other has its runs. None of its calls counts twice."""
    from tests.bench import loads

    again = {"on_interrupted": "repeat", "config": {"seconds": 1}}
    version = loads.flow("Lost", *(loads.step(name, **again) for name in "abc"))
    hosts.start(2)
    first = loads.begin(version, runs)
    cluster = psutil.Process(hosts.up[2].process.pid)
    theirs = [child.pid for child in cluster.children(recursive=True)]
    ids = loads.scalar("select array_agg(id) from worker where ended_at is null and pid = any(%s)", theirs)
    held = "select count(*) from dispatch where worker_id = any(%s)"
    while loads.scalar("select count(*) from attempt where run_id >= %s", first) < runs:
        time.sleep(0.05)
    hosts.lose(2)
    began, before = time.monotonic(), loads.scalar(held, ids)
    assert before, "it held nothing"
    some = None
    while left := loads.scalar(held, ids):
        if left < before and some is None:
            some = time.monotonic() - began
        time.sleep(0.05)
    last = time.monotonic() - began
    loads.until_done(version, first)
    hosts.stop()
    hosts.network.restore(2)
    calls = loads.scalar("select count(*) from attempt where run_id >= %s and outcome = 'answered'", first)
    assert calls == 3 * runs, f"{calls} answered calls for {runs} runs"
    return {"a host is lost: runs in its hands": before, "a host is lost: seconds until the first goes on": some or last,
            "a host is lost: seconds until the last goes on": last}  # fmt: skip


COMMITS = "select xact_commit::float8 from pg_stat_database where datname = current_database()"
WAL = "select pg_current_wal_lsn() - '0/0'"


def report(figures: dict[str, list[float]]) -> None:
    """The figures, and what they make of 1, 10 and 100 such hosts: straight lines through what was measured with four."""
    print("\n| hosts | median | range |\n|---|---:|---:|")
    for name, values in figures.items():
        print(f"| {name} | {shown(median(values))} | {shown(min(values))} – {shown(max(values))} |")
    each, commits, wal = (median(figures[f"{HOSTS} hosts: {name}"]) for name in (
        "connections a worker process", "commits a run", "KiB of WAL a run"))  # fmt: skip
    idle = median(figures["idle: transactions a second of a worker process"])
    print(f"\nEach thousand runs a second: {shown(1000 * commits)} commits a second and {shown(1000 * wal / 1024)} MiB of WAL a second."
          "\n\n| hosts | worker processes | connections | transactions a second when idle |\n|---:|---:|---:|---:|")
    for hosts in (1, 10, 100):
        print(f"| {hosts} | {hosts * WORKERS} | {shown(hosts * WORKERS * each)} | {shown(hosts * WORKERS * idle)} |")
