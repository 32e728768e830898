"""Named versions of saved workflows: the names that people give to revisions, and the revision that runs by id.

    save ─▶ a revision          no version is published: the newest revision runs
    publish ─▶ its name         that revision runs by id: also for triggers, forms, tools and other workflows
                                later revisions are drafts until one of them is published
    unpublish                   the newest revision runs again; names stay

One entry of the store holds the versions of a workflow, so that a name and what runs change together.
"""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec
from msgspec import Struct
from typing_extensions import TypedDict

from pointsman.errors import CallerError
from pointsman.store.api import ConfigStore
from pointsman.values import Instant

VERSIONS: Final = "workflow-versions"
"""Kind of the entries, by workflow."""
NAME_CHARS_MAX: Final = 100
NOTE_CHARS_MAX: Final = 2_000
NAMES_MAX: Final = 500
"""Named versions of one workflow."""


class VersionInvalid(CallerError):
    """A version cannot have this name or note."""

    code: ClassVar[str] = "version-invalid"


class VersionNameTaken(CallerError):
    """Another revision of the workflow has this name."""

    code: ClassVar[str] = "version-name-taken"


class NamedVersion(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A revision with a name."""

    revision: int
    name: str
    note: str = ""
    at: Instant = Instant(0.0)
    """When it was named."""
    by: str = ""


class NamedVersions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The named versions of one workflow."""

    published: int = 0
    """The revision that runs by id; 0: the newest."""
    named: tuple[NamedVersion, ...] = ()
    """Each revision occurs once."""

    def of(self, revision: int) -> NamedVersion | None:
        """Return the name of a revision; None: it has none."""
        return next((one for one in self.named if one.revision == revision), None)

    def with_published(self, version: NamedVersion) -> NamedVersions:
        """Return these versions after a version was published. Raises `VersionInvalid`, `VersionNameTaken`."""
        others = tuple(one for one in self.named if one.revision != version.revision)
        taken = next((one for one in others if one.name == version.name), None)
        if taken is not None:
            raise VersionNameTaken(
                f"revision {taken.revision} already has the name {version.name!r}", hint="Choose another name."
            )
        if len(others) >= NAMES_MAX:
            raise VersionInvalid(
                f"the workflow has {NAMES_MAX} named versions", hint="Publish one of these under another name."
            )
        return NamedVersions(published=version.revision, named=(*others, version))


NONE: Final = NamedVersions()


class NamedVersionView(TypedDict):
    """A revision with a name."""

    revision: int
    name: str
    note: str
    namedAt: float
    namedBy: str


def must_be_valid(name: str, note: str) -> None:
    """Raise `VersionInvalid` for a name or a note that a version cannot have."""
    if not name.strip() or len(name) > NAME_CHARS_MAX or not name.isprintable() or name != name.strip():
        raise VersionInvalid(
            f"{name[:NAME_CHARS_MAX]!r} cannot be the name of a version",
            hint=f"Use 1 to {NAME_CHARS_MAX} printable characters, without spaces at the ends.",
        )
    if len(note) > NOTE_CHARS_MAX or "\0" in note:
        raise VersionInvalid("the note is too long", hint=f"Use at most {NOTE_CHARS_MAX} characters.")


async def versions_of(entries: ConfigStore, workflow: str) -> NamedVersions:
    """Return the named versions of a workflow, given without a revision."""
    entry = await entries.find(VERSIONS, workflow)
    return NONE if entry is None else msgspec.convert(entry.value, NamedVersions)


async def all_versions(entries: ConfigStore) -> dict[str, NamedVersions]:
    """Return workflow -> named versions."""
    return {entry.key: msgspec.convert(entry.value, NamedVersions) for entry in await entries.list(VERSIONS)}


def version_view(version: NamedVersion) -> NamedVersionView:
    return {
        "revision": version.revision,
        "name": version.name,
        "note": version.note,
        "namedAt": version.at,
        "namedBy": version.by,
    }
