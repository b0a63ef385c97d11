"""The tests of a suite of others that are known to fail with the module, one a line of its expected.txt:

    ... | <file> | <test> | <reason>

where '*' stands for any text in all but the reason, and '#' begins a comment."""

import os
import re


def like(pattern, text):
    return pattern == text or re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.S) is not None


class Expected:
    """The lines of a file, and which of them were needed. Any thread may ask."""

    def __init__(self, path, columns, server=None):
        """`columns` are their names. A suite that runs with several servers has these in the first: `server` is the one."""
        self.entries = []
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                if line.strip() and not line.startswith("#"):
                    self._add(f"{os.path.basename(path)}:{number}", line, columns, server)

    def _add(self, place, line, columns, server):
        fields = [field.strip() for field in line.split(" | ")]
        if len(fields) != len(columns) or not all(fields):
            raise SystemExit(f"{place}: not '{' | '.join(f'<{name}>' for name in columns)}'")
        if server is None or like(fields[0], server):
            self.entries.append({"place": place, "names": fields[-3:-1], "reason": fields[-1], "used": False})

    def find(self, *names):
        for entry in self.entries:
            if matches(entry, names):
                entry["used"] = True
                return entry
        return None

    def left_out(self, file):
        return [e["names"][1] for e in self.entries if matches(e, [file]) and e["reason"].startswith("left out:")]

    def print_unused(self, ran):
        """Of the entries for what has run, by file and test or by file alone, those that nothing needed."""
        for entry in self.entries:
            if not entry["used"] and any(matches(entry, names) for names in ran):
                print(f"{entry['place']}: no longer fails: {' | '.join(entry['names'])}")


def matches(entry, names):
    """`names` are those of the file and of the test, or of the file alone."""
    return all(map(like, entry["names"], names))
