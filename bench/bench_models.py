"""Model calls: throughput and CPU per call against a mock endpoint in a process of its own.

Four clients ask the same question 256 at a time while each answer takes 50 ms: ours with everything it does
(typed parse, adaptive slots, retries armed, cost), a bare aiohttp session that reads the bytes and drops them, a
socket that speaks just enough HTTP, and the `openai` package. They take turns; the best of the rounds counts.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import aiohttp
import openai

from bench.harness import Report
from evenhand.models.config import EndpointConfig, Price
from evenhand.models.connect import connect
from evenhand.models.port import ChatRequest, user

CONCURRENCY = 256
LATENCY = 0.05
CALLS = 1024
ROUNDS = 8
PROMPT = "Grade this answer, please. " * 20
BODY = (
    b'{"model":"m","messages":[{"role":"user","content":"'
    + PROMPT.encode()
    + b'"}],"temperature":0.0,"max_tokens":64}'
)

Ask = Callable[[], Awaitable[object]]


@contextmanager
def server() -> Iterator[str]:
    command = [sys.executable, "-m", "evenhand", "mock-model", "--latency", str(LATENCY), "--answer", "4"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


async def drive(ask: Ask, calls: int) -> tuple[float, float]:
    """Calls per second and CPU seconds per call, once the connections are open."""

    async def worker(count: int) -> None:
        for _ in range(count):
            await ask()

    await asyncio.gather(*(worker(1) for _ in range(CONCURRENCY)))
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(worker(calls // CONCURRENCY) for _ in range(CONCURRENCY)))
    return calls / (time.perf_counter() - wall), (time.process_time() - cpu) / calls


async def ours(url: str) -> tuple[float, float]:
    price = Price(input_usd=1.0, output_usd=1.0)
    model = connect(EndpointConfig(base_url=url, model="m", concurrency=CONCURRENCY, price=price))
    request = ChatRequest(messages=(user(PROMPT),), temperature=0.0, max_tokens=64)
    try:
        return await drive(lambda: model.complete(request), CALLS)
    finally:
        await model.aclose()


async def bare_aiohttp(url: str) -> tuple[float, float]:
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def ask() -> bytes:
            async with session.post(url + "/chat/completions", data=BODY, headers=headers) as response:
                return await response.read()

        return await drive(ask, CALLS)


async def bare_socket(url: str) -> tuple[float, float]:
    parts = urlsplit(url)
    head = f"POST {parts.path}/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(BODY)}\r\n\r\n"
    request = head.encode() + BODY
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask() -> bytes:
        reader, writer = idle.pop() if idle else await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(request)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        body = await reader.readexactly(length)
        idle.append((reader, writer))
        return body

    try:
        return await drive(ask, CALLS)
    finally:
        for _, writer in idle:
            writer.close()


async def openai_package(url: str) -> tuple[float, float]:
    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:

        async def ask() -> object:
            return await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": PROMPT}], temperature=0.0, max_tokens=64
            )

        return await drive(ask, CALLS // 4)


CLIENTS: dict[str, Callable[[str], Awaitable[tuple[float, float]]]] = {
    "evenhand": ours,
    "bare aiohttp": bare_aiohttp,
    "bare socket": bare_socket,
    "openai": openai_package,
}


def run(report: Report) -> None:
    rate = dict.fromkeys(CLIENTS, 0.0)
    cpu = dict.fromkeys(CLIENTS, float("inf"))
    with server() as url:
        for turn in range(ROUNDS):
            for name, client in CLIENTS.items():
                if name == "openai" and turn % 4:
                    continue  # a dozen times slower: two of its rounds are enough

                async def measured(
                    client: Callable[[str], Awaitable[tuple[float, float]]] = client,
                ) -> tuple[float, float]:
                    return await client(url)

                found, cost = asyncio.run(measured())
                rate[name] = max(rate[name], found)
                cpu[name] = min(cpu[name], cost)
    ideal = CONCURRENCY / LATENCY
    bound = min(ideal, rate["bare aiohttp"])
    report.add("ideal rate (concurrency / latency)", f"{ideal:,.0f} calls/s")
    for name in CLIENTS:
        report.add(f"{name}: rate, CPU per call", f"{rate[name]:,.0f} calls/s, {cpu[name] * 1e3:.2f} ms")
    report.add(
        "ours / lower of ideal and bare aiohttp",
        f"{rate['evenhand'] / bound:.2f}",
        "≥ 0.85",
    )
    report.add("CPU per call: openai / ours", f"{cpu['openai'] / cpu['evenhand']:.1f}", "> 1")
    report.add("CPU per call: ours / bare aiohttp", f"{cpu['evenhand'] / cpu['bare aiohttp']:.2f}")
