"""ckv-estimate of a part of the keys says what it says of all of them."""

import json

import pytest

from test_estimate import _plain, ask, fill, plain, program  # noqa: F401 (fixtures)


def test_a_sample_fills_maps_as_all_keys_do(ask, plain):
    """Sequential keys have few stems, and some maps get none: where maps were counted without these, as many stems as fill 151
    of them came to lie in 111, and a sample said 8% less than all keys."""
    with plain.client() as r:
        fill(r, "SET", [(f"n:{1_000_000 + i}", i % 10) for i in range(60_000)], ttl=False)
    whole, part = (json.loads(ask("--json", "--rate", 0, "--keys", keys)) for keys in (100_000, 20_000))
    assert whole["sample"]["whole"] and not part["sample"]["whole"]
    assert part["total"]["bytes_with_ckv"] == pytest.approx(whole["total"]["bytes_with_ckv"], rel=0.04)
