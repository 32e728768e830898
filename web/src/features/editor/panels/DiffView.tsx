/** Differences between two definitions: as a graph, a list, and text. */
import { lazy, Suspense, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Definition, Json } from "@/api/views";
import { Loading } from "@/components/StatusMessage";
import { type Change, changesBetween, type FieldChange } from "@/graph/model/diff";
import { arrowName, NodesContext, useNodeName } from "@/graph/model/nodeNames";
import { DiffCanvas, MarkSign } from "@/graph/render/DiffCanvas";

const TextDiff = lazy(() => import("./TextDiff"));
const VIEWS = ["graph", "list", "text"] as const;

export interface Compared {
  before: Definition;
  after: Definition;
  /** The authors' texts, if known; otherwise the native documents are compared. */
  texts?: { before: string; after: string };
}

function documentText({ graph: _, ...document }: Definition): string {
  return JSON.stringify(document, null, 2);
}

export function DiffView({ before, after, texts }: Compared) {
  const { t } = useTranslation();
  const changes = useMemo(() => changesBetween(before, after), [before, after]);
  // Removed nodes are still shown by their names.
  const nodes = useMemo(() => [...before.nodes, ...after.nodes], [before, after]);
  const [view, setView] = useState<(typeof VIEWS)[number]>("graph");
  return (
    <div className="flex flex-col gap-2">
      <div role="tablist" aria-label={t("diff.views")} className="flex items-center gap-1">
        {VIEWS.map((one) => (
          <button
            key={one}
            type="button"
            role="tab"
            aria-selected={one === view}
            onClick={() => setView(one)}
            className="h-8 rounded-md px-2.5 text-ink-soft hover:bg-sunken aria-selected:bg-accent-soft aria-selected:text-accent"
          >
            {t(`diff.${one}`)}
          </button>
        ))}
        <span className="ml-auto text-xs text-ink-faint">{t("diff.count", { count: changes.length })}</span>
      </div>
      {changes.length === 0 && view !== "text" ? <p className="text-ink-soft">{t("diff.none")}</p> : null}
      <div role="tabpanel" aria-label={t(`diff.${view}`)}>
        {view === "graph" && changes.length > 0 ? (
          <div className="h-72 overflow-hidden rounded-md border border-line">
            <DiffCanvas before={before} after={after} changes={changes} />
          </div>
        ) : null}
        {view === "list" ? (
          <NodesContext.Provider value={nodes}>
            <ChangeList changes={changes} />
          </NodesContext.Provider>
        ) : null}
        {view === "text" ? (
          <Suspense fallback={<Loading />}>
            <TextDiff before={texts?.before ?? documentText(before)} after={texts?.after ?? documentText(after)} />
          </Suspense>
        ) : null}
      </div>
    </div>
  );
}

function ChangeList({ changes }: { changes: readonly Change[] }) {
  const { t } = useTranslation();
  const nameOf = useNodeName();
  return (
    <ul className="divide-y divide-line rounded-md border border-line empty:hidden">
      {changes.map((one) => (
        <li key={`${one.kind} ${one.id}`} className="px-3 py-2">
          <p className="flex items-center gap-2">
            <MarkSign mark={one.mark} />
            <span className="min-w-0 break-words">
              {t(`diff.kind.${one.kind}`)}{" "}
              <bdi className="font-medium" title={one.id}>
                {one.kind === "node" ? nameOf(one.id) : one.kind === "edge" ? arrowName(one.id, nameOf) : one.id}
              </bdi>{" "}
              <span className="text-ink-faint">{t(`diff.${one.mark}`)}</span>
            </span>
          </p>
          {one.mark === "changed" ? (
            <dl className="mt-1 space-y-1.5 pl-6.5">
              {one.fields.map((field) => (
                <Field key={field.path} field={field} />
              ))}
            </dl>
          ) : null}
        </li>
      ))}
    </ul>
  );
}

function Field({ field }: { field: FieldChange }) {
  const { t } = useTranslation();
  return (
    <div className="text-xs">
      <dt className="font-mono break-all text-ink-soft">{field.path}</dt>
      {"before" in field ? (
        <dd className="flex gap-1.5">
          <span className="sr-only">{t("diff.was")}</span>
          <span aria-hidden className="text-failed">
            −
          </span>
          <del className="min-w-0 break-words whitespace-pre-wrap no-underline">{textOf(field.before)}</del>
        </dd>
      ) : null}
      {"after" in field ? (
        <dd className="flex gap-1.5">
          <span className="sr-only">{t("diff.is")}</span>
          <span aria-hidden className="text-done">
            +
          </span>
          <ins className="min-w-0 break-words whitespace-pre-wrap no-underline">{textOf(field.after)}</ins>
        </dd>
      ) : null}
    </div>
  );
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
