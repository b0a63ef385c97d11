"""Records of kinds that no public file has, as they are stored by the million; the same ones each time.

sessions  of a shop on the web, in JSON, as the session stores of web frameworks keep them, under UUIDs. A third have nobody signed
          in; carts and paths are of different lengths; tokens, addresses, times and numbers are random
ids       a number of up to 12 digits under a number: which user a medium is of, which row an outside id is"""

import base64
import json
import random
import time

MOST = 1_000_000  # different ones

FIRST = ("Aisha Anna Bence Carlos Chen Claire David Elif Emma Fatima Hiro Ines Ivan Jonas Julia Kofi Lars Lea Lucia Mads Maria Mehmet Nora Olga "
         "Omar Paul Priya Rosa Sofia Tom Yuki Zoe").split()
LAST = ("Abe Andersen Bauer Costa Diaz Ferrari Fischer Garcia Haddad Horvath Ivanova Jansen Kaya Khan Kim Kovacs Lee Lopez Meyer Moreau Nguyen "
        "Novak Okafor Olsen Patel Rossi Sato Silva Smith Tanaka Wang Weber").split()
MAIL = ["example.com", "example.net", "example.org", "mail.example", "post.example"]
PLACES = [("en-US", "America/New_York"), ("en-GB", "Europe/London"), ("de-DE", "Europe/Berlin"), ("fr-FR", "Europe/Paris"),
          ("es-MX", "America/Mexico_City"), ("pt-BR", "America/Sao_Paulo"), ("ja-JP", "Asia/Tokyo"), ("tr-TR", "Europe/Istanbul")]
BROWSERS = ["Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.0.0 Safari/537.36",
            "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.0.0 Mobile Safari/537.36",
            "Mozilla/5.0 (X11; Linux x86_64; rv:{0}.0) Gecko/20100101 Firefox/{0}.0",
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1"]
PATHS = ["/", "/cart", "/checkout", "/account/orders", "/search?q=shoes", "/search?q=lamp", "/category/garden", "/category/books"]


def path(rng):
    return rng.choice(PATHS) if rng.random() < 0.4 else f"/product/{rng.randrange(40_000)}"


def item(rng):
    return {"sku": f"{rng.choice('ABCDEFGH')}{rng.randrange(100_000):05}", "quantity": min(1 + int(rng.expovariate(2)), 9),
            "price": rng.randrange(199, 20_000)}


def session(rng):
    began = 1_760_000_000_000 + rng.randrange(86_400_000)
    seen = began + int(rng.expovariate(1 / 600_000))
    expires = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seen // 1000 + 86_400))
    locale, zone = rng.choice(PLACES)
    found = {"cookie": {"originalMaxAge": 86_400_000, "expires": f"{expires}.{seen % 1000:03}Z", "secure": True, "httpOnly": True,
                        "path": "/", "sameSite": "lax"},
             "csrfSecret": base64.urlsafe_b64encode(rng.randbytes(18)).decode()}
    if rng.random() < 2 / 3:
        first, last = rng.choice(FIRST), rng.choice(LAST)
        found["user"] = {"id": rng.randrange(1, 50_000_000), "name": f"{first} {last}",
                         "email": f"{first}.{last}{rng.randrange(1000)}@{rng.choice(MAIL)}".lower(),
                         "roles": ["customer", "reseller"] if rng.random() < 0.05 else ["customer"]}
    found.update({"locale": locale, "timezone": zone, "ip": ".".join(str(rng.randrange(1, 255)) for _ in range(4)),
                  "userAgent": rng.choice(BROWSERS).format(rng.randrange(128, 142)), "createdAt": began, "lastSeenAt": seen,
                  "cart": [item(rng) for _ in range(int(rng.expovariate(1)))],
                  "lastPaths": [path(rng) for _ in range(rng.randrange(1, 6))]})
    return json.dumps(found, separators=(",", ":")).encode()


def identity(rng):
    return b"%d" % rng.randrange(10 ** 12)


# How a record is made, and what its key is.
KINDS = {"sessions": (session, "uuid"), "ids": (identity, "sequential")}


def values(kind, records):
    rng, make = random.Random(19), KINDS[kind][0]
    return [make(rng) for _ in range(min(records, MOST))]
