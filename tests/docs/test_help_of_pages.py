"""Each page of the web app has a page of the documentation, and that page exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tests.docs.test_paths import anchors

ROOT: Final = Path(__file__).parents[2]
WEB: Final = ROOT / "web" / "src"
HELP: Final = (WEB / "components" / "helpPages.ts").read_text(encoding="utf-8")
WITHOUT_MENU: Final = {"connected", "embed", "form", "login", "talk"}
"""Pages for visitors and logins, which have no help menu of their own."""
LINK: Final = re.compile(r"\"(/docs/[\w./#-]*)\"")


def page_of(address: str) -> Path:
    """Return the source of an address of the documentation."""
    path = ROOT / "docs" / address.removeprefix("/docs/").partition("#")[0].rstrip("/")
    return next((page for page in (path / "README.md", path.with_suffix(".md")) if page.is_file()), path)


def test_every_page_of_the_app_has_help() -> None:
    routes = re.findall(r"path: \"/([a-z-]+)", (WEB / "router.tsx").read_text(encoding="utf-8"))
    helped = re.findall(r"^  ([a-z]+): \"/docs/", HELP, re.MULTILINE)
    assert set(routes) - WITHOUT_MENU - set(helped) == set(), "add the page to web/src/components/helpPages.ts"


def test_every_link_of_the_app_to_the_documentation_leads_to_a_page() -> None:
    sources = [path for path in WEB.rglob("*.ts*") if ".test." not in path.name]
    addresses = {address for path in sources for address in LINK.findall(path.read_text(encoding="utf-8"))}
    assert len(addresses) > 15
    assert [address for address in sorted(addresses) if not page_of(address).is_file()] == []
    parts = [(page_of(address), address.partition("#")[2]) for address in addresses if "#" in address]
    assert [anchor for page, anchor in parts if anchor not in anchors(page)] == []
