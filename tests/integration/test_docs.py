"""The documents say what is: examples of docs/commands.md and of the README are typed into redis-cli in the order in which
they stand there; figures, settings, targets and the README's table are those of the program and its results."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from server import BINARY, PATIENCE_S, ROOT


def read(name):
    with open(os.path.join(ROOT, name)) as f:
        return f.read()


def examples(text):
    """(command line, lines that must come back) of each "> command" in an indented block."""
    found = []
    for line in text.splitlines():
        if line.startswith("    > "):
            found.append((line[6:], []))
        elif line.startswith("    ") and found and not line.startswith("     "):
            found[-1][1].append(line[4:])
    return found


@pytest.fixture
def cli(shared):
    beside = os.path.join(os.path.dirname(shutil.which(BINARY) or ""), "redis-cli")
    program = beside if os.path.exists(beside) else "redis-cli"

    def run(line):
        done = subprocess.run([program, "-p", str(shared.port), "--no-raw"], input=line + "\n", text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S)
        return done.stdout.strip("\n").splitlines()

    return run


def test_examples_of_the_commands(cli):
    text = read("docs/commands.md")
    # A syntax block is indented too; examples are what starts with "> ".
    blocks = re.findall(r"(?:^    > .*\n(?:^    .*\n)*)+", text, flags=re.M)
    checked = 0
    for line, expected in examples("".join(blocks)):
        got = cli(line)
        if line.startswith(("CTTL", "CPTTL")):
            got, expected = ([re.sub(r"\d+", "N", x) for x in lines] for lines in (got, expected))
        assert got == expected, line
        checked += 1
    assert checked > 10


def test_commands_of_the_readme(cli):
    block = re.search(r"Then, in `redis-cli`:\n\n((?:    .*\n)+)", read("README.md")).group(1)
    for line in block.splitlines():
        assert not any("ERR" in answer for answer in cli(line.strip())), line


def test_every_command_is_documented(r):
    """What COMMAND lists of the module and what the page has a heading for are the same."""
    text = read("docs/commands.md")
    listed = r.execute_command("COMMAND", "LIST", "FILTERBY", "MODULE", "ckv")
    ours = {name.decode().upper() for name in listed if b"|" not in name and not name.startswith((b"ckv.", b"ckv+"))}
    headings = {word.strip("` ,") for line in re.findall(r"^## (.*)$", text, flags=re.M) for word in line.split(",")}
    documented = {h.split()[0] for h in headings if h.startswith("C")}
    assert ours == documented


def test_every_figure_is_documented(r):
    text = read("docs/commands.md")
    fields = r.execute_command("INFO", "ckv")
    for name in fields:
        if name.startswith("ckv_"):
            assert f"`{name.removeprefix('ckv_')}`" in text, name


def test_every_setting_is_documented(r):
    text = read("docs/configuration.md")
    found = r.execute_command("CONFIG", "GET", "ckv.*")
    for name in found[::2]:
        assert f"## {name.decode()}" in text


def test_every_make_target_exists():
    known = set(re.findall(r"^([a-z][a-z0-9-]*):", read("Makefile"), flags=re.M))
    for page in ["README.md"] + [f"docs/{name}" for name in os.listdir(os.path.join(ROOT, "docs")) if name.endswith(".md")]:
        for target in re.findall(r"(?:^    |`)make ([a-z][a-z0-9-]*)", read(page), flags=re.M):
            assert target in known, f"{page}: make {target}"


def in_bench(program):
    """Runs Python with the modules of bench/."""
    return subprocess.run([sys.executable, "-c", program], cwd=os.path.join(ROOT, "bench"), text=True, stdout=subprocess.PIPE,
                          check=True).stdout


def test_the_readmes_table_is_that_of_the_results():
    table = in_bench("import report; print(report.demo(report.result('demo')))")
    assert table in read("README.md")


def test_the_readmes_other_parts_are_those_of_the_results():
    page = in_bench("import report, sys; sys.stdout.write(report.in_short(open(report.README).read()))")
    assert page == read("README.md")


def test_the_page_of_results_is_that_of_the_results():
    page = in_bench("import report, sys; sys.stdout.write(report.generated(open(report.PAGE).read()))")
    assert page == read("docs/results.md")


def test_the_fleet_is_that_of_the_results():
    page = in_bench("import fleet, sys; sys.stdout.write(fleet.generated(open(fleet.PAGE).read()))")
    assert page == read("docs/operations.md")


def test_every_picture_of_the_page_is_drawn():
    drawn = in_bench("import plots; plots.save = lambda name, *drawn, **how: print(name); plots.draw()")
    assert sorted(drawn.split()) == sorted(re.findall(r"^!\[.*\]\((\w+)\.png\)", read("docs/results.md"), flags=re.M))
    for picture in re.findall(r"^!\[.*\]\((.*)\)", read("README.md"), flags=re.M):
        assert os.path.exists(os.path.join(ROOT, picture)), picture


def test_published_figures_that_are_not_beaten_are_named():
    verdict = "import peers; print(peers.against_published({('github', 'ckv'): %s, ('github', 'published'): 75}))"
    assert "not ahead of what is published on: github (75.5 bytes, published 75)" in in_bench(verdict % 75.5)
    assert "less than each of the 1 " in in_bench(verdict % 74.5)


def test_the_readmes_first_command(tmp_path):
    """As it stands there, but with fewer records, and these of one's own."""
    data = tmp_path / "records.txt"
    data.write_text("".join(f"line {i} of the records: {i * 7919}\n" for i in range(3000)))
    assert "\n    make demo\n" in read("README.md") and "make demo DATA=records.txt N=" in read("README.md")
    done = subprocess.run(["make", "-C", ROOT, "demo", f"DATA={data}", "N=5000"], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "bytes per record" in done.stdout
