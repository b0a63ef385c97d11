"""The parts of docs/results.md about scale, the layout of a record and the codec alone. See report.py."""

import plots
from markdown import table


def told(part):
    return f"{part['records']:,} records"


def density(rows_by_file):
    plots.curves("scale", {f"ckv, {name}": {row["records"]: row["ckv"]["used_memory"] for row in rows}
                           for name, rows in rows_by_file.items()}, "records", "bytes of used_memory per record")
    parts = []
    for name, rows in rows_by_file.items():
        body = []
        for row in rows:
            ours, info = row["ckv"], row["ckv"]["info"]
            body.append([f"{row['records']:,}", f"{ours['used_memory']:.2f}", f"{ours['rss']:.2f}",
                         f"{int(info['ckv_page_bytes']) / row['records']:.2f}",
                         f"{int(info['ckv_dictionary_bytes']) / row['records']:.2f}", f"{ours['per_second']:,.0f}",
                         f"{row['strings']['used_memory']:.2f}"])
        parts.append(table([f"{name}: records", "used_memory", "RSS", "in pages", "dictionaries", "loaded per second",
                            "SET used_memory"], body))
    return "\n\n".join(parts)


def pairs(part):
    rows = [[what, f"{r['used_memory']:.2f}", f"{r['rss']:.2f}"] for what, r in part["figures"].items()]
    return table([f"pairs, {told(part)}", "used_memory", "RSS"], rows)


def speed(part):
    rows = []
    for depth, verbs in part["figures"].items():
        for verb, m in verbs.items():
            native = verbs[verb.removeprefix("C")]
            rows.append([verb, depth, f"{m['per_second']:,.0f}", f"{m['cpu_us']:.2f}", f"{m['p999_ms']:.2f}",
                         f"{m['per_second'] / native['per_second']:.2f}", f"{native['cpu_us'] / m['cpu_us']:.2f}",
                         f"{m['p999_ms'] / native['p999_ms']:.2f}"])
    return table([f"speed, {told(part)}", "pipeline", "requests/s", "CPU us", "p99.9 ms", "ratio of requests/s",
                  "ratio of CPU", "ratio of p99.9"], rows)


def pause(part):
    rounds = [(verb, r) for verb, rounds in part["figures"].items() for r in rounds]
    bounds = sorted({bound for _, r in rounds for bound in r["histogram"]}, key=float)
    rows = [[verb, f"{r['own_worst_ms']:.1f}", f"{r['worst_ms']:.1f}"] + [str(r["histogram"].get(bound, 0)) for bound in bounds]
            + [", ".join(f"{name} {longest} ms" for name, _, _, longest in r["latency"]),
               f"{r['stolen_seconds']:.1f}"]
            for verb, r in rounds]
    names = ["longer" if float(bound) > 1e6 else f"to {float(bound):g} ms" for bound in bounds]
    return table([f"PINGs during a load, {told(part)}", "longest ms with nothing stolen", "longest ms", *names, "LATENCY LATEST, the longest",
                  "s stolen by the host"], rows)


def churn(part):
    r = part["figures"]
    return table(["churn: bytes per record left", "freshly loaded", "difference"],
                 [[f"{r['churned']:.2f}", f"{r['fresh']:.2f}", f"{r['churned'] / r['fresh'] - 1:+.1%}"]])


def files(part):
    figures = part["figures"]
    rows = [[verb, f"{r['save']:.2f}", f"{r['load']:.2f}", f"{r['save'] + r['load']:.2f}", f"{r['bytes'] / 1e6:.1f}",
             f"{r['bytes'] / r['used_memory']:.2f}"] for verb, r in figures.items()]
    both = {verb: r["save"] + r["load"] for verb, r in figures.items()}
    text = table([f"files, {told(part)}", "SAVE s", "load s", "both s", "file MB", "file / used_memory"], rows)
    text += f"\n\nSaving and loading: **{both['SET'] / both['CSET']:.1f} times** faster."
    spent = figures["CSET"].get("save_spent")
    if spent:
        text += (f" Of ckv's SAVE, {spent['user']:.2f} s are the processor's in the server (walking pages, and the file's "
                 f"CRC64: without that, `rdbchecksum no`, the whole takes {spent['unchecked']:.2f} s), {spent['system']:.2f} s "
                 f"the kernel's (writing), the rest waiting for the disk. Loading reads, checks each page and copies it.")
    return text


def drift(part):
    rows = [[kind, f"{r['alone']:.2f}", f"{r['together']:.2f}", f"{r['together'] / r['alone'] - 1:+.1%}"]
            for kind, r in part["figures"].items()]
    return table([f"{told(part)} of each", "alone", "together", "difference"], rows)


PARTS = {"density": density, "pairs": pairs, "speed": speed, "pause": pause, "churn": churn, "files": files}


def scale(report):
    run = report["run"]
    text = [f"`make bench-scale`, last on {run['date']}, {run['cores']} cores; CKV TRAIN and CKV OPTIMIZE after each load.",
            "![bytes per record](scale.png)"]
    return "\n\n".join(text + [render(report[part]) for part, render in PARTS.items()])


def kinds(report):
    return drift(report["drift"])


def layout(report):
    key = report["tag"] + report["stems_and_keys"]
    overhead = {"free space in pages": report["free"], "length of the value": report["length"],
                "dictionaries": report["dictionaries"], "directories of the maps": report["directories"],
                "page headers": report["page_headers"], "tags and lengths of groups": report["groups"]}
    total = report["pages"] + report["directories"] + report["dictionaries"]
    rows = [["encoded value", f"{report['value']:.2f}"], ["expiry", f"{report['expiry']:.2f}"],
            ["encoded key: one byte of suffix, and the share of a group's stem", f"{key:.2f}"],
            ["**overhead**", f"**{sum(overhead.values()):.2f}**"]]
    rows += [[f"of it {what}", f"{n:.2f}"] for what, n in sorted(overhead.items(), key=lambda item: -item[1])]
    return (f"How the {total:.1f} bytes of a record of {report['data']} with `KEY:<n>` and `EX 86400` at {report['records']:,} records are "
            "made up, by `make bench-layout`, which adds up what every byte of every page is for. (What the server itself "
            "grows by is the difference to `used_memory` above.)\n\n"
            + table(["", "bytes"], rows))


def codec(report):
    plots.bars("codec", [r["name"].rsplit(".", 1)[0] for r in report],
               {what: [100 * r[of]["bytes"] / r["raw"] if of in r else None for r in report]
                for what, of in (("zstd with a dictionary, one record", "zstd"), ("the same, pages of 8 KB", "zstd_pages"),
                                 ("ckv: the best of phrases and zstd", "best"))}, "% of the raw record")
    rows = []
    for r in report:
        phrase, zstd = r["phrase"], r["zstd"]
        rows.append([r["name"].rsplit(".", 1)[0], f"{r['raw']:.1f}", f"{zstd['bytes']:.2f}",
                     f"{r['zstd_pages']['bytes']:.2f}" if "zstd_pages" in r else "", f"{phrase['bytes']:.2f}",
                     f"**{r['best']['bytes']:.2f}**", f"{r['phrase_training']['table_bytes'] / 1024:.0f}",
                     f"{r['phrase_training']['seconds']:.2f}", f"{phrase['encode_mb_s']:.0f} ({zstd['encode_mb_s']:.0f})",
                     f"{phrase['decode_mb_s']:.0f} ({zstd['decode_mb_s']:.0f})"])
    return table(["data", "raw", "zstd, one record", "zstd, 8 KB pages", "phrases", "best of both", "tables KB",
                  "training s", "encode MB/s (zstd)", "decode MB/s (zstd)"], rows)
