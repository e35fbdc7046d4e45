"""A service in asyncio that runs jobs for others: a line of JSON for each request, and one for each status.

python service.py [EXECUTOR]

$ echo '["/bin/echo", "hello"]' | nc -N localhost 8642
{"state": "QUEUED", ...}

Concurrent requests of clients are submitted together. If a client disconnects, its job is cancelled.
"""

from __future__ import annotations

import asyncio
import json
import sys

import jpsi
from jpsi import aio

PORT = 8642


class Service:
    """A server that runs jobs of its clients by one executor."""

    def __init__(self, executor: jpsi.JobExecutor) -> None:
        self.executor = executor

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client: each line is the list of words of a command."""
        async for line in reader:
            try:
                executable, *arguments = json.loads(line)
                await self.run(jpsi.Job(jpsi.JobSpec(executable, arguments)), writer)
            except (ValueError, jpsi.JpsiError) as error:
                await send(writer, {"error": str(error)})
            except ConnectionError:
                break
        writer.close()

    async def run(self, job: jpsi.Job, writer: asyncio.StreamWriter) -> None:
        """Run a job, and send each of its statuses."""
        await aio.submit(job, self.executor)
        try:
            async for status in aio.events(job):
                event: dict[str, object] = {
                    "id": job.id,
                    "state": str(status.state),
                    "exit_code": status.exit_code,
                }
                if status.final and job.streams is not None:
                    event["output"] = job.streams.stdout.read_text(errors="replace")
                await send(writer, event)
        except BaseException:
            # the client has gone, or the service is stopped
            await asyncio.to_thread(job.cancel)
            raise


async def send(writer: asyncio.StreamWriter, event: dict[str, object]) -> None:
    writer.write(json.dumps(event).encode() + b"\n")
    await writer.drain()


async def main(name: str | None = None) -> None:
    service = Service(jpsi.JobExecutor(name))
    async with await asyncio.start_server(service.answer, "localhost", PORT) as server:
        await server.serve_forever()


if __name__ == "__main__":
    if sys.argv[2:]:
        sys.exit("usage: python service.py [EXECUTOR]")
    try:
        asyncio.run(main(*sys.argv[1:]))
    except jpsi.JpsiError as error:
        sys.exit(str(error))
