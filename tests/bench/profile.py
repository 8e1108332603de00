"""`make profile`: where the time goes in the headline loads, by py-spy and pg_stat_statements, in the folder that OUT names.

For each load a flame graph of the worker processes (`throughput.svg`) and the statements that took longest
(`throughput.txt`). Options: --runs N, --out FOLDER.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from builder.postgres import EmbeddedPostgres
from tests.bench.__main__ import Workers, own_folder, prepare

LONGEST = """
select round(total_exec_time::numeric) as ms, calls, round(mean_exec_time::numeric, 3) as mean_ms, rows, query
from pg_stat_statements where query !~ 'pg_stat_statements' order by total_exec_time desc limit 30
"""


class Watched(Workers):
    """Worker processes that py-spy looks at from the moment when they are up; its picture is there when they have stopped."""

    picture = Path()

    def start(self) -> None:
        from tests.bench import loads

        super().start()
        loads.until_up(self.count)
        command = [".bench/python/bin/py-spy", "record", "--subprocesses", "--rate", "200", "--duration", "36000",
                   "--output", str(self.picture), "--pid", str(self.process.pid)]  # fmt: skip
        self.spy = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def stop(self) -> None:
        if self.process:
            self.spy.send_signal(signal.SIGINT)
            self.spy.wait()
        super().stop()


def main() -> None:
    arguments = argparse.ArgumentParser(prog="tests.bench.profile", description=__doc__)
    arguments.add_argument("--runs", type=int, default=20_000)
    arguments.add_argument("--out", type=Path, default=Path(".profile"))
    chosen = arguments.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    settings = {"shared_preload_libraries": "pg_stat_statements"}
    with own_folder() as folder, EmbeddedPostgres(folder / "postgres", folder / "postgres.log", settings) as postgres:
        prepare(postgres, folder, workers := 2)
        profile(chosen, postgres, Watched(workers))
    print(f"Flame graphs and statements are in {chosen.out}.")


def profile(chosen: argparse.Namespace, postgres: EmbeddedPostgres, workers: Watched) -> None:
    import psycopg
    from tests.bench import loads

    @contextmanager
    def statements(name: str) -> Iterator[None]:
        with psycopg.connect(postgres.url(user="postgres"), autocommit=True) as connection:
            connection.execute("create extension if not exists pg_stat_statements")
            connection.execute("select pg_stat_statements_reset()")
            yield
            cursor = connection.execute(LONGEST)
            lines = ["\t".join(column.name for column in cursor.description)]
            lines += ["\t".join(" ".join(str(value).split()) for value in row) for row in cursor]
            (chosen.out / f"{name}.txt").write_text("\n".join(lines) + "\n")

    try:
        for name, load in {
            "throughput": lambda: loads.throughput(chosen.runs, workers),
            "latency": lambda: loads.latency(300),
            "timers": lambda: loads.lateness(1000),
        }.items():
            print(f"profiling: {name}", file=sys.stderr, flush=True)
            workers.stop()
            workers.picture = chosen.out / f"{name}.svg"
            if name != "throughput":  # which starts its workers itself
                workers.start()
            with statements(name):
                load()
    finally:
        workers.stop()


if __name__ == "__main__":
    main()
