"""Records to measure with: the lines of a file, or what every Debian machine has."""

import os
import subprocess

from server import Failed


def records(path=None):
    """A list of distinct-as-they-come records (bytes), and what they are called."""
    if path:
        return from_file(path), os.path.basename(path)
    return from_apt(), "Debian package descriptions"


def from_file(path):
    try:
        with open(path, "rb") as f:
            lines = [line for line in f.read().split(b"\n") if line]
    except OSError as error:
        raise Failed(f"cannot read DATA: {error}")
    if not lines:
        raise Failed(f"{path} is empty")
    return lines


def from_apt():
    """The descriptions in apt's package lists; where these were removed, those of installed packages."""
    try:
        text = subprocess.run(["apt-cache", "dumpavail"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    except OSError:
        text = b""
    found = descriptions(text)
    if len(found) < 1000 and os.path.exists("/var/lib/dpkg/status"):
        with open("/var/lib/dpkg/status", "rb") as f:
            found = descriptions(text + b"\n\n" + f.read())
    if not found:
        raise Failed("there are no package lists here; give a file with one record a line: DATA=<file>")
    return found


def descriptions(text):
    """"package: description" of each paragraph, a long description's lines joined."""
    found = {}
    for paragraph in text.split(b"\n\n"):
        name = about = b""
        inside = False
        for line in paragraph.split(b"\n"):
            if line.startswith(b"Package: "):
                name = line[9:]
            elif line.startswith(b"Description: ") or line.startswith(b"Description-en: "):
                about, inside = line.split(b": ", 1)[1], True
            elif inside and line.startswith(b" "):
                about += b" " + line.strip()
            else:
                inside = False
        if about:
            found[name + b": " + about] = True
    return list(found)
