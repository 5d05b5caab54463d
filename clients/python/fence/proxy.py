"""The network between the gateways and the store: an HTTP proxy that is late, and that loses answers.

It is a process of its own: `python -m fence.proxy HOST:PORT SEED PORTS [NAME=OTHER]`. It listens on one loopback port for each name in PORTS, so that
every gateway has a path of its own. It takes commands as lines of JSON on stdin and reports on stdout; `network.py` is the other end.

A store that is a Heatsink keeps the name of the directory to itself: with NAME=OTHER, of equal lengths, that table has another name in the store.

A request that was read is always passed on, in time or late, whether its sender is still there or not. That is what a network may do.
Not here: which requests are late, which is for a scenario to say.
"""

import asyncio
import json
import random
import re
import sys
import time

TABLE = re.compile(rb'"TableName"\s*:\s*"([^"]*)"')
LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding:\s*chunked", re.IGNORECASE)
CHECKSUM = re.compile(rb"\r\nx-amz-crc32:", re.IGNORECASE)
TARGET = re.compile(rb"\r\nx-amz-target:\s*[^.\r]*\.(\w+)", re.IGNORECASE)
# The largest head and body that DynamoDB sends or takes fit.
LIMIT = 32 * 1024 * 1024
# Seconds after which a connection to the store is made anew.
IDLE = 10


class Hold:
    """Requests that are kept back, before they are passed on or before they are answered."""

    def __init__(self, command):
        self.number = command["hold"]
        self.paths = command.get("paths")
        self.operations = command.get("operations")
        self.table = command.get("table")
        self.contains = [text.encode() for text in command.get("contains", [])]
        self.answer = command.get("answer", False)
        self.seconds = command.get("seconds")
        self.left = command.get("count", 1 << 30)
        self.released = asyncio.Event()

    def takes(self, path, operation, body):
        if self.left <= 0 or self.released.is_set():
            return False
        if self.paths is not None and path not in self.paths:
            return False
        if self.operations is not None and operation not in self.operations:
            return False
        if self.table is not None and self.table.encode() not in TABLE.findall(body):
            return False
        if any(text not in body for text in self.contains):
            return False
        self.left -= 1
        return True

    async def over(self):
        """Waits until the time is up or the hold is released, whichever is first."""
        try:
            await asyncio.wait_for(self.released.wait(), self.seconds)
        except TimeoutError:
            pass


class Proxy:
    """All paths, and what is done to requests on them."""

    def __init__(self, host, port, seed, rename=None):
        self.store = (host, port)
        self.rename = rename
        self.seed = seed
        self.holds = {}
        self.chance, self.longest, self.lost = 0.0, 0.0, 0.0
        self.connections, self.tasks = 0, set()

    def command(self, command):
        if "hold" in command:
            self.holds[command["hold"]] = Hold(command)
        elif "release" in command:
            hold = self.holds.pop(command["release"], None)
            if hold:
                hold.released.set()
        elif "leave" in command:
            self.holds[command["leave"]].left = 0
        elif "delay" in command:
            self.chance, self.longest, self.lost = command["delay"], command["longest"], command["lost"]
        tell({"done": command["id"]})

    async def connection(self, path, reader, writer):
        self.connections += 1
        # asyncio itself holds on to no task: one that waits for long may be thrown away.
        task = asyncio.current_task()
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        rng = random.Random(f"{self.seed}/{path}/{self.connections}")
        store, used = None, 0.0
        try:
            while True:
                request = await message(reader)
                if request is None:
                    return
                request = renamed(request, self.rename)
                operation = TARGET.search(request[0])
                operation = operation[1].decode() if operation else ""
                hold = next((hold for hold in self.holds.values() if hold.takes(path, operation, request[1])), None)
                if hold and not hold.answer:
                    tell({"held": hold.number, "path": path, "operation": operation})
                    await hold.over()
                await self.pause(rng)
                try:
                    if store is None or hold or time.monotonic() - used > IDLE:
                        # The store closes a connection that was idle for long; a late request has to arrive all the same.
                        store and close(store[1])
                        store = await asyncio.open_connection(*self.store, limit=LIMIT)
                    answer = renamed(await exchange(store, request), self.rename and self.rename[::-1])
                    used = time.monotonic()
                    if hold and hold.answer:
                        tell({"held": hold.number, "path": path, "operation": operation})
                        await hold.over()
                finally:
                    if hold:
                        tell({"passed": hold.number})
                await self.pause(rng)
                if answer is None or rng.random() < self.lost:
                    # Carried out or not, nobody is told.
                    return
                writer.write(answer[0] + answer[1])
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            close(writer)
            if store:
                close(store[1])

    async def pause(self, rng):
        if rng.random() < self.chance:
            await asyncio.sleep(rng.random() * self.longest)


async def message(reader):
    """The next head and body of a connection as they came, or None at its end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    length = LENGTH.search(head)
    if length:
        return head, await reader.readexactly(int(length[1]))
    if not CHUNKED.search(head):
        return head, b""
    body = b""
    while True:
        size = await reader.readuntil(b"\r\n")
        chunk = await reader.readexactly(int(size.split(b";")[0], 16) + 2)
        body += size + chunk
        if int(size.split(b";")[0], 16) == 0:
            return head, body


def renamed(message, rename):
    """With another name in its body. The checksum of that is of no use then."""
    if not message or not rename or rename[0] not in message[1]:
        return message
    return CHECKSUM.sub(rb"\r\nx-former-sum:", message[0]), message[1].replace(*rename)


async def exchange(store, request):
    reader, writer = store
    writer.write(request[0] + request[1])
    await writer.drain()
    return await message(reader)


def close(writer):
    try:
        writer.close()
    except (ConnectionError, RuntimeError):
        pass


def tell(event):
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


async def main():
    host, port = sys.argv[1].rsplit(":", 1)
    rename = tuple(name.encode() for name in sys.argv[4].split("=")) if len(sys.argv) > 4 else None
    proxy = Proxy(host, int(port), sys.argv[2], rename)
    listening = {}
    for path in sys.argv[3].split(","):

        async def serve(reader, writer, path=path):
            await proxy.connection(path, reader, writer)

        server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=LIMIT)
        listening[path] = server.sockets[0].getsockname()[1]
    tell({"listening": listening})
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while line := await commands.readline():
        proxy.command(json.loads(line))


if __name__ == "__main__":
    asyncio.run(main())
