"""Time-outs that can stand still."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest

from runtime.timelimits import TimeLimit


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time the test moves: what waits only for time does not wait."""

    moved = 0.0

    def time(self) -> float:
        return self.moved

    def _run_once(self) -> None:
        waiting = [timer.when() for timer in self._scheduled if not timer.cancelled()]
        if waiting and not self._ready:
            self.moved = max(self.moved, min(waiting))
        super()._run_once()


def run(main) -> None:
    """In a thread of its own: a browser's tests leave a loop running in this one."""

    def alone() -> None:
        with asyncio.Runner(loop_factory=Clock) as runner:
            runner.run(main())

    with ThreadPoolExecutor(1) as threads:
        threads.submit(alone).result()


def test_what_takes_too_long_ends_with_a_time_out_and_what_does_not_goes_on():
    async def main():
        with TimeLimit(5):
            await asyncio.sleep(4.9)
        with pytest.raises(TimeoutError), TimeLimit(5):
            await asyncio.sleep(5.1)
        await asyncio.sleep(100)  # no cancellation is left over
        assert asyncio.current_task().cancelling() == 0

    run(main)


def test_time_that_stands_still_does_not_count_and_all_other_does():
    async def main():
        with TimeLimit(5) as limit:
            await asyncio.sleep(2)
            with limit.standing_still():
                await asyncio.sleep(50)
            await asyncio.sleep(2.9)
        with pytest.raises(TimeoutError), TimeLimit(5) as limit:
            await asyncio.sleep(2)
            with limit.standing_still():
                with limit.standing_still():
                    await asyncio.sleep(2)
                await asyncio.sleep(0.5)
            await asyncio.sleep(3.1)
        await asyncio.sleep(100)

    run(main)


def test_a_limit_begins_anew_shorter_and_longer():
    async def main():
        with TimeLimit(5) as limit:
            await asyncio.sleep(4)
            limit.restart(10)
            await asyncio.sleep(9)
        with pytest.raises(TimeoutError), TimeLimit(50) as limit:
            limit.restart(1)
            await asyncio.sleep(2)
        assert asyncio.get_running_loop().time() == pytest.approx(14)

    run(main)


def test_time_stands_still_until_the_last_of_several_has_left():
    async def waits(limit: TimeLimit, begins: float) -> None:
        await asyncio.sleep(begins)
        with limit.standing_still():
            await asyncio.sleep(10)

    async def main():
        with pytest.raises(TimeoutError), TimeLimit(5) as limit:
            await asyncio.gather(waits(limit, 1), waits(limit, 6))  # still from 1 to 16
            await asyncio.sleep(100)
        assert asyncio.get_running_loop().time() == pytest.approx(20)

    run(main)


def test_a_limit_begins_anew_while_it_stands_still():
    async def main():
        with pytest.raises(TimeoutError), TimeLimit(5) as limit:
            with limit.standing_still():
                await asyncio.sleep(10)
                limit.restart(2)
                await asyncio.sleep(10)
            await asyncio.sleep(100)
        assert asyncio.get_running_loop().time() == pytest.approx(22)

    run(main)


def test_an_answer_at_the_instant_of_the_time_out_is_one_or_the_other_and_leaves_nothing_behind():
    async def main():
        for seconds in (4.999, 5, 5.001):
            done = asyncio.get_running_loop().create_future()
            try:
                with TimeLimit(5):
                    timer = asyncio.get_running_loop().call_later(seconds, lambda done=done: done.done() or done.set_result(1))
                    await done
            except TimeoutError:
                assert seconds >= 5
            timer.cancel()
            await asyncio.sleep(100)
            assert asyncio.current_task().cancelling() == 0

    run(main)


def test_of_two_limits_the_outer_one_rings_while_the_inner_one_stands_still():
    async def main():
        with pytest.raises(TimeoutError), TimeLimit(3), TimeLimit(10) as inner, inner.standing_still():
            await asyncio.sleep(100)
        assert asyncio.get_running_loop().time() == pytest.approx(3)
        await asyncio.sleep(100)

    run(main)


@pytest.mark.parametrize(("seconds", "still"), [(3, False), (100, True)], ids=["in time", "standing still"])
def test_whoever_cancels_the_task_is_not_taken_for_the_time_limit(seconds, still):
    async def limited():
        with TimeLimit(5) as limit, limit.standing_still() if still else nullcontext():
            await asyncio.sleep(seconds)

    async def main():
        task = asyncio.create_task(limited())
        await asyncio.sleep(50 if still else 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main)


def test_many_short_blocks_share_one_timer_and_a_long_one_gets_its_own():
    async def main():
        loop = asyncio.get_running_loop()
        for _ in range(100):
            with TimeLimit(5):
                assert len(loop._scheduled) == 1
        with pytest.raises(TimeoutError), TimeLimit(5):
            await asyncio.sleep(6)
        assert loop.time() == 5
        with TimeLimit(5):  # after the shared one has rung
            await asyncio.sleep(4)

    run(main)
