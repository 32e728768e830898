"""Commands for the settings: show them, and enter those that take effect without a restart."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

import click
import msgspec

from pointsman.cli.app_opening import go, installation, loaded, session_at_prompt
from pointsman.cli.options import json_option, store_option
from pointsman.cli.printing import print_json, read_hidden, say, shown
from pointsman.errors import OperatorError
from pointsman.operations.settings_changes import MailSecurity, MailServerRequest, SettingView, may_have_entries
from pointsman.operations.verbs import OperationVerbs
from pointsman.settings import shown as settings_view
from pointsman.values import Json, JsonObject

T = TypeVar("T")


@click.group(invoke_without_command=True)
@json_option
@store_option
@click.pass_context
def settings(context: click.Context, *, as_json: bool, store: str | None) -> None:
    """Show the effective settings with their sources; secrets are masked. `app` is the source of what admins entered,
    with the commands below or in the web app."""
    if context.invoked_subcommand is not None:
        return
    known = loaded(store)
    views = cast("dict[str, JsonObject]", settings_view(known))
    if may_have_entries(known):
        try:
            entered = go(_with_operations(store, lambda operations: operations.settings()))["settings"]
            views |= {one["name"]: {"value": one["value"], "source": one["source"]} for one in entered}
        except OperatorError as why:  # The settings help to find out why.
            click.echo(f"warning: what admins entered is not shown: {shown(str(why), chars_max=400)}", err=True)
    if as_json:
        print_json(views)
        return
    for name, view in views.items():
        click.echo(f"{name:20} {shown(view['value'], chars_max=80):50} {view['source']}")


@settings.command("set")
@click.argument("name")
@click.argument("value")
@json_option
@store_option
def set_(name: str, value: str, *, as_json: bool, store: str | None) -> None:
    """Enter a setting that takes effect without a restart: language, variables, retention or allow_email_sending.

    VALUE is JSON; other text is a string. Running servers use it within a second. A file, a variable or an option that
    has the setting has precedence.
    """
    view = go(_with_operations(store, lambda operations: operations.change_setting(name, _value(value))))
    _report(view, as_json=as_json)


def _value(text: str) -> Json:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


@settings.command()
@click.argument("name")
@json_option
@store_option
def unset(name: str, *, as_json: bool, store: str | None) -> None:
    """Delete what was entered for a setting; `mail` is the mail server. The default takes effect."""
    go(_with_operations(store, lambda operations: operations.unset_setting(name)))
    if as_json:
        print_json({"unset": [name]})
    else:
        say(f"unset {name}")


@settings.command()
@click.argument("host")
@click.option("--sender", required=True, help="`Name <address>`, or an address.")
@click.option("--port", type=click.IntRange(1, 65_535), help="Default: the usual port of the security.")
@click.option("--security", type=click.Choice(["starttls", "tls", "none"]), default="starttls", show_default=True)
@click.option("--user", default="", help="The password is then read from standard input or a prompt.")
@click.option("--recipient", multiple=True, help="Pattern of addresses for the tool send_email; repeatable.")
@click.option("--approval", is_flag=True, help="A person must approve each mail of the tool send_email.")
@click.option("--test", metavar="ADDRESS", help="Send a test message there first; without success, save nothing.")
@json_option
@store_option
def mail(
    host: str,
    *,
    sender: str,
    port: int | None,
    security: MailSecurity,
    user: str,
    recipient: tuple[str, ...],
    approval: bool,
    test: str | None,
    as_json: bool,
    store: str | None,
) -> int:
    """Enter the mail server at HOST for notices by mail and the tool send_email. Its password is stored encrypted."""
    request = MailServerRequest(
        host=host,
        port=port,
        security=security,
        username=user,
        password=read_hidden("Password") if user else None,
        sender=sender,
        recipients=recipient or ("*",),
        requires_approval=approval,
    )
    if test is not None:
        tested = go(_with_operations(store, lambda operations: operations.try_mail_server(request, test)))
        if not tested["sent"]:
            if as_json:
                print_json({**tested, "saved": False})
            else:
                say(f"not sent: {shown(tested['error'], chars_max=400)}")
            return 1
    _report(go(_with_operations(store, lambda operations: operations.save_mail_server(request))), as_json=as_json)
    return 0


def _report(view: SettingView, *, as_json: bool) -> None:
    if as_json:
        print_json({**view})
    else:
        say(f"{view['name']}: {shown(view['value'], chars_max=400)}")


async def _with_operations(store: str | None, use: Callable[[OperationVerbs], Awaitable[T]]) -> T:
    async with installation(store) as app:
        return await use(session_at_prompt(app).operations)
