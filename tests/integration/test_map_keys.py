"""Commands on the Redis keys that hold maps: copied, renamed, dumped, restored, moved, deleted."""

from helpers import load, map_keys, texts


def first_map(r):
    return sorted(map_keys(r))[0]


def test_copy_in_place_of_what_was_deleted(r):
    stored = load(r, texts(3000))
    name = first_map(r)
    assert r.execute_command("COPY", name, "kept") == 1
    r.delete(name)
    assert r.execute_command("CDBSIZE") < len(stored)
    r.rename("kept", name)
    assert r.execute_command("CDBSIZE") == len(stored)
    for key, value in stored.items():
        assert r.execute_command("CGET", key) == value


def test_dump_and_restore(r):
    stored = load(r, texts(3000), ttl=1000)
    name = first_map(r)
    payload = r.dump(name)
    r.delete(name)
    r.restore(name, 0, payload)
    assert all(r.execute_command("CGET", key) == value for key, value in stored.items())
    assert all(900 < r.execute_command("CTTL", key) <= 1001 for key in list(stored)[:50])


def test_move_takes_the_records_along(r):
    stored = load(r, texts(500))
    for name in map_keys(r):
        assert r.execute_command("MOVE", name, 1)
    assert r.execute_command("CDBSIZE") == 0
    r.execute_command("SELECT", 1)
    try:
        assert r.execute_command("CDBSIZE") == len(stored)
        assert all(r.execute_command("CGET", key) == value for key, value in stored.items())
    finally:
        r.flushdb()
        r.execute_command("SELECT", 0)
