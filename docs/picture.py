#!/usr/bin/env python3
"""Draws a terminal's screen as SVG: tmux capture-pane -p -e | docs/picture.py > docs/demo.svg

Reads text with SGR colour codes on stdin. docs/picture.sh makes the README's picture with it.
"""
import html
import re
import sys

PALETTE = {30: "#484f58", 31: "#ff7b72", 32: "#3fb950", 33: "#d29922", 34: "#58a6ff",
           35: "#bc8cff", 36: "#39c5cf", 37: "#b1bac4"}
PALETTE |= {code + 60: colour for code, colour in PALETTE.items()}
CHAR, LINE, PAD = 8.4, 19, 16
NBSP = "\u00a0"


def spans(line):
    """Yields (text, style) for one line; codes that are not colour or weight are dropped."""
    colour, bold, dim = None, False, False
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if not part.startswith("\x1b"):
            if part:
                yield part, (colour, bold, dim)
            continue
        for code in (int(c or 0) for c in part[2:-1].split(";")):
            if code == 0:
                colour, bold, dim = None, False, False
            elif code == 1:
                bold = True
            elif code == 2:
                dim = True
            elif code == 22:
                bold = dim = False
            elif code == 39:
                colour = None
            elif code in PALETTE:
                colour = PALETTE[code]


def main():
    lines = sys.stdin.read().rstrip("\n").split("\n")
    while lines and not re.sub(r"\x1b\[[0-9;]*m", "", lines[-1]).strip(" $"):
        lines.pop()
    columns = max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines)
    width, height = round(columns * CHAR) + 2 * PAD, len(lines) * LINE + 2 * PAD
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}" role="img" aria-label="heaptap demo in a terminal">',
           f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>',
           '<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="14" '
           'fill="#e6edf3" xml:space="preserve">']
    for row, line in enumerate(lines):
        column = 0
        for text, (colour, bold, dim) in spans(line):
            if text.strip():
                style = f' fill="{colour}"' if colour else ""
                style += ' font-weight="bold"' if bold else ""
                style += ' opacity="0.65"' if dim else ""
                out.append(f'<text x="{PAD + column * CHAR:.1f}" y="{PAD + row * LINE + 14}" '
                           f'textLength="{len(text) * CHAR:.1f}"{style}>{html.escape(text).replace(" ", NBSP)}</text>')
            column += len(text)
    out += ["</g>", "</svg>"]
    print("\n".join(out))


if __name__ == "__main__":
    main()
