import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Crosshair, Download, GitFork, Pencil } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { executionAt, executionPath } from "@/api/queries";
import type { Execution, Failure, Json } from "@/api/views";
import { Button } from "@/components/Button";
import { ErrorDetail } from "@/components/ErrorDetail";
import { ScriptedOutput } from "@/components/Scripted";
import { Loading } from "@/components/StatusMessage";
import { useHasRole } from "@/components/useHasRole";
import { hashTo } from "@/features/editor/document/nodeLinks";
import { useNodeName } from "@/graph/model/nodeNames";
import { ValueTree } from "@/values/ValueTree";
import { Evidence } from "./Evidence";
import { ForkDialog } from "./ForkDialog";
import { MigrateOffer } from "./MigrateOffer";
import { Section, Value } from "./Value";

/** Errors, output, files and data of an execution, now or after a row of its journal. */
export function Outcome(props: { execution: Execution; upTo: number | null; onPick: (node: string) => void }) {
  const { t } = useTranslation();
  const { execution: one, upTo } = props;
  const then = useQuery({ ...executionAt(one.executionId, upTo ?? 0), enabled: upTo !== null });
  const before = useQuery({ ...executionAt(one.executionId, (upTo ?? 0) - 1), enabled: upTo !== null && upTo > 1 });
  const shown = upTo === null ? one : then.data;
  if (!shown) return <Loading />;
  return (
    <div className="p-4">
      <ScriptedOutput scripted={shown.scripted} />
      {shown.errors.length > 0 ? (
        <Section title={t("execution.errors")}>
          <ul className="space-y-2">
            {shown.errors.map((why) => (
              <li key={`${why.code} ${why.nodeId} ${why.message}`}>
                <ErrorCard execution={one} why={why} onPick={props.onPick} />
              </li>
            ))}
          </ul>
          {upTo === null ? <MigrateOffer execution={one} /> : null}
        </Section>
      ) : null}
      {shown.output === null ? null : (
        <Section title={t("execution.output")}>
          <Fields value={shown.output} />
        </Section>
      )}
      {upTo === null && one.artifacts?.length ? (
        <Section title={t("execution.files")}>
          <ul>
            {one.artifacts.map((file) => (
              <li key={file.name}>
                <a
                  href={`${executionPath(one.executionId)}/artifacts/${encodeURIComponent(file.name)}`}
                  download
                  className="inline-flex min-h-6 items-center gap-1.5 text-accent underline"
                >
                  <Download className="size-3.5" aria-hidden /> {file.name}
                </a>
              </li>
            ))}
          </ul>
        </Section>
      ) : null}
      <Section title={upTo === null ? t("execution.state") : t("execution.stateThen", { row: upTo })}>
        <ValueTree
          value={shown.state}
          before={upTo === null ? undefined : upTo === 1 ? {} : before.data?.state}
          name={t("execution.state")}
        />
      </Section>
      {isEmpty(shown.input) ? null : (
        <Section title={t("execution.input")}>
          <Fields value={shown.input} />
        </Section>
      )}
    </div>
  );
}

/** One error: its node, its cause, and the actions that can fix it. */
function ErrorCard(props: { execution: Execution; why: Failure; onPick: (node: string) => void }) {
  const { t } = useTranslation();
  const { why, execution: one } = props;
  const isOperator = useHasRole("operator");
  const [again, setAgain] = useState(false);
  const nodeName = useNodeName();
  const node = why.nodeId;
  return (
    <div className="rounded-md border border-failed/40 bg-failed-soft p-2.5">
      {node ? (
        <p className="text-xs text-failed" title={node}>
          <bdi>{nodeName(node)}</bdi>
        </p>
      ) : null}
      <ErrorDetail code={why.code} message={why.message} hint={why.hint} look="font-medium text-failed" />
      <p className="font-mono text-xs text-ink-faint">{why.code}</p>
      <Evidence failure={why} />
      {node ? (
        <p className="mt-2 flex flex-wrap gap-2">
          <Button onClick={() => props.onPick(node)}>
            <Crosshair className="size-4" /> {t("execution.showNode")}
          </Button>
          {isOperator ? (
            <Button onClick={() => setAgain(true)}>
              <GitFork className="size-4" /> {t("execution.retryFrom")}
            </Button>
          ) : null}
          <Link
            to="/workflows/$id"
            params={{ id: one.workflowId }}
            hash={hashTo(node)}
            className="inline-flex h-8 items-center gap-1.5 rounded-md border border-line-strong bg-surface px-3 font-medium hover:bg-sunken"
          >
            <Pencil className="size-4" aria-hidden /> {t("execution.editNode")}
          </Link>
        </p>
      ) : null}
      {again && node ? <ForkDialog execution={one} at={null} step={node} onClose={() => setAgain(false)} /> : null}
    </div>
  );
}

function isEmpty(value: Json): boolean {
  return value === null || (typeof value === "object" && Object.keys(value).length === 0);
}

/** Show an object field by field, and any other value as a whole. */
function Fields({ value }: { value: Json }) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return <Value value={value} />;
  return (
    <dl className="space-y-2">
      {Object.entries(value).map(([name, part]) => (
        <div key={name}>
          <dt className="font-mono text-xs text-ink-soft break-words">{name}</dt>
          <dd>
            <Value value={part} />
          </dd>
        </div>
      ))}
    </dl>
  );
}
