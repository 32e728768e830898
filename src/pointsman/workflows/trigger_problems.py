"""Checks of triggers that need an installation: unknown time zones, and schedules that are never due."""

from __future__ import annotations

from collections.abc import Iterator

from pointsman.definition.model.cron import cron_fault
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem, error, pointer_to
from pointsman.workflows.calendar import CronInvalid, ZoneUnknown, check_cron, zone_of


def trigger_problems(workflow: WorkflowDefinition) -> Iterator[Problem]:
    for position, trigger in enumerate(workflow.triggers or ()):
        at = pointer_to("triggers", position)
        try:
            zone = zone_of(trigger.timezone or "UTC")
            if trigger.cron and cron_fault(trigger.cron) is None:
                check_cron(trigger.cron, zone)
        except ZoneUnknown as why:
            yield error("zone-unknown", f"{at}/timezone", str(why), hint=why.hint)
        except CronInvalid as why:
            yield error("cron-invalid", f"{at}/cron", str(why), hint=why.hint)
