"""Settings of the processes that read documents of callers."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class DocumentSettings(BaseModel):
    """What reading, checking, converting or editing one document may cost a server."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    workers: int = Field(default=2, ge=0, le=64)
    """Processes that work on documents. 0: the server does it itself, without the limits below."""
    seconds: float = Field(default=5.0, gt=0, le=3600)
    """Processor time for one document, whatever its size."""
    seconds_per_mb: float = Field(default=5.0, ge=0, le=3600)
    """More processor time for each megabyte of the document."""
    memory_mb: int = Field(default=1500, ge=200, le=1_000_000)
    """Memory of each worker process."""
