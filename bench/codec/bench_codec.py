"""Runs bench_codec on files, prints what it measured and keeps it as JSON.

    bench_codec.py [--binary build/bench_codec] [file ...]
"""

import argparse
import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "bench" / "results" / "codec.json"


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


if __name__ == "__main__":
    main()
