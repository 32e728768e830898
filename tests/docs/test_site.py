"""The documentation site: it builds without warnings, contains every page, and needs nothing from elsewhere."""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import pytest

import pointsman

pytestmark = pytest.mark.integration

ROOT: Final = Path(__file__).parents[2]
LOADED: Final = frozenset({("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src")})
"""Elements whose addresses the browser loads by itself, with their attributes."""


def builder() -> Any:
    spec = importlib.util.spec_from_file_location("site_build", ROOT / "docs" / "site" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, once for all workers, unless the package contains that of these sources; the generator's warnings
    about links, anchors and files are errors.
    """
    if builder().is_current():
        return builder().BUILT
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with (shared / "documentation.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "documentation").exists():
            folder = tmp_path_factory.mktemp("documentation") / "site"
            builder().build(folder)
            folder.rename(shared / "documentation")
    return shared / "documentation"


class LoadedAddresses(HTMLParser):
    """The addresses that a browser loads for a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if ("rel", "canonical") in attrs:
            return
        self.addresses.update(value for name, value in attrs if value and (tag, name) in LOADED)


def test_every_page_is_in_the_navigation(site: Path) -> None:
    listed = set(re.findall(r"\]\(/docs/(.+)\)", (site / "llms.txt").read_text("utf-8")))
    pages = {address for _, address in builder().sources() if address.endswith(".md")}
    assert pages - listed == {"examples/README.md"} & pages
    assert [page for page in sorted(listed) if not (site / page).is_file()] == []


def test_every_page_has_its_markdown_and_is_in_the_texts_for_models(site: Path) -> None:
    texts = (site / "llms-full.txt").read_text("utf-8")
    for address in re.findall(r"\]\(/docs/(.+)\)", (site / "llms.txt").read_text("utf-8")):
        markdown = (site / address).read_text("utf-8")
        assert markdown.startswith(("# ", "<!--", "---")), address
        assert f"<!-- /docs/{address} -->\n\n{markdown}" in texts, address


def test_the_site_names_the_version_that_it_describes(site: Path) -> None:
    assert (site / "llms.txt").read_text("utf-8").startswith(f"# Pointsman {pointsman.__version__}\n")
    for page in (site / "index.html", site / "how-to" / "web" / "index.html", site / "CHANGELOG" / "index.html"):
        assert f"Pointsman {pointsman.__version__}</title>" in page.read_text("utf-8"), page


def test_the_search_finds_every_page(site: Path) -> None:
    items = json.loads((site / "search.json").read_text("utf-8"))["items"]
    found = {item["location"].partition("#")[0] for item in items if item["text"] or item["title"]}
    pages = {page.parent.relative_to(site).as_posix() for page in site.rglob("index.html")}
    assert {page for page in pages if ("" if page == "." else f"{page}/") not in found} == set()


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        parser = LoadedAddresses()
        parser.feed(page.read_text("utf-8"))
        assert [address for address in parser.addresses if "//" in address.partition("data:")[0]] == [], page


def test_the_python_reference_has_every_public_name(site: Path) -> None:
    page = (site / "reference" / "python" / "index.html").read_text("utf-8")
    public = {name for name in pointsman.__all__ if not name.startswith("__")}
    assert {name for name in public if not re.search(rf'<h2 id="[\w.]+\.{name}"', page)} == set()


def test_all_pages_share_a_few_inline_scripts(site: Path) -> None:
    """The server names their hashes in the header of each page."""
    assert 1 <= len((site / "script-hashes.txt").read_text("utf-8").split()) <= 6


def test_a_broken_link_stops_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = builder()
    wrong = tmp_path / "README.md"
    wrong.write_text("# Wrong\n\n[gone](nowhere.md)\n", "utf-8")
    monkeypatch.setattr(build, "sources", lambda: iter([(wrong, "README.md")]))
    monkeypatch.setattr(build, "generated_navigation", list[object])
    with pytest.raises(build.SiteNotBuilt, match=r"nowhere\.md"):
        build.build(tmp_path / "site")
