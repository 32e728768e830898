"""Verbs of backup, retention, export, import, health, usage and settings. See `auth.verbs` for the rules."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pointsman.auth.audit import AUDIT
from pointsman.auth.policy import must_see_with_children, with_children
from pointsman.auth.verbs import Verbs, verb
from pointsman.executions.authority import own_fork
from pointsman.executions.opening import new_id
from pointsman.executions.public_events import must_be_visible
from pointsman.executions.usage_rollup import Dimension, UsageRollup, UsageRow
from pointsman.operations.export_import import export, import_file
from pointsman.operations.health import HealthFinding, damage, findings, repair
from pointsman.operations.model_connections import (
    ConnectionRequest,
    ProviderConnection,
    ProviderKinds,
    choose_default,
    connect_provider,
    disconnect_provider,
    provider_kinds,
)
from pointsman.operations.settings_changes import (
    MAIL,
    MailServerRequest,
    SettingsView,
    SettingView,
    TestedMail,
    change_setting,
    save_mail_server,
    setting_view,
    setting_views,
    try_mail_server,
    unset_setting,
)
from pointsman.operations.storage import Collected, Storage, collect
from pointsman.operations.usage import BudgetRow, budgets, narrowed, usage_audience
from pointsman.operations.workers import WorkersReport, workers_report
from pointsman.store.errors import masked_address
from pointsman.values import ExecutionId, Json, JsonObject
from pointsman.version import VERSION

if TYPE_CHECKING:
    from pointsman.operations.backup import Backup
    from pointsman.operations.metrics import Measuring
    from pointsman.operations.model_catalogue import ModelCatalogue, ModelPings
    from pointsman.operations.provider_keys import ModelKeys


class OperationVerbs(Verbs):
    """Actions of a caller on the store as a whole, and with measurements of this installation."""

    @verb("admin", "back the store up", exports=True)
    async def back_up(self, path: Path) -> Backup:
        """Back up the whole store to a new file. Safe while other processes use the store."""
        return await Storage(self.app).back_up(path)

    @verb("admin", "restore a backup", audit=False)
    async def restore(self, path: Path) -> Backup:
        """Restore a backup file into this store, which must be empty."""
        restored = await Storage(self.app).restore(path)
        # Afterwards: an entry would make the store not empty.
        acting = self.acting
        what = acting.via or "OperationVerbs.restore"
        await self.app[AUDIT].record_request(self.caller, what, target=acting.target, origin=acting.origin)
        return restored

    @verb("admin", "delete data", unless="dry_run")
    async def collect(self, *, dry_run: bool = False) -> Collected:
        """Delete what the `retention` settings do not keep, and what is not used any more."""
        return await collect(self.app, dry_run=dry_run)

    @verb("admin", "delete data", audit=False)
    async def compact(self) -> int:
        """Return the space of deleted data to the operating system. Return the bytes. See `Storage.compact`."""
        return await Storage(self.app).compact()

    @verb("operator", "run workflows", target=("execution",), exports=True)
    async def export(self, execution: str) -> AsyncIterator[bytes]:
        """Return the lines of an export file of an execution and its sub-workflows, which the caller must see.

        An export is exact, so an execution at the redaction level `minimal` is exported only at the command line.
        Raises `UnknownExecution`, `NotAllowed`, `HiddenByRedaction`.
        """
        await must_see_with_children(self.app, self.caller, execution)
        if self.caller.entrance != "shell":
            await must_be_visible(self.app, execution, "an export")
        lines = export(self.app, execution)
        return _with_first(await anext(lines), lines)

    @verb("operator", "run workflows", audit=False)
    async def left_out(self, execution: str) -> list[JsonObject]:
        """Return the files of an execution and its sub-workflows that are too large for its export."""
        await must_see_with_children(self.app, self.caller, execution)
        return await Storage(self.app).left_out(execution)

    @verb("admin", "import executions", made=lambda execution: {"executionId": execution})
    async def import_execution(self, path: Path, *, new: bool = False) -> ExecutionId:
        """Import an export file, under its own id or a `new` one. Return the id.

        Over HTTP the caller becomes the owner, since callers of the other store are unknown here. Raises
        `ImportRefused`, `ExecutionExists`.
        """
        execution = await import_file(self.app, path, name=new_id() if new else None)
        if self.caller.entrance != "shell":
            for child in await with_children(self.app, execution):
                await own_fork(self.app, self.caller, child)
        return execution

    @verb("admin", "check the installation", audit=False)
    async def findings(self) -> list[HealthFinding]:
        """Return the health findings, the most severe first, see `health.findings`."""
        return await findings(self.app)

    @verb("admin", "repair the installation")
    async def repair(self, findings: list[HealthFinding]) -> list[HealthFinding]:
        """Repair the findings that can be repaired without risk, and return these."""
        return await repair(self.app, findings)

    @verb("admin", "check the installation", audit=False)
    async def damage(self) -> list[str]:
        """Return the damage of the store, one sentence each. Reads everything."""
        return await damage(self.app)

    @verb("viewer", "see usage", audit=False)
    async def usage(
        self, by: Collection[Dimension] = ("workflow",), *, since: str = "", until: str = "", of: Iterable[str] = ()
    ) -> list[UsageRow]:
        """Return the usage of ended executions, as far as the caller may see it. `of`: filters such as `model:gpt-5`;
        the rest as in `UsageRollup.usage`. Raises `PeriodInvalid`, `UsageUnknown`."""
        audience = usage_audience(self.app, self.caller)
        return await UsageRollup(self.app).usage(by, since=since, until=until, of=narrowed(of), sees=audience)

    @verb("viewer", "see usage", audit=False)
    async def budgets(self, *, since: str = "", until: str = "") -> list[BudgetRow]:
        """Return the budgets of the workflows that the caller sees, the closest to its limit first. Raises
        `PeriodInvalid`."""
        return await budgets(self.app, since=since, until=until, sees=usage_audience(self.app, self.caller))

    @verb("admin", "compute usage again", audit=False)
    async def rebuild_usage(self) -> int:
        """Read all existing executions again and return their number. Deletes no usage."""
        return await UsageRollup(self.app).rebuild()

    @verb("admin", "read the metrics of this server", audit=False)
    async def metrics(self, measuring: Measuring, *, openmetrics_format: bool = False) -> bytes:
        """Return the metrics of a server in the text format of Prometheus, or as OpenMetrics."""
        return await measuring.text(openmetrics_format=openmetrics_format)

    @verb("admin", "see workers", audit=False)
    async def workers(self) -> WorkersReport:
        """Return the live processes of the store, their queues, and the owners of executions."""
        return await workers_report(self.app)

    @verb("admin", "read the settings", audit=False)
    async def settings(self) -> SettingsView:
        """Return the effective settings with their sources, without secrets."""
        return {
            "version": VERSION,
            "store": masked_address(self.app.settings.store_url),
            "settings": await setting_views(self.app),
        }

    @verb("admin", "change settings", target=("name",))
    async def change_setting(self, name: str, value: Json, *, match: str | None = None) -> SettingView:
        """Enter a setting that takes effect at once. See `change_setting`."""
        await change_setting(self.app, name, value, by=self.caller.name, match=match)
        return await setting_view(self.app, name)

    @verb("admin", "change settings", target=("name",))
    async def unset_setting(self, name: str, *, match: str | None = None) -> None:
        """Delete what was entered for a setting. Raises `NoSuchSetting`, `RevisionMoved`."""
        await unset_setting(self.app, name, match=match)

    @verb("admin", "change settings")
    async def save_mail_server(self, request: MailServerRequest, *, match: str | None = None) -> SettingView:
        """Enter the mail server, with its password sealed. See `save_mail_server`."""
        await save_mail_server(self.app, request, by=self.caller.name, match=match)
        return await setting_view(self.app, MAIL)

    @verb("admin", "change settings", target=("to",))
    async def try_mail_server(self, request: MailServerRequest, to: str) -> TestedMail:
        """Send a test message through a mail server. Nothing is saved. See `try_mail_server`."""
        return await try_mail_server(self.app, request, to)

    # Models --------------------------------------------------------------------------------------------------------

    @verb("viewer", "see models", audit=False)
    async def models(self) -> ModelCatalogue:
        """Return the models that workflows name, their prices, and the providers. See `list_models`."""
        from pointsman.operations.model_catalogue import list_models  # Loads the models.

        await self.app.services.models.refresh()
        return list_models(self.app)

    @verb("operator", "run workflows", audit=False)
    async def model_keys(self) -> ModelKeys:
        """Return the keys of every provider, without their values. See `model_keys`."""
        from pointsman.operations.provider_keys import model_keys  # Loads the models.

        await self.app.services.models.refresh()
        return await model_keys(self.app)

    @verb("admin", "ask models")
    async def ping_models(self) -> ModelPings:
        """Send a one-word request to every named model, which may cost something. See `ping_models`."""
        from pointsman.operations.model_catalogue import ping_models  # Loads the models.

        await self.app.services.models.refresh()
        return {"models": await ping_models(self.app)}

    @verb("admin", "connect models", audit=False)
    async def provider_kinds(self) -> ProviderKinds:
        """Return the kinds of providers that can be connected. See `provider_kinds`."""
        return provider_kinds(self.app.settings)

    @verb("admin", "connect models", target=("name",))
    async def connect_provider(
        self, name: str, request: ConnectionRequest, *, match: str | None = None
    ) -> ProviderConnection:
        """Test a provider of models and store it, with its key sealed. See `connect_provider`."""
        return await connect_provider(self.app, name, request, by=self.caller.name, match=match)

    @verb("admin", "connect models", target=("name",))
    async def disconnect_provider(self, name: str, *, match: str | None = None) -> None:
        """Delete a connected provider and its key. Raises `NoSuchProvider`, `RevisionMoved`."""
        await disconnect_provider(self.app, name, match=match)

    @verb("admin", "connect models", target=("model",))
    async def choose_default_model(self, model: str, *, match: str | None = None) -> None:
        """Use a model for agents without one; empty: none. See `choose_default`."""
        await choose_default(self.app, model, by=self.caller.name, match=match)


async def _with_first(first: bytes, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for line in lines:
        yield line
