"""Keys of the vault: read from the environment, the settings or a file, and created if there are none.

The newest key comes first: it encrypts, and all of them decrypt. Keys are never in the store, so that the store alone
reveals no secret.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

import msgspec
from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from pointsman.errors import OperatorError
from pointsman.settings import config_directory
from pointsman.settings.sections import VaultSettings

FILE: Final = "vault.key"
VARIABLE: Final = "POINTSMAN_VAULT_KEYS"
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
OWNER_ONLY: Final = 0o600
HINT: Final = f"Set it in {VARIABLE}, as `keys` under [vault] in pointsman.toml, or in the key file."


class VaultLocked(OperatorError):
    """The store contains secrets, but no key is configured here."""

    code: ClassVar[str] = "vault-locked"


class VaultKeyInvalid(OperatorError):
    """A key of the vault, or the key file, cannot be used."""

    code: ClassVar[str] = "vault-key-invalid"


class SecretUnreadable(OperatorError):
    """No configured key decrypts a secret of the store, or its record was altered."""

    code: ClassVar[str] = "secret-unreadable"


class _Sealed(msgspec.Struct, frozen=True):
    """The encrypted content: a value with its name, so that a sealed secret cannot be moved to another name."""

    name: str
    value: str


class SealingKeys(NamedTuple):
    """Keys of the vault: the newest encrypts, all decrypt."""

    fernet: MultiFernet

    def seal(self, name: str, value: str) -> str:
        return self.fernet.encrypt(msgspec.json.encode(_Sealed(name, value))).decode()

    def open(self, name: str, sealed: str) -> str:
        """Decrypt a secret. Raises `SecretUnreadable`."""
        try:
            opened = msgspec.json.decode(self.fernet.decrypt(sealed), type=_Sealed)
        except (InvalidToken, msgspec.DecodeError):
            opened = None
        if opened is None or opened.name != name:
            message = f"no configured key can decrypt the secret {name!r}"
            raise SecretUnreadable(
                message, hint=f"Configure the key that it was encrypted with, or set the secret again. {HINT}"
            )
        return opened.value


def sealing_keys_of(settings: VaultSettings) -> SealingKeys:
    """Return the configured keys. Raises `VaultLocked` if there are none, and `VaultKeyInvalid`."""
    sources = os.environ.get(VARIABLE, "").replace(",", " ").split() or [*settings.keys]
    source = VARIABLE if os.environ.get(VARIABLE, "").strip() else "[vault] keys"
    if not sources:
        path = key_file_of(settings)
        sources, source = read_key_file(path), str(path)
    if not sources:
        raise VaultLocked("no key is configured for the secrets of the store", hint=HINT)
    return SealingKeys(MultiFernet([_fernet(key, number, source) for number, key in enumerate(sources, 1)]))


def key_file_of(settings: VaultSettings) -> Path:
    return settings.key_file or config_directory() / FILE


def is_given(settings: VaultSettings) -> bool:
    """Return whether the keys come from the environment or the settings, so that the key file is not used."""
    return bool(os.environ.get(VARIABLE, "").strip() or settings.keys)


def read_key_file(path: Path) -> list[str]:
    """Return the keys of a file; none if it does not exist. Raises `VaultKeyInvalid` if others may read it."""
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="ascii")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as why:
        reason = why.strerror if isinstance(why, OSError) else "it is not text"
        raise VaultKeyInvalid(f"the key file {str(path)!r} cannot be read: {reason}", hint=HINT) from None
    if mode & OTHERS and sys.platform != "win32":  # Windows reports these bits for every file.
        raise VaultKeyInvalid(f"other users can read the key file {str(path)!r}", hint=f"chmod 600 {path}")
    return text.split()


def make_key(settings: VaultSettings) -> Path:
    """Insert a new key before those in the key file, and create the file if needed. Raises `VaultKeyInvalid`."""
    path = key_file_of(settings)
    if is_given(settings):
        message = "the keys come from the environment or the settings, not from the key file"
        raise VaultKeyInvalid(
            message, hint="Add a new key before the others there, then run `pointsman secrets rotate`."
        )
    fresh = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Written completely or not at all, and readable by the owner only. The old keys are read after the `.new` file
        # is created exclusively: a concurrent `make_key` is refused, so no key is lost.
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write("\n".join([Fernet.generate_key().decode(), *read_key_file(path)]) + "\n")
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)  # After it is closed: Windows moves no open file.
        except BaseException:
            fresh.unlink()
            raise
    except OSError as why:
        message = f"the key file {str(path)!r} cannot be written: {why.strerror}"
        raise VaultKeyInvalid(
            message, hint=f"Set `key_file` under [vault] to another path, or check that {fresh} exists."
        ) from None
    return path


def _fernet(key: str, number: int, source: str) -> Fernet:
    try:
        return Fernet(key)
    except ValueError:
        message = f"key {number} of {source} is not a vault key"
        raise VaultKeyInvalid(
            message, hint="It must have 32 bytes in URL-safe base 64; `pointsman secrets init` creates one."
        ) from None
