"""Build the documentation site into the package, if its sources have changed since the last build: `make docs`, or
`python docs/site/build.py [FOLDER]`.

    docs/ + examples/ + …  ── assemble ──▶  sources  ── zensical ──▶  site  ── finish ──▶  FOLDER

`assemble` copies the pages and the files that they link to, because pages of docs/ link to files elsewhere in the
repository. `finish` adds the Markdown of each page for models, and the hashes of inline scripts, which the server
names in its content security policy.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
PACKAGE: Final = ROOT / "src" / "pointsman"
BUILT: Final = PACKAGE / "server" / "documentation"
STAMP: Final = BUILT / ".sources"
GENERATORS: Final = ("zensical", "mkdocstrings", "mkdocstrings-python")
OUTSIDE: Final = (
    "AGENTS.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "SECURITY.md",
    "bench/*.md",
    "bench/plots/*",
    "deploy/*",
    "examples/**/*",
)
"""Files that the site contains besides docs/, under the same paths."""
VERSION: Final = re.compile(r'^VERSION = "(.+)"$', re.MULTILINE)
TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)
LINK: Final = re.compile(r"(\]\()(?!https?:|mailto:|#|/)([^)#\s]+)")
FENCE: Final = re.compile(r"^(```|~~~).*?^\1[ ]*$", re.MULTILINE | re.DOTALL)
QUOTED: Final = re.compile(r"^(```[a-z]+) [^\n]*$", re.MULTILINE)
COLOUR: Final = re.compile(r"\x1b\[[\d;]*m")
INLINE: Final = re.compile(r"<script(?![^>]*(?:\ssrc=|application/json))[^>]*>(.*?)</script>", re.DOTALL)


class SiteNotBuilt(Exception):
    """The site could not be built. The message is the output of the generator."""


def build(target: Path) -> None:
    """Build the site into an empty or missing folder. Raises `SiteNotBuilt` with all warnings of the generator."""
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        config = assemble(work)
        command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(work / "mkdocs.yml")]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SiteNotBuilt(COLOUR.sub("", done.stdout + done.stderr.partition("Traceback")[0]))
        finish(work / "site", work / "docs", config)
        shutil.rmtree(target, ignore_errors=True)
        shutil.move(work / "site", target)


def is_current() -> bool:
    """Return whether the site in the package is that of these sources."""
    return STAMP.is_file() and STAMP.read_text("utf-8") == digest()


def digest() -> str:
    """Return the digest of all files that the site is made from, and of the versions of the generators."""
    found = hashlib.sha256(" ".join(f"{name} {version(name)}" for name in GENERATORS).encode())
    made_from = {path for path, _ in sources()} | set(PACKAGE.rglob("*.py")) | set((DOCS / "site").glob("*.*"))
    for path in sorted(made_from):
        content = path.read_bytes()
        found.update(f"{path.relative_to(ROOT).as_posix()}\n{len(content)}\n".encode() + content)
    return found.hexdigest()


def assemble(work: Path) -> dict[str, Any]:
    """Write `docs/` and `mkdocs.yml` below the folder, and return the configuration."""
    config = yaml.safe_load((DOCS / "site" / "mkdocs.yml").read_text("utf-8"))
    described = VERSION.search((PACKAGE / "version.py").read_text("utf-8"))
    assert described is not None
    config["site_name"] += f" {described[1]}"
    config["nav"] += generated_navigation()
    config["plugins"][1]["mkdocstrings"]["handlers"]["python"]["paths"] = [str(ROOT / "src")]
    (work / "mkdocs.yml").write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")
    for source, address in sources():
        copy = work / "docs" / address
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            copy.write_text(with_links(source, address), "utf-8")
        else:
            shutil.copyfile(source, copy)
    return config


def sources() -> Iterator[tuple[Path, str]]:
    """Yield each file of the site with its address."""
    for path in sorted(DOCS.rglob("*")):
        if path.is_file() and not path.is_relative_to(DOCS / "site"):
            yield path, address_of(path)
    for pattern in OUTSIDE:
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path, address_of(path)
    yield ROOT / "web" / "public" / "favicon.svg", "favicon.svg"


def address_of(path: Path) -> str:
    """Return the address of a file or folder of the repository in the site, relative to its root."""
    if path == ROOT / "README.md":
        path = DOCS / "README.md"
    if path.is_dir():
        path = path / "README.md" if (path / "README.md").is_file() else DOCS / "README.md"
    return path.relative_to(DOCS if path.is_relative_to(DOCS) else ROOT).as_posix()


def with_links(page: Path, address: str) -> str:
    """Return the text of a page with the links of the site, and without the file names behind the languages of code."""

    def moved(link: re.Match[str]) -> str:
        target = (page.parent / link[2]).resolve()
        if not target.exists():  # The generator reports it.
            return link[0]
        return link[1] + Path(os.path.relpath(address_of(target), Path(address).parent)).as_posix()

    text = page.read_text("utf-8")
    parts: list[str] = []
    start = 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(moved, text[start : fence.start()]), QUOTED.sub(r"\1", fence[0])]
        start = fence.end()
    return "".join([*parts, LINK.sub(moved, text[start:])])


def generated_navigation() -> list[dict[str, Any]]:
    """Return the sections that list folders."""
    return [
        {"Cookbook": folder(DOCS / "cookbook")},
        {"Compare": folder(DOCS / "migrating")},
        {"Examples": [entry(page) for page in sorted(ROOT.glob("examples/*/README.md"))]},
        {
            "Project": [
                {"Changelog": "CHANGELOG.md"},
                {"Contributing": "CONTRIBUTING.md"},
                {"Layout and rules": "AGENTS.md"},
                {"Security": "SECURITY.md"},
                {"Decisions": folder(DOCS / "decisions")},
                {"Design notes": folder(DOCS / "design")},
                {"Benchmarks": [entry(page) for page in sorted(ROOT.glob("bench/*.md"))]},
            ]
        },
    ]


def folder(path: Path) -> list[dict[str, str]]:
    """Return an entry for each page of a folder, its README first."""
    return [entry(page) for page in sorted(path.glob("*.md"), key=lambda page: (page.name != "README.md", page.name))]


def entry(page: Path) -> dict[str, str]:
    """Return an entry of the navigation."""
    return {title_of(page): address_of(page)}


def title_of(page: Path) -> str:
    """Return the first heading of a page, else the name of its file."""
    found = TITLE.search(page.read_text("utf-8"))
    return found[1].replace("`", "") if found else page.stem


def finish(site: Path, pages: Path, config: dict[str, Any]) -> None:
    """Add the Markdown of all pages and the hashes of inline scripts; remove what only a public site needs."""
    for name in ("sitemap.xml", "sitemap.xml.gz", "404.html"):
        (site / name).unlink(missing_ok=True)
    for useless in site.rglob("*.map"):
        useless.unlink()
    write_markdown(site, pages, config)
    hashes = {
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        for page in site.rglob("*.html")
        for script in INLINE.findall(page.read_text("utf-8"))
    }
    (site / "script-hashes.txt").write_text("".join(f"{one}\n" for one in sorted(hashes)), "utf-8")


def write_markdown(site: Path, pages: Path, config: dict[str, Any]) -> None:
    """Write `PAGE.md` beside every page, `llms.txt` with a line for each page, and `llms-full.txt` with all texts."""
    lines = [f"# {config['site_name']}", "", f"> {config['site_description']}"]
    texts: list[str] = []
    for section, addresses in sections(config["nav"]):
        lines += ["", f"## {section}", ""]
        for address in addresses:
            copy = site / address
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(pages / address, copy)
            lines.append(f"- [{title_of(copy)}](/docs/{address})")
            texts.append(f"<!-- /docs/{address} -->\n\n{copy.read_text('utf-8')}")
    (site / "llms.txt").write_text("\n".join(lines) + "\n", "utf-8")
    (site / "llms-full.txt").write_text("\n\n".join(texts), "utf-8")


def sections(nav: list[dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    """Yield the title and the pages of each top-level entry of the navigation."""
    for entries in nav:
        for title, value in entries.items():
            yield title, list(addresses_in(value))


def addresses_in(value: str | list[Any] | dict[str, Any]) -> Iterator[str]:
    """Yield the pages of a part of the navigation in order."""
    if isinstance(value, str):
        yield value
    else:
        for inner in value.values() if isinstance(value, dict) else value:
            yield from addresses_in(inner)


if __name__ == "__main__":
    try:
        if len(sys.argv) > 1:
            build(Path(sys.argv[1]))
        elif not is_current():
            build(BUILT)
            STAMP.write_text(digest(), "utf-8")
    except SiteNotBuilt as why:
        sys.exit(str(why))
