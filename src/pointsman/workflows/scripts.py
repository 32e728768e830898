"""Scripts: the answers of the scripted model, read from a file and stored with the executions that use them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import msgspec
from msgspec import structs

from pointsman.definition.reading.documents import BYTES_MAX
from pointsman.engine.state import SCRIPT_OPTION
from pointsman.errors import CallerError, OperatorError
from pointsman.models.script import Script
from pointsman.models.transport import SCRIPTED, is_scripted
from pointsman.values import ExecutionId
from pointsman.workflows.sources import FileUnreadable

if TYPE_CHECKING:
    from pointsman.settings import Settings
    from pointsman.store.api import Store

__all__ = [
    "Script",
    "ScriptDiffers",
    "ScriptMissing",
    "load_script",
    "parse_script",
    "script_of",
    "script_text",
    "scripted_by",
    "slowed",
    "store_script",
]


class ScriptMissing(OperatorError):
    """The store does not have the script that an execution was started with."""

    code: ClassVar[str] = "script-missing"


class ScriptDiffers(CallerError):
    """An execution needs another script than that of this process."""

    code: ClassVar[str] = "script-differs"


def load_script(path: str | Path) -> Script:
    """Read a script file. Raises `FileUnreadable`, and `ScriptRefused` with its problems."""
    return parse_script(script_text(path))


def script_text(path: str | Path) -> str:
    """Return the text of a script file. Raises `FileUnreadable`."""
    try:
        with Path(path).open("rb") as stream:
            return stream.read(BYTES_MAX + 1).decode("utf-8-sig")
    except OSError as why:
        raise FileUnreadable(
            f"{str(path)!r} cannot be read: {why.strerror}", hint="Check the name of the script."
        ) from None
    except UnicodeDecodeError:
        raise FileUnreadable(f"{str(path)!r} is not UTF-8", hint="A script is YAML or JSON in UTF-8.") from None


def parse_script(text: str) -> Script:
    """Parse the text of a script. Raises `ScriptRefused` with its problems."""
    from pointsman.models.script import read_script

    return read_script(text)


def scripted_by(settings: Settings, script: Script | None) -> str | None:
    """Return the scripted model if a script or the settings select it; None: agents use the models that they name."""
    if script is not None:
        return SCRIPTED
    return settings.model if is_scripted(settings.model) else None


def slowed(script: Script, seconds: float) -> Script:
    """Return the script with each answer delayed by `seconds`, for demonstrations."""
    return structs.replace(
        script,
        rules=tuple(
            structs.replace(
                rule,
                answers=tuple(structs.replace(answer, delay_s=answer.delay_s + seconds) for answer in rule.answers),
            )
            for rule in script.rules
        ),
    )


async def store_script(store: Store, script: Script) -> str:
    """Store a script and return its digest."""
    return await store.blobs.put(msgspec.json.encode(script))


async def script_of(store: Store, execution: ExecutionId) -> Script | None:
    """Return the script that an execution was started with. Raises `ScriptMissing`."""
    digest: object = None
    async for row in store.journal.read(execution):
        started = row.events[0]
        digest = getattr(started, "options", {}).get(SCRIPT_OPTION)
        break
    if not isinstance(digest, str):
        return None
    data = await store.blobs.get(digest)
    if data is None:
        raise ScriptMissing(f"the store has no script {digest[:12]}", hint="Pass it again: --script FILE.")
    return msgspec.json.decode(data, type=Script)
