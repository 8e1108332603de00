"""Time-outs that can stand still."""

from __future__ import annotations

import asyncio

import pytest

from runtime.timelimits import TimeLimit


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time the test moves: what waits only for time does not wait."""

    moved = 0.0

    def time(self) -> float:
        return self.moved

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:
            self.moved = max(self.moved, self._scheduled[0].when())
        super()._run_once()


def run(main) -> None:
    with asyncio.Runner(loop_factory=Clock) as runner:
        runner.run(main())


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


def test_whoever_cancels_the_task_is_not_taken_for_the_time_limit():
    async def limited():
        with TimeLimit(5):
            await asyncio.sleep(3)

    async def main():
        task = asyncio.create_task(limited())
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main)
