"""Tables in Markdown."""


def cell(value, form):
    return "" if value is None else value if isinstance(value, str) else format(value, form)


def table(columns, rows):
    """In Markdown. `columns`: each one's head, and how its numbers are written; pairs where heads are alike."""
    heads, forms = zip(*(columns.items() if isinstance(columns, dict) else columns))
    lines = [heads] + [[cell(value, form) for value, form in zip(row, forms)] for row in rows]
    lines = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([lines[0], "|" + "---|" * len(forms)] + lines[1:])
