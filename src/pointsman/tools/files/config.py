"""Settings for files of executions.

[files]
directory = "/var/lib/pointsman/files"
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class FileSettings(BaseModel):
    """Without a directory there are no files."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    directory: str = Field(min_length=1)
    """Each execution has one of its own in it."""
    file_bytes_max: int = Field(default=500_000, ge=1, le=10_000_000)
    bytes_max: int = Field(default=20_000_000, ge=1)
    """Of all files of an execution."""
    files_max: int = Field(default=500, ge=1, le=100_000)
    """Of an execution."""
