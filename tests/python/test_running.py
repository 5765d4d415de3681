# SPDX-License-Identifier: Apache-2.0
"""Queries in the background: handles, progress, asyncio."""

import asyncio
import gc
import threading
import time
import weakref

import pytest

import gar
from gar import col

HANG_S = 60  # no test waits longer; nothing here asserts how fast the engine is
ENDLESS = 1 << 45  # rows that no machine gets through within a test


def even(rows):
    return gar.range(rows).where(col("id") % 2 == 0)


def endless():
    """A query that runs until it is stopped and gives no row before."""
    return gar.range(ENDLESS).agg((col("id") % 7).sum().alias("s"))


def wait_until(is_true):
    limit = time.monotonic() + HANG_S
    while not is_true():
        assert time.monotonic() < limit, "nothing happened"
        time.sleep(0.005)


# ---- handles


@pytest.mark.parametrize("rows", [0, 10, 3_000_000])
def test_handle_gives_the_rows(rows):
    handle = even(rows).start()
    wait_until(handle.done)  # without anyone reading
    seen = handle.progress()
    assert (seen.state, seen.rows, seen.rows_read) == ("done", (rows + 1) // 2, rows)
    assert seen.elapsed == handle.progress().elapsed > 0
    df = handle.result()
    assert isinstance(df, gar.DataFrame)
    assert handle.result() is df
    assert len(df) == (rows + 1) // 2
    assert df.agg(col("id").sum()).to_pydict()["id"] == [sum(range(0, rows, 2)) or None if rows else None]
    handle.cancel()  # too late to matter
    assert handle.result() is df
    assert repr(handle).startswith("<gar.QueryHandle Progress(done after ")


def test_handle_waits_no_longer_than_asked():
    handle = endless().start()
    with pytest.raises(gar.exceptions.GarTimeoutError, match="it goes on"):
        handle.result(timeout=0.01)
    with pytest.raises(TimeoutError):
        handle.result(timeout=0)
    assert not handle.done()
    wait_until(lambda: handle.progress().rows_read > 0)
    assert handle.progress().state == "running"
    handle.cancel()
    for _ in range(2):
        with pytest.raises(gar.exceptions.GarCancelledError):
            handle.result(timeout=HANG_S)
    wait_until(handle.done)
    assert handle.progress().state == "cancelled"


def test_deadline_of_a_handle():
    handle = endless().start(timeout=0.05)
    with pytest.raises(gar.exceptions.GarTimeoutError, match="deadline"):
        handle.result()
    wait_until(handle.done)
    assert handle.progress().state == "cancelled"


def test_failed_handle():
    handle = gar.from_pydict({"s": ["1", "x"]}).select(col("s").cast("int64")).start()
    for _ in range(2):
        with pytest.raises(gar.GarError, match="'x'"):
            handle.result()
    wait_until(handle.done)
    assert handle.progress().state == "failed"


def test_cancel_from_other_threads_while_one_waits():
    handle = endless().start()
    threads = [threading.Timer(0.05, handle.cancel) for _ in range(4)]
    for thread in threads:
        thread.start()
    with pytest.raises(gar.exceptions.GarCancelledError):
        handle.result(timeout=HANG_S)
    for thread in threads:
        thread.join()
    assert even(10).count_rows() == 5


def test_threads_wait_for_one_handle():
    handle = even(3_000_000).start()
    found = []
    threads = [threading.Thread(target=lambda: found.append(handle.result())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    assert found == [handle.result()] * 4


def test_dropping_a_handle_stops_its_query():
    handle = endless().start()
    seen = weakref.ref(handle)
    del handle
    gc.collect()
    assert seen() is None  # the census of every test sees that the query is gone


def test_many_handles_at_once():
    handles = [even(1000 * n).start() for n in range(1, 41)]
    assert [len(handle.result()) for handle in handles] == [500 * n for n in range(1, 41)]


def test_handles_are_not_made_by_hand():
    with pytest.raises(TypeError):
        gar.QueryHandle()


# ---- asyncio


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, HANG_S))


def test_await():
    async def main():
        threads = threading.active_count()
        df = await even(2_000_000).start()
        assert threading.active_count() == threads
        return df

    assert len(run(main())) == 1_000_000


def test_await_several_at_once():
    async def main():
        handle = even(2_000_000).start()

        async def wait():
            return await handle

        frames = await asyncio.gather(wait(), wait(), *(even(n).start() for n in (0, 100, 100_000)))
        assert await handle is frames[0] is frames[1]
        return [len(df) for df in frames]

    assert run(main()) == [1_000_000, 1_000_000, 0, 50, 50_000]


def test_await_raises_the_error():
    async def main():
        await gar.from_pydict({"s": ["1", "x"]}).select(col("s").cast("int64")).start()

    with pytest.raises(gar.GarError, match="'x'"):
        run(main())


def test_cancelled_task_cancels_its_query():
    async def main():
        handle = endless().start()

        async def wait():
            await handle

        task = asyncio.create_task(wait())
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return handle

    handle = run(main())
    wait_until(handle.done)
    assert handle.progress().state == "cancelled"


def test_timeout_of_asyncio_cancels_the_query():
    async def main():
        handle = endless().start()

        async def wait():
            return await handle

        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(wait(), 0.05)
        return handle

    handle = run(main())
    wait_until(handle.done)
    assert handle.progress().state == "cancelled"


def test_async_for():
    async def main():
        rows = 0
        async for batch in even(3_000_000):
            assert batch.column_names() == ["id"]
            rows += len(batch)
        return rows

    assert run(main()) == 1_500_000


def test_async_for_keeps_batch_sizes():
    async def main():
        return [len(batch) async for batch in gar.range(1000).into_batches(300)]

    assert run(main()) == [300, 300, 300, 100]


def test_async_for_leaves_room_for_other_tasks():
    async def main():
        turns = 0

        async def other():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        batches = 0
        async for _ in gar.range(2_000_000):
            batches += 1
        task.cancel()
        return turns >= batches > 1

    assert run(main())


def test_async_for_that_is_left_stops_the_query():
    async def main():
        async for batch in gar.range(ENDLESS):
            return len(batch)
        raise AssertionError("no batch came")

    assert run(main()) > 0


def test_cancelled_async_for():
    async def read():
        async for _ in endless():
            raise AssertionError("an endless query has no row")

    async def main():
        task = asyncio.create_task(read())
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())
