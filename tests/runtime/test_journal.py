"""The journal by itself: whose rows are written, whose are not, and what a claim must be for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection

from runtime import acts
from runtime.database import connect
from runtime.journal import MOST_AT_ONCE, Claim, Journal, Refused, StaleClaim
from runtime.models import Attempt, Dispatch, FrameValue, LogLine, Run, Wait

WORKER = 7
PROBE = [{"id": "x", "type": "probe"}]


@pytest.fixture
def claims(engine) -> list[Claim]:
    """Three runs that this worker has claimed."""
    version = engine.publish(PROBE)
    engine.sql("insert into journal_mark (worker_id, epoch, batch) values (%s, 0, 0)", WORKER)
    made = []
    for token in (101, 102, 103):
        run = engine.start(version)
        engine.sql(
            """update dispatch set state = 'claimed', token = %s, worker_id = %s, claims = 1,
               leased_until = clock_timestamp() + interval '1 hour' where run_id = %s""", token, WORKER, run,
        )  # fmt: skip
        made.append(Claim(run, token))
    return made


def line(claim: Claim, text: str = "written") -> tuple[str, tuple[Any, ...]]:
    return "log", (claim.run_id, "", "info", text, None)


def attempt(claim: Claim) -> tuple[str, tuple[Any, ...]]:
    return "attempt", (claim.run_id, "", "x", 1, 1, "call", claim.token, "{}")


def settled(claim: Claim) -> tuple[str, tuple[Any, ...]]:
    return "settle", (claim.run_id, "", "x", 1, 1, "answered", None, None, None, None, None)


def journaling(work: Callable[[Journal], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        journal = Journal(lambda: connect("holdfast journal"), WORKER)
        writing = asyncio.create_task(journal.run())
        await asyncio.sleep(0)  # it has begun
        try:
            return await work(journal)
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)

    return asyncio.run(run())


async def all_at_once(journal: Journal, *handed: tuple[Claim, list]) -> list[Any]:
    return await asyncio.gather(*(journal.commit(claim, rows) for claim, rows in handed), return_exceptions=True)


def taken_over(engine, claim: Claim) -> None:
    engine.sql("update dispatch set token = token + 1000 where run_id = %s", claim.run_id)


def written() -> list[int]:
    return sorted(LogLine.objects.values_list("run_id", flat=True))


@pytest.mark.fault(13)
def test_rows_of_a_claim_that_was_lost_are_not_written_and_those_beside_them_are(engine, claims):
    late, good, cancelled = claims
    taken_over(engine, late)
    Dispatch.objects.filter(run_id=cancelled.run_id).delete()
    told = journaling(lambda journal: all_at_once(journal, *((claim, [line(claim)]) for claim in claims)))
    assert [type(one) for one in told] == [StaleClaim, list, StaleClaim]
    assert written() == [good.run_id]
    assert (late.lost, good.lost, cancelled.lost) == (True, False, True)


def test_a_lost_claim_settles_its_calls_and_begins_none(engine, claims):
    late = claims[0]

    async def work(journal: Journal) -> list[Any]:
        await journal.commit(late, [attempt(late)])
        await asyncio.to_thread(outside_of_the_loop)
        first = await all_at_once(journal, (late, [settled(late), line(late)]))
        return first + await all_at_once(
            journal, (late, [("attempt", (*attempt(late)[1][:4], 2, *attempt(late)[1][5:]))])
        )

    def outside_of_the_loop() -> None:
        taken_over(engine, late)
        connection.close()

    told = journaling(work)
    assert [type(one) for one in told] == [StaleClaim, StaleClaim]
    assert [(one.n, one.outcome) for one in Attempt.objects.all()] == [(1, "answered")]
    assert written() == []


def test_a_lost_claim_settles_no_call_of_the_owner_after_it(engine, claims):
    """It stood still from its claim until that one's call was under way, and took it for one that somebody had left behind."""
    late = claims[0]
    now = Claim(late.run_id, late.token + 1000)
    taken_over(engine, late)

    async def work(journal: Journal) -> list[Any]:
        await journal.commit(now, [attempt(now)])
        told = await all_at_once(journal, (late, [settled(late), line(late)]))
        return told + await asyncio.to_thread(outcomes) + await all_at_once(journal, (now, [settled(now)]))

    def outcomes() -> list[Any]:
        found = [one.outcome for one in Attempt.objects.all()]
        connection.close()
        return found

    (stale, open_still, _) = journaling(work)
    assert type(stale) is StaleClaim and open_still is None
    assert Attempt.objects.get().outcome == "answered"


def test_a_claim_that_is_lost_while_others_settle_is_told_and_settles_its_calls(engine, claims, monkeypatch):
    """Two runs are cancelled, one after the other: the second while the end of the first one's call is written. Its owner learns so
    from the watch, beside the journal."""
    first, second, _ = claims
    settle = Journal._settle_unfenced

    async def meanwhile(journal: Journal, entries: list) -> None:
        await settle(journal, entries)
        if entries and not second.lost:
            second.lost = True  # as Execution.lose
            await asyncio.to_thread(cancelled, second)

    async def work(journal: Journal) -> list[Any]:
        await all_at_once(journal, *((claim, [attempt(claim)]) for claim in (first, second)))
        await asyncio.to_thread(cancelled, first)
        async with asyncio.timeout(60):
            return await all_at_once(journal, *((claim, [settled(claim), line(claim)]) for claim in (first, second)))

    def cancelled(claim: Claim) -> None:
        acts.cancel(claim.run_id)
        connection.close()

    monkeypatch.setattr(Journal, "_settle_unfenced", meanwhile)
    assert [type(one) for one in journaling(work)] == [StaleClaim, StaleClaim]
    assert [one.outcome for one in Attempt.objects.all()] == ["answered"] * 2


def test_a_run_is_released_only_when_all_that_happened_to_it_was_acted_upon(engine, claims):
    seen, unseen, _ = claims
    engine.sql("update dispatch set wakes = wakes + 1 where run_id = %s", unseen.run_id)
    told = journaling(lambda journal: all_at_once(
        journal, *((claim, [("release", (claim.run_id, claim.token, claim.wakes))]) for claim in (seen, unseen))
    ))  # fmt: skip
    assert [[kind for kind, *_ in rows] for rows in told] == [["release"], []]
    states = dict(Dispatch.objects.values_list("run_id", "state"))
    assert (states[seen.run_id], states[unseen.run_id]) == ("waiting", "claimed")


def test_whether_a_wait_is_due_is_the_databases_word_and_not_the_workers(engine, clock, claims):
    claim = claims[0]
    wait = Wait.objects.create(run_id=claim.run_id, path="x", kind="timer", due_at=clock.now() + timedelta(hours=1))

    async def work(journal: Journal) -> list[list[tuple]]:
        due = ("due", (claim.run_id, wait.pk))
        early = await journal.commit(claim, [due])
        await asyncio.to_thread(later)
        return [early, await journal.commit(claim, [due]), await journal.commit(claim, [due])]

    def later() -> None:
        clock.advance(hours=1)
        connection.close()

    assert [[kind for kind, *_ in rows] for rows in journaling(work)] == [[], ["due"], []]


def test_rows_that_the_database_refuses_fail_their_run_alone(engine, claims):
    bad = claims[1]
    rows = {claim: [line(claim)] for claim in claims}
    rows[bad].append(("log", (bad.run_id, "", "info", "x", "{no json")))
    told = journaling(lambda journal: all_at_once(journal, *rows.items()))
    assert [type(one) for one in told] == [list, Refused, list]
    assert written() == [claims[0].run_id, claims[2].run_id]


def test_what_was_handed_over_before_the_rows_that_are_refused_is_written_and_what_comes_after_is_not(engine, claims):
    bad, other = claims[:2]

    async def work(journal: Journal) -> list[Any]:
        for text in ("one", "two"):
            journal.add(bad, [line(bad, text)])
        journal.add(bad, [("log", (bad.run_id, "", "info", "x", "{no json"))])
        return await asyncio.gather(
            journal.commit(bad, [line(bad, "three")]), journal.commit(other, [line(other)]), return_exceptions=True
        )

    assert [type(one) for one in journaling(work)] == [Refused, list]
    assert list(LogLine.objects.filter(run_id=bad.run_id).order_by("pk").values_list("text", flat=True)) == ["one", "two"]
    assert written().count(other.run_id) == 1


def test_text_that_is_no_unicode_fails_its_run_alone_and_not_the_journal(engine, claims):
    told = journaling(
        lambda journal: all_at_once(journal, (claims[0], [line(claims[0], "\ud800")]), (claims[1], [line(claims[1])]))
    )
    assert [type(one) for one in told] == [Refused, list]
    assert written() == [claims[1].run_id]


def test_a_session_that_was_shut_out_is_replaced_and_its_batch_is_written_once(engine, claims):
    async def work(journal: Journal) -> None:
        await journal.commit(claims[0], [line(claims[0])])
        await asyncio.to_thread(shut_out)
        await journal.commit(claims[0], [line(claims[0])])

    def shut_out() -> None:
        engine.sql("update journal_mark set epoch = epoch + 1 where worker_id = %s", WORKER)
        connection.close()

    journaling(work)
    assert written() == [claims[0].run_id] * 2


def test_a_lock_that_is_not_got_in_time_is_waited_for_again(engine, claims, database_url):
    """Where the role has a `lock_timeout`: the run is in somebody's hands for a moment, and must not fail for that."""
    tried: list[int] = []

    async def impatient() -> psycopg.AsyncConnection:
        own = await connect("holdfast journal")
        await own.execute("set lock_timeout = '20ms'")
        tried.append(own.info.backend_pid)
        return own

    async def work() -> list[tuple]:
        journal = Journal(impatient, WORKER)
        writing = asyncio.create_task(journal.run())
        try:
            with psycopg.connect(database_url) as holder:
                holder.execute("select from dispatch where run_id = %s for update", [claims[0].run_id])
                commit = asyncio.create_task(journal.commit(claims[0], [line(claims[0])]))
                while len(tried) < 3 and not commit.done():
                    await asyncio.sleep(0.01)
            return await commit
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)

    asyncio.run(work())
    assert written() == [claims[0].run_id]


def test_rows_that_ride_along_are_written_when_the_journal_ends(engine, claims):
    async def work(journal: Journal) -> None:
        journal.add(claims[0], [line(claims[0])])

    journaling(work)
    assert written() == [claims[0].run_id]


def test_the_end_of_a_run_is_its_owners_alone(engine, claims):
    late, good, _ = claims
    taken_over(engine, late)

    def end(claim: Claim) -> tuple[str, tuple[Any, ...]]:
        return "end", (claim.run_id, claim.token, "succeeded", None, None, "title", None, None)

    told = journaling(lambda journal: all_at_once(journal, (late, [end(late)]), (good, [end(good)])))
    assert [type(one) for one in told] == [StaleClaim, list]
    assert dict(Run.objects.filter(pk__in=[late.run_id, good.run_id]).values_list("id", "state")) == {
        late.run_id: "open", good.run_id: "succeeded",
    }  # fmt: skip
    assert not Dispatch.objects.filter(run_id=good.run_id).exists()


def test_what_is_sent_to_the_database_at_once_is_bounded():
    """A hundred files of 10 MiB in one message are more than Postgres takes; it hangs up, and would at every repetition."""
    sizes = []

    class Told(Journal):
        async def _transact(self, entries):
            sizes.append(sum(len(row[4]) for entry in entries for _, row in entry.rows))

    async def write():
        told, content = Told(None, WORKER), "x" * (10 * 1024 * 1024 * 4 // 3)
        for n in range(100):
            told.add(Claim(n, n), [("file", (n, "call", 1, "key", content))])
        await told.flush()

    asyncio.run(write())
    assert sum(sizes) == 100 * (10 * 1024 * 1024 * 4 // 3) and max(sizes) <= MOST_AT_ONCE


def test_what_is_divided_is_all_written_in_order(claims, monkeypatch):
    """Each value is too much for one batch with another; what is small rides along."""
    monkeypatch.setattr("runtime.journal.MOST_AT_ONCE", 100)

    async def work(own: Journal) -> int:
        for n in range(5):
            for claim in claims:
                own.add(claim, [("value", (claim.run_id, "each", 1, n, f'"{"x" * 90}"')), line(claim, str(n))])
        await asyncio.gather(*(own.commit(claim, [line(claim, "last")]) for claim in claims))
        return sum(own.batch_rows.counts)

    assert journaling(work) >= 15
    assert FrameValue.objects.count() == 15
    for claim in claims:
        texts = LogLine.objects.filter(run_id=claim.run_id).order_by("id").values_list("text", flat=True)
        assert list(texts) == ["0", "1", "2", "3", "4", "last"]
