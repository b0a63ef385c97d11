"""What ckv is compared with: what stores and data are called, what is published, and where ckv is not ahead. For the tables and
the plots alike."""

import re

# Bytes per record that Memcarrot's authors publish for data sets of these names. Theirs are not the files
# measured here: what they hold is of the same kind, the records and their number differ.
PUBLISHED = {"airbnb": 419, "amazon_product_reviews": 222, "arxiv": 540, "dblp": 124, "github": 75, "ohio": 41.6,
             "reddit": 333, "spotify_charts": 100, "twitter": 540, "tweets": 51.1}

# What stores and kinds of data are called where people look at them first, in two lines.
STORES = {"strings": "Redis\nstrings", "valkey-strings": "Valkey\nstrings", "strings-zlib": "zlib by\nthe client",
          "strings-zstd": "zstd by\nthe client", "valkey-glide": "zstd by\nvalkey-glide", "hashes": "hashes,\nno expiry",
          "memcached": "memcached", "published": "Memcarrot,\npublished", "ckv": "ckv"}
KINDS = {"tweets": "tweets", "sessions": "sessions as JSON", "ids": "id pairs"}


def versions(report):
    return dict(re.match(r"(\w+) (?:server v=)?([0-9.]+)", text).groups() for text in report["servers"])


def names(report):
    """Of the stores: servers with the versions measured."""
    found = dict(STORES)
    for product, version in versions(report).items():
        major = ".".join(version.split(".")[:2])
        found = {store: text.replace(f"{product}\n", f"{product} {major}\n") for store, text in found.items()}
    return found


def used_memory(rows):
    """Bytes a record by data and store, what is published of such data among them."""
    used = {(row["data"], row["store"]): row["bytes"]["used_memory"] for row in rows}
    return used | {(data, "published"): PUBLISHED[data] for data, _ in used if data in PUBLISHED}


def most_first(used):
    """The stores, by what the first data take in them."""
    first = next(iter(used))[0]
    return sorted((store for data, store in used if data == first), key=lambda store: -used[first, store])


def verdict(used):
    """Where ckv is not ahead of what was measured, from the figures."""
    sets = list(dict.fromkeys(data for data, _ in used))
    behind = [f"{data} ({used[data, 'ckv']:.1f} bytes, {store} {n:.1f})" for (data, store), n in used.items()
              if store not in ("ckv", "published") and n <= used[data, "ckv"]]
    if behind:
        return "**ckv is not ahead in bytes per record on: " + "; ".join(behind) + ".**"
    return f"ckv takes the fewest bytes per record on each of the {len(sets)} data sets measured."


def against_published(used):
    """Likewise of what is published."""
    published = {data: n for (data, store), n in used.items() if store == "published"}
    behind = [f"{data} ({used[data, 'ckv']:.1f} bytes, published {n})" for data, n in published.items() if n <= used[data, "ckv"]]
    if behind:
        return "**ckv is not ahead of what is published on: " + "; ".join(behind) + ".**"
    return f"It takes less than each of the {len(published)} figures published."
