"""Tools in Python modules that the settings or `--tools` name; a broken module does not take others down."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import pytest

from pointsman import Pointsman
from pointsman.operations.health import findings
from pointsman.settings import Settings, SettingsInvalid, load_settings
from pointsman.values import JsonObject
from tests.docs.test_docs import run

SHOP = '''
from pointsman import tool
print("loading")
__all__ = ["discount"]

@tool
def price(article: str) -> float:
    """Return a price."""
    return 1.5

cost = price

def discount(price: float) -> float:
    """Reduce a price."""
    return price / 2

def internal() -> None:
    """Is not a tool."""
'''
MODULES = {
    "shop_tools": SHOP,
    "broken_tools": "def broken():\n    return 1 / 0\n\nbroken()\n",
    "exiting_tools": "raise SystemExit(3)\n",
    "empty_tools": "from pointsman import tool, Workflow\n",
    "second_shop": "from pointsman import tool\n@tool\ndef other(): ...\n@tool(name='price')\ndef twice(): ...\n",
    "method_tools": "from pointsman import tool\nclass Desk:\n    @tool\n    def f(self): ...\ng = Desk.f\n",
}
WORKFLOW: JsonObject = {
    "id": "order",
    "nodes": [{"id": "price", "type": "tool", "config": {"tool": "price", "parameters": {"article": "pen"}}}],
    "edges": [],
}

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with modules of tools."""
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "order.json").write_text(json.dumps(WORKFLOW), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    return tmp_path


async def test_a_module_offers_its_tools_and_the_functions_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    app = Pointsman("memory:", settings=Settings(tool_modules=("shop_tools",)), model="scripted")
    assert [name for name in app.tools.names() if app.tools.origin(name) == "function"] == ["discount", "price"]
    async with app:
        assert await (await app.run(WORKFLOW)).output() == 1.5


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("broken_tools", r"(?s)'broken_tools'.* cannot be imported:\nTraceback.*line 2, in broken.*ZeroDivisionError"),
        ("exiting_tools", "(?s)cannot be imported:\n.*SystemExit: 3"),
        ("no_such_tools", "No module named 'no_such_tools'"),
        ("empty_tools", "the module 'empty_tools' has no tools"),
        ("second_shop", "the tools of the module 'second_shop' cannot be used: there are two tools named 'price'"),
        ("method_tools", "is a method without its object"),
    ],
)
async def test_a_broken_module_is_reported_and_others_are_loaded(
    module: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    settings = Settings(tool_modules=("shop_tools", module))
    with caplog.at_level(logging.WARNING, "pointsman.tools"):
        app = Pointsman("memory:", settings=settings, model="scripted")
    (broken,) = app.tools.broken_modules
    with pytest.raises(type(broken), match=why):
        raise broken
    assert broken.hint
    assert [one.getMessage() for one in caplog.records] == [str(broken)]
    assert app.tools.find("other") is None
    async with app:
        assert await (await app.run(WORKFLOW)).output() == 1.5
        assert (broken.code, str(broken)) in [(one.code, one.message) for one in await findings(app.context)]


def test_the_settings_name_modules_beside_http_tools(tmp_path: Path) -> None:
    (tmp_path / "pointsman.toml").write_text(
        '[tools]\npython = ["shop_tools"]\n'
        '[tools.ask]\nmethod = "GET"\nurl = "https://example.org"\ndescription = "Ask."\n',
        encoding="utf-8",
    )
    settings = load_settings(environment={})
    assert settings.tool_modules == ("shop_tools",)
    assert [*settings.tools] == ["ask"]
    (tmp_path / "pointsman.toml").write_text("[tools]\npython = [3]\n", encoding="utf-8")
    with pytest.raises(SettingsInvalid, match=r"tool_modules\.0 in .*pointsman\.toml"):
        load_settings(environment={})


def test_a_command_loads_the_modules_that_it_names() -> None:
    done = run(["pointsman", "run", "order.json", "--tools", "shop_tools", "--store", "memory:", "--json"])
    assert done.code == 0
    assert '"output": 1.5' in done.output
    assert run(["pointsman", "run", "order.json", "--store", "memory:", "-q"]).code == 1
