"""What starts a workflow by itself: whether each trigger says when, and nobody else can pull it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pointsman.definition.checks.subject import Subject
from pointsman.definition.model.workflow import Trigger
from pointsman.definition.problems import Problem, error, pointer_to, warning

WEBHOOK_SECRET_CHARS_MIN: Final = 16
ADDRESS_WORDS: Final = ("run", "pause", "resume", "times")
"""How addresses of schedules end."""
NEEDS: Final = {"schedule": "cron", "webhook": "path", "event": "event"}


def check_triggers(subject: Subject) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    for position, trigger in enumerate(subject.workflow.triggers or ()):
        at = pointer_to("triggers", position)
        yield from _when(at, trigger)
        for key, named in (("id", trigger.id), ("path", trigger.path)):
            if named is None:
                continue
            if (key, named) in seen:
                message = f"two triggers have the {key} {named!r}"
                yield error("duplicate-trigger", f"{at}/{key}", message, hint="Rename one of them.")
            seen.add((key, named))
        if trigger.type == "schedule" and trigger.id in ADDRESS_WORDS:
            message = (
                f"over HTTP the schedule of trigger {trigger.id!r} cannot be reached: its id is a word of addresses"
            )
            yield warning("trigger-id-reserved", f"{at}/id", message, hint=f"Other than {', '.join(ADDRESS_WORDS)}.")
        if trigger.type == "webhook":
            yield from _secret(at, trigger)


def _when(at: str, trigger: Trigger) -> Iterator[Problem]:
    missing = NEEDS[trigger.type]
    if not getattr(trigger, missing):
        message = f"trigger {trigger.id!r} of type {trigger.type!r} lacks `{missing}`"
        yield error("trigger-incomplete", at, message, hint=f"Set `{missing}`.")
    elif trigger.cron is not None:
        from pointsman.definition.model.cron import (  # only documents with schedules pay for its import
            EXAMPLE,
            cron_fault,
        )

        fault = cron_fault(trigger.cron)
        if fault is not None:
            yield error("cron-invalid", f"{at}/cron", fault.message, hint=EXAMPLE)


def _secret(at: str, trigger: Trigger) -> Iterator[Problem]:
    secret = trigger.secret
    if secret is None:
        message = f"whoever knows the address of trigger {trigger.id!r} can call it"
        yield warning("webhook-unsigned", at, message, hint="Set `secret`, best as a handle: `secret.NAME`.")
    elif not secret.startswith("secret.") and len(secret) < WEBHOOK_SECRET_CHARS_MIN:
        message = f"the secret of trigger {trigger.id!r} is shorter than {WEBHOOK_SECRET_CHARS_MIN} characters"
        yield error("weak-secret", f"{at}/secret", message, hint="Use a longer one, best as a handle: `secret.NAME`.")
