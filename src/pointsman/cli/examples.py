"""Examples of every command, shown below its help. A test parses each of them."""

from __future__ import annotations

from typing import Final

import click

EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "demo": ("pointsman demo",),
    "check": ("pointsman check flow.yaml", "pointsman check *.yaml --json", "pointsman check builtin:agentforge"),
    "run": (
        "pointsman run flow.yaml -i goal=ships",
        "pointsman run letter --input @order.json --model openai:gpt-5-mini",
        "pointsman run flow.yaml -i goal=ships --answer review=approve --json",
        """pointsman run --command "Write a proposal, send to ann@example.org\"""",
    ),
    "chat": ("pointsman chat desk.yaml --session ann",),
    "test": ("pointsman test examples",),
    "list": ("pointsman list --status waiting --workflow letter",),
    "show": ("pointsman show exec-1", "pointsman show exec-1 --json"),
    "events": ("pointsman events exec-1 --follow", "pointsman events exec-1 --jsonl --after 12"),
    "timeline": ("pointsman timeline exec-1",),
    "records": ("pointsman records ses_0badcafe", "pointsman records ses_0badcafe --json"),
    "answer": (
        "pointsman answer exec-1 review approve",
        """pointsman answer exec-1 review '{"action": "edit", "data": {"title": "Ships"}}' --as ann""",
    ),
    "steer": (
        """pointsman steer exec-1 --say "Be brief." --goto writer""",
        "pointsman steer exec-1 --set draft.title=Ships",
    ),
    "inbox": ("pointsman inbox --as ann --group editors",),
    "delegate": ("pointsman delegate exec-1 review ben --as ann",),
    "resume": ("pointsman resume exec-1", "pointsman resume exec-1 --limit steps=2000 --limit costUsd=5"),
    "retry": ("pointsman retry exec-1", "pointsman retry exec-1 --from draft --set style=short"),
    "fork": ("pointsman fork exec-1 --at 12", "pointsman fork exec-1 --at 12 --set draft.title=Ships"),
    "move": ("pointsman move exec-1 --to flow.yaml --check",),
    "replay": ("pointsman replay exec-1",),
    "signal": ("""pointsman signal exec-1 order.paid '{"amount": 5}' --key payment-7""",),
    "publish": ("""pointsman publish order.paid '{"order": 7}'""",),
    "schedules add": (
        """pointsman schedules add report --cron "0 7 * * 1-5" --timezone Europe/Berlin""",
        "pointsman schedules add report --every 15m -i who=ann",
    ),
    "schedules list": ("pointsman schedules list",),
    "schedules pause": ("pointsman schedules pause report",),
    "schedules resume": ("pointsman schedules resume report",),
    "schedules delete": ("pointsman schedules delete report",),
    "schedules next": ("pointsman schedules next report --count 10",),
    "schedules run": ("pointsman schedules run report",),
    "keep": ("pointsman keep --store sqlite:///flows.db", "pointsman keep --wait"),
    "serve": ("pointsman serve --store sqlite:///flows.db --port 8000",),
    "workflows share": ("pointsman workflows share news --with groups --group desk",),
    "audit": ("pointsman audit --who ada --json",),
    "keys add": ("pointsman keys add ada --role editor --group desk",),
    "keys list": ("pointsman keys list",),
    "keys revoke": ("pointsman keys revoke ada",),
    "secrets init": ("pointsman secrets init",),
    "secrets set": ("pointsman secrets set WEATHER", "pointsman secrets set WEATHER --as ada"),
    "secrets list": ("pointsman secrets list",),
    "secrets allow": (
        "pointsman secrets allow WEATHER --host api.example.com",
        "pointsman secrets allow SMTP --tool send_mail",
    ),
    "secrets disallow": ("pointsman secrets disallow WEATHER --host api.example.com",),
    "secrets delete": ("pointsman secrets delete WEATHER",),
    "secrets rotate": ("pointsman secrets rotate --new-key",),
    "notifications list": ("pointsman notifications list",),
    "notifications retry": ("pointsman notifications retry NOTICE",),
    "pause": ("pointsman pause exec-1 --by ann",),
    "cancel": ('pointsman cancel exec-1 --reason "no longer needed"',),
    "delete": ("pointsman delete exec-1 exec-2", "pointsman delete --session ann"),
    "gc": ("pointsman gc --dry-run",),
    "export": ("pointsman export exec-1 -o exec-1.jsonl",),
    "import": ("pointsman import exec-1.jsonl", "pointsman import exec-1.jsonl --new-id"),
    "backup": ("pointsman backup monday.backup --store sqlite:///flows.db",),
    "restore": ("pointsman restore monday.backup --store postgresql://pointsman@db/pointsman",),
    "bulk": (
        "pointsman bulk retry --status failed --workflow letter",
        "pointsman bulk cancel --since 2027-01-31 --yes",
    ),
    "memory list": ("pointsman memory list --user ann",),
    "memory get": ("pointsman memory get --user ann tone",),
    "memory set": ("pointsman memory set --user ann tone short --ttl 30d",),
    "memory append": ("pointsman memory append --user ann notes Called.",),
    "memory delete": ("pointsman memory delete --user ann tone",),
    "memory search": ("pointsman memory search --user ann invoice",),
    "memory history": ("pointsman memory history --user ann tone",),
    "memory restore": ("pointsman memory restore --user ann tone 2",),
    "memory reindex": ("pointsman memory reindex",),
    "convert": ("pointsman convert flow.yaml --to mermaid", "pointsman convert flow.yaml --to graph --out flow.json"),
    "workflows list": ("pointsman workflows list",),
    "workflows save": ("pointsman workflows save flow.yaml --author ann",),
    "workflows get": ("pointsman workflows get letter@2",),
    "workflows clone": ("pointsman workflows clone builtin:deep_research my-research",),
    "workflows design": ("""pointsman workflows design "A letter that a person sees first." --id letter --save""",),
    "workflows edit": (
        """pointsman workflows edit letter --words "Write it in verse." """.strip(),
        "pointsman workflows edit letter --operations @change.json --apply",
    ),
    "workflows rollback": ("pointsman workflows rollback letter 1",),
    "mcp": ("pointsman mcp --store sqlite:///desk.db",),
    "workflows delete": ("pointsman workflows delete letter",),
    "workflows diff": ("pointsman workflows diff letter 1 2",),
    "workflows versions": ("pointsman workflows versions letter",),
    "schema": ("pointsman schema > workflow.schema.json", "pointsman schema --openapi > openapi.json"),
    "tools": ("pointsman tools --script script.yaml",),
    "tools import": ("pointsman tools import https://api.example.org/openapi.json --out shop.toml",),
    "models": ("pointsman models --keys", "pointsman models --ping --model openai:gpt-5-mini"),
    "settings": ("pointsman settings",),
    "usage": ("pointsman usage --by model --since 2026-11-01",),
    "verify": ("pointsman verify --store sqlite:///flows.db",),
    "doctor": ("pointsman doctor",),
    "completion": ('eval "$(pointsman completion bash)"',),
}


def show_examples(command: click.Command, name: str) -> None:
    """Add the examples to the help of a command and of its subcommands."""
    if name in EXAMPLES and not command.epilog:
        lines = "\n".join(f"  {line.strip()}" for line in EXAMPLES[name])
        command.epilog = f"\b\n{'Example' if len(EXAMPLES[name]) == 1 else 'Examples'}:\n{lines}"
    if isinstance(command, click.Group):
        for inner, one in command.commands.items():
            show_examples(one, f"{name} {inner}")
