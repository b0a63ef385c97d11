"""Runs bench_codec on files, prints what it measured, keeps it as JSON and draws it.

    bench_codec.py [--binary build/bench_codec] [file ...]
"""

import argparse
import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "bench" / "results" / "codec.json"
PICTURE = ROOT / "docs" / "codec.png"


def bytes_of(row, codec):
    return row[codec]["bytes"] if codec in row else None


def cell(value, digits=2):
    return f"{value:.{digits}f}" if value is not None else ""


def print_table(rows):
    columns = ["raw", "zstd", "zstd pages", "phrase 3%", "phrase", "best", "tables KB", "train s", "peak MB",
               "encode MB/s", "zstd", "decode MB/s", "zstd", "encode us", "zstd", "decode us", "zstd"]
    print("| bytes per record | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for row in rows:
        phrase, zstd, training = row["phrase"], row["zstd"], row["phrase_training"]
        cells = [cell(row["raw"], 1)]
        cells += [cell(bytes_of(row, codec)) for codec in ("zstd", "zstd_pages", "phrase_small", "phrase", "best")]
        cells += [cell(training["table_bytes"] / 1024, 0), cell(training["seconds"]), cell(training["peak_mb"], 0)]
        for figure, digits in (("encode_mb_s", 0), ("decode_mb_s", 0), ("encode_us", 2), ("decode_us", 2)):
            cells += [cell(phrase[figure], digits), cell(zstd[figure], digits)]
        print(f"| {row['name']} | " + " | ".join(cells) + " |")


def draw(rows):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    kinds = [("zstd", "zstd, trained dictionary, a record at a time", "#b8b8b8"),
             ("zstd_pages", "zstd, trained dictionary, pages of 8 KB", "#7a8ea8"),
             ("best", "ckv: phrases, or zstd where it is smaller", "#c0392b")]
    figure, axes = pyplot.subplots(figsize=(9, 0.45 * len(rows) + 1.6))
    for k, (codec, label, colour) in enumerate(kinds):
        shown = [(i, bytes_of(row, codec) / row["raw"] * 100) for i, row in enumerate(rows) if codec in row]
        axes.barh([i + (k - 1) * 0.27 for i, _ in shown], [share for _, share in shown], 0.25, label=label,
                  color=colour)
    axes.set_yticks(range(len(rows)), [f"{row['name']} ({row['raw']:.0f} B)" for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("bytes after encoding, % of the raw record (less is better)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")
    figure.tight_layout()
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=ROOT / "build" / "bench_codec")
    parser.add_argument("files", nargs="*", help="one record a line, or *.u32le")
    arguments = parser.parse_args()
    output = subprocess.run([arguments.binary, *arguments.files], check=True, stdout=subprocess.PIPE).stdout
    rows = json.loads(output)
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(rows, indent=1) + "\n")
    print_table(rows)
    draw(rows)


if __name__ == "__main__":
    main()
