"""Strings under ckv.prefixes against a server without the module, and one whose filter does nothing: what commands cost, and that
records which came by SET take what those which came by CSET take."""

import os
import time

from load import DEPTH, Data, fill, progress
from measure import growth, medians, redis_benchmark, settle, told
from server import ROOT, Server

# What is compared, and the lines of redis.conf by which it differs; the first is what the others are measured against.
SERVERS = {
    "without the module": {"loadmodule": None},
    "a filter that does nothing": {"loadmodule": os.path.join(ROOT, "build", "filter.so")},
    "no prefix": {},
    "a prefix of every key": {"ckv.prefixes": "*"},
    "a prefix of no key": {"ckv.prefixes": "nothing:"},
}
KEY = "KEY:__rand_int__"  # those that are loaded


def commands(value):
    """The last one deletes what was loaded."""
    return {"SET": ["SET", KEY, value], "GET": ["GET", KEY], "EXISTS": ["EXISTS", KEY], "INCR": ["INCR", "counter:__rand_int__"],
            "HSET": ["HSET", "hash:__rand_int__", "field", "value"], "LPUSH": ["LPUSH", "list", "value"], "DEL": ["DEL", KEY]}


def load(server, options, data):
    fill(server, "strings", data, options.records, digits=12, ttl=())


def speed_of(options, data, servers, depth, words):
    """Rounds by turns, so that what else the machine does hits all alike."""
    requests = options.requests if depth > 1 else max(options.requests // 5, 1)
    runs = {name: [] for name in servers}
    for _ in range(options.rounds):
        for name, server in servers.items():
            runs[name].append(redis_benchmark(server, requests, depth, options.records, *words))
            if words[0] == "DEL":
                load(server, options, data)
    return {name: medians(rounds) for name, rounds in runs.items()}


def speed(options, data):
    servers = {name: Server(options, **config) for name, config in SERVERS.items()}
    try:
        for name, server in servers.items():
            progress.step(f"{name}: load")
            server.start()
            load(server, options, data)
        settle(servers["a prefix of every key"])
        result = {}
        for depth in (1, DEPTH):
            result[depth] = {}
            for command, words in commands(data.values[0].decode("latin-1")).items():
                progress.step(f"{command}, {depth} in a pipeline")
                result[depth][command] = speed_of(options, data, servers, depth, words)
        return result
    finally:
        for server in servers.values():
            server.close()


def grown(options, data, verb, store, config):
    progress.step(f"memory: {verb}")
    with Server(options, **config) as server:
        figures = growth(server, options.records, lambda server: fill(server, store, data, options.records, ttl=()), True)
    return {"used_memory": figures["used_memory"], "rss": figures["rss"]}


def memory(options, data):
    return {"CSET": grown(options, data, "CSET", "ckv", {}), "SET": grown(options, data, "SET", "strings", SERVERS["a prefix of every key"])}


def run(options):
    data = Data.first(options)
    began = time.monotonic()
    found = {"data": data.name, "memory": memory(options, data), "speed": speed(options, data)}
    return told(options, began, f"bench/compare.py transparent --records {options.records} --requests {options.requests} "
                                f"--rounds {options.rounds} --data {data.name}", found)
