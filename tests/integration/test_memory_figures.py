"""What the server says that maps take, what ckv says, and by how much memory really grew: the same. And
memory in pieces is put together: by ckv, and by active defragmentation where the server can do that."""

import itertools
import random
import re
import time

import pytest
import redis

from helpers import assert_stored, info, load, map_keys, texts, wait_for
from server import SANITIZERS

RECORDS = 200_000
MB = 1 << 20


def all_moved(r):
    """Waits until no blocks are moved together any more: two of each are there meanwhile, a few hundred KB."""
    moved = []
    while len(moved) < 3 or len(set(moved[-3:])) > 1:
        time.sleep(1.2)  # it looks once a second whether there is something to gain
        moved.append(info(r)["defrag_moved"])


def used_memory(server):
    """Without what a connection's buffers take: a new one, and nothing else."""
    with server.client() as r:
        all_moved(r)
        wait_for(lambda: r.info("clients")["connected_clients"] == 1)
        wait_for(lambda: r.info("memory")["lazyfree_pending_objects"] == 0)
        time.sleep(0.2)
        return r.info("memory")["used_memory"]


def test_memory_usage_info_and_used_memory_agree(own_server):
    count = RECORDS
    # No training but the one that is asked for: one under way would be in the figures.
    server = own_server({"ckv.maps": 64, "ckv.train-after": "1gb"})
    # Half of it shrinks, half can't: so much that working memory, zstd's above all, some 0.3 MB, does not matter.
    rng = random.Random(1)
    large = [rng.randbytes(5000) for _ in range(20)]
    dense = [rng.randbytes(rng.randint(60, 120)) for _ in range(count // 2)]
    empty = used_memory(server)
    with server.client() as r:
        load(r, texts(count // 2) + dense + large, ttl=1000)
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
        usage = sum(r.execute_command("MEMORY", "USAGE", key) for key in map_keys(r))
        figures = info(r)
    grown = used_memory(server) - empty
    assert figures["large_records"] == 20
    own = figures["page_bytes"] + figures["large_bytes"]
    assert usage == pytest.approx(own, rel=0.02)
    assert usage + figures["dictionary_bytes"] == pytest.approx(grown, rel=0.02)
    assert figures["bytes_per_record"] * figures["records"] == pytest.approx(grown, rel=0.03)


def fragmentation(r):
    """Bytes that the allocator holds in pages of which something is in use, but not this."""
    memory = r.info("memory")
    return memory["allocator_active"] - memory["allocator_allocated"]


HEAP_BYTES = 64 * MB  # of address space: each of glibc's heaps but the first begins at a multiple of it, and is closed up to the next


def libc_heap_bytes(pid):
    """What of the heaps that malloc() has in a process is in memory."""
    regions = []
    with open(f"/proc/{pid}/smaps") as f:
        for line in f:
            if region := re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \d+ *(.*)$", line):
                regions.append([int(region[1], 16), int(region[2], 16), region[3], region[4], 0])
            elif line.startswith("Rss:"):
                regions[-1][4] = int(line.split()[1]) * 1024
    resident = 0
    for (start, end, _, path, rss), (start_of_next, end_of_next, access_of_next, _, _) in itertools.pairwise(regions):
        closed = start_of_next == end and access_of_next == "---p" and end_of_next == start + HEAP_BYTES
        if path == "[heap]" or (closed and start % HEAP_BYTES == 0):
            resident += rss
    return resident


def test_training_leaves_nothing_in_the_heaps_of_libc(own_server, pytestconfig):
    if pytestconfig.getoption("--topology") in SANITIZERS:
        pytest.skip("a sanitizer's malloc() keeps what it was given back")
    with own_server().client() as r:
        words = b" ".join(texts(30_000))
        load(r, [words[i : i + 2000] for i in range(0, len(words) - 2000, 400)])
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
        assert libc_heap_bytes(r.info("server")["process_id"]) < 2 * MB


def in_pieces(r):
    """Records of which three quarters are gone; returns those that are left."""
    stored = load(r, texts(RECORDS))
    before = info(r)["page_bytes"]
    gone = random.Random(1).sample(sorted(stored), RECORDS * 3 // 4)
    for start in range(0, len(gone), 1000):
        r.execute_command("CDEL", *gone[start : start + 1000])
    for key in gone:
        del stored[key]
    assert info(r)["page_bytes"] < before / 2
    return stored


def test_memory_in_pieces_goes_back(own_server):
    """By itself, on any server whose allocator tells how much there is; what is stored stays as it is."""
    server = own_server({"ckv.train-after": "1gb"})
    with server.client() as r:
        if not r.info("memory")["mem_allocator"].startswith("jemalloc"):
            pytest.skip("this server's allocator does not tell")
        stored = in_pieces(r)
        large = {f"large:{n}": random.Random(n).randbytes(3000) for n in range(500)}
        for key, value in large.items():
            r.execute_command("CSET", key, value)
        # Left alone, one and a half times to two and a half times what the pages take.
        wait_for(lambda: fragmentation(r) < 0.75 * info(r)["page_bytes"], "memory in pieces going back")
        assert_stored(r, {**stored, **large})
        assert r.execute_command("CDBSIZE") == len(stored) + len(large)
        all_moved(r)
        assert info(r)["defrag_moved"] > 0


@pytest.mark.slow
def test_active_defragmentation(own_server):
    # Nothing is learned, for the same reason.
    server = own_server({"ckv.train-after": "1gb"})
    with server.client() as r:
        try:
            r.config_set("activedefrag", "yes")
        except redis.ResponseError as error:
            pytest.skip(f"this server can't: {error}")
        r.config_set("activedefrag", "no")
        r.config_set("maxmemory", "4gb")
        stored = in_pieces(r)
        pieces = fragmentation(r)
        assert pieces > 1_000_000
        r.config_set("active-defrag-ignore-bytes", "100kb")
        r.config_set("active-defrag-threshold-lower", 1)
        r.config_set("active-defrag-cycle-min", 50)
        r.config_set("active-defrag-cycle-max", 75)
        r.config_set("activedefrag", "yes")
        wait_for(lambda: fragmentation(r) < pieces / 2, "half of the fragmentation gone")
        assert r.info("stats")["active_defrag_hits"] > 0
        r.config_set("activedefrag", "no")
        assert_stored(r, stored)
        assert r.execute_command("CDBSIZE") == len(stored)
