import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { JsonObject } from "@/api/views";
import { Button } from "@/components/Button";
import {
  type ConnectionKind,
  type ConnectionTest,
  matches,
  type OfferedTool,
  type ToolConnection,
} from "./connections";
import { ToolCallForm } from "./TryTool";
import type { TriedTool } from "./tools";

/** The tools that may be called, and those that a person must approve. */
export interface Choice {
  tools: ReadonlySet<string>;
  approvals: ReadonlySet<string>;
}

/** The choice of every tool, before they are listed. */
export const ALL = { tools: ["*"], requiresApproval: [] as string[] };

/** The choice after a test: that of the known connection; for a new one all tools of a server, and no operation. */
export function choiceOf(test: ConnectionTest, known: ToolConnection | null, kind: ConnectionKind): Choice {
  const names = test.tools.map((one) => one.name);
  if (known === null) return { tools: new Set(kind === "mcp" ? names : []), approvals: new Set() };
  return {
    tools: new Set(names.filter((name) => matches(known.tools, name))),
    approvals: new Set(names.filter((name) => matches(known.requiresApproval, name))),
  };
}

export const patternsOf = (choice: Choice) => ({
  tools: [...choice.tools],
  requiresApproval: [...choice.approvals].filter((name) => choice.tools.has(name)),
});

type Try = (tool: string, call: { tool: string; arguments: JsonObject }) => Promise<TriedTool>;

/** The tools that a test found, each to be chosen, and to be tried unless `onTry` is null. */
export function OfferedTools(props: {
  test: ConnectionTest;
  choice: Choice;
  onChoose: (choice: Choice) => void;
  onTry: Try | null;
}) {
  const { t } = useTranslation();
  const { test, choice } = props;
  const [words, setWords] = useState("");
  const shown = test.tools.filter((one) =>
    `${one.name} ${one.description}`.toLowerCase().includes(words.toLowerCase()),
  );
  const chooseAll = (isOn: boolean) => {
    const tools = new Set(choice.tools);
    for (const one of shown) isOn ? tools.add(one.name) : tools.delete(one.name);
    props.onChoose({ ...choice, tools });
  };
  return (
    <fieldset className="rounded-md border border-line p-3">
      <legend className="px-1 font-medium">
        {t("toolConnections.chosen", { chosen: choice.tools.size, count: test.tools.length })}
      </legend>
      <div className="mb-2 flex flex-wrap items-center gap-2">
        {test.tools.length > 8 ? (
          <input
            type="search"
            aria-label={t("tools.search")}
            placeholder={t("tools.search")}
            className="h-8 flex-1 rounded-md border border-line-strong bg-surface px-2"
            value={words}
            onChange={(event) => setWords(event.target.value)}
          />
        ) : null}
        <Button onClick={() => chooseAll(true)}>{t("toolConnections.all")}</Button>
        <Button onClick={() => chooseAll(false)}>{t("toolConnections.noneChosen")}</Button>
      </div>
      <ul className="max-h-80 divide-y divide-line overflow-auto">
        {shown.map((one) => (
          <Offer key={one.name} tool={one} choice={choice} onChoose={props.onChoose} onTry={props.onTry} />
        ))}
      </ul>
      {test.losses.length > 0 ? (
        <details className="mt-2 text-sm text-ink-soft">
          <summary>{t("toolConnections.losses", { count: test.losses.length })}</summary>
          <ul lang="en" className="list-disc pl-5 wrap-anywhere">
            {test.losses.map((loss) => (
              <li key={loss}>{loss}</li>
            ))}
          </ul>
        </details>
      ) : null}
    </fieldset>
  );
}

function toggled(names: ReadonlySet<string>, name: string, isOn: boolean): ReadonlySet<string> {
  const changed = new Set(names);
  if (isOn) changed.add(name);
  else changed.delete(name);
  return changed;
}

function Offer(props: { tool: OfferedTool; choice: Choice; onChoose: (choice: Choice) => void; onTry: Try | null }) {
  const { t } = useTranslation();
  const { tool, choice, onTry } = props;
  const { name } = tool;
  const [isTrying, setTrying] = useState(false);
  const isChosen = choice.tools.has(name);
  return (
    <li className="py-1.5">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <label className="flex min-h-6 min-w-0 flex-1 items-center gap-2">
          <input
            type="checkbox"
            checked={isChosen}
            onChange={(event) =>
              props.onChoose({ ...choice, tools: toggled(choice.tools, name, event.target.checked) })
            }
          />
          <span className="font-mono text-sm wrap-anywhere">{name}</span>
          {tool.method ? <span className="text-xs text-ink-faint">{tool.method}</span> : null}
        </label>
        <label className="flex min-h-6 items-center gap-1 text-sm">
          <input
            type="checkbox"
            disabled={!isChosen}
            aria-label={t("toolConnections.approvalNamed", { name })}
            checked={isChosen && choice.approvals.has(name)}
            onChange={(event) =>
              props.onChoose({ ...choice, approvals: toggled(choice.approvals, name, event.target.checked) })
            }
          />
          {t("tools.approval")}
        </label>
        {onTry ? (
          <Button
            kind="quiet"
            aria-expanded={isTrying}
            aria-label={t("toolConnections.tryNamed", { name })}
            onClick={() => setTrying(!isTrying)}
          >
            {t("tools.try")}
          </Button>
        ) : null}
      </div>
      {tool.description ? (
        <p className="line-clamp-2 pl-6 text-sm text-ink-soft wrap-anywhere">{tool.description}</p>
      ) : null}
      {isTrying && onTry ? (
        <div className="mt-2 ml-6 rounded-md border border-line p-3">
          <p className="mb-2 text-sm text-ink-soft">{t("tools.tryAbout")}</p>
          <ToolCallForm
            schema={tool.parameters as JsonObject}
            call={(given) => onTry(name, { tool: name, arguments: given })}
          />
        </div>
      ) : null}
    </li>
  );
}
