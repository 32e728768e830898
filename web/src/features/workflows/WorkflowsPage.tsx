import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { FileUp, Play, Search } from "lucide-react";
import { useDeferredValue, useState } from "react";
import { useTranslation } from "react-i18next";
import { executions, workflows } from "@/api/queries";
import type { ExecutionEntry, WorkflowEntry } from "@/api/views";
import { Button } from "@/components/Button";
import { ago, moment } from "@/components/instants";
import { StatusIcon } from "@/components/Status";
import { Empty, Failed, Loading } from "@/components/Told";
import { textIn } from "@/i18n";
import { ImportDialog } from "./ImportDialog";
import { StartDialog } from "./StartDialog";

export function WorkflowsPage() {
  const { t, i18n } = useTranslation();
  const saved = useQuery(workflows());
  const recent = useInfiniteQuery(executions());
  const [wanted, setWanted] = useState("");
  const [importing, setImporting] = useState(false);
  const [starting, setStarting] = useState<string | null>(null);
  const words = useDeferredValue(wanted.trim().toLowerCase());
  const found = (saved.data ?? []).filter((one) =>
    `${one.id} ${textIn(one.name, i18n.language)}`.toLowerCase().includes(words),
  );
  const latest = latestByWorkflow(recent.data?.pages.flatMap((page) => page.executions) ?? []);

  return (
    <div className="mx-auto max-w-5xl p-4 sm:p-6">
      <div className="flex flex-wrap items-center gap-3">
        <h1 className="text-xl font-semibold">{t("workflows.title")}</h1>
        <div className="relative ml-auto max-sm:order-last max-sm:w-full">
          <Search aria-hidden className="absolute top-2 left-2.5 size-4 text-ink-faint" />
          <input
            type="search"
            value={wanted}
            onChange={(event) => setWanted(event.target.value)}
            placeholder={t("workflows.search")}
            aria-label={t("workflows.search")}
            className="h-8 w-full rounded-md border border-line-strong bg-surface pr-2 pl-8 sm:w-64"
          />
        </div>
        <Button kind="primary" onClick={() => setImporting(true)}>
          <FileUp className="size-4" /> {t("workflows.import")}
        </Button>
      </div>

      <div className="mt-5">
        {saved.isPending ? <Loading /> : null}
        {saved.isError ? <Failed why={saved.error} again={() => void saved.refetch()} /> : null}
        {saved.isSuccess && saved.data.every((one) => one.builtIn) && !words ? (
          <Empty title={t("workflows.none")}>{t("workflows.noneHint")}</Empty>
        ) : null}
        {saved.isSuccess && saved.data.length > 0 && found.length === 0 ? (
          <Empty title={t("workflows.noMatch", { words: wanted })} />
        ) : null}
        <ul className="divide-y divide-line overflow-hidden rounded-lg border border-line bg-surface empty:hidden">
          {found
            .filter((one) => !one.builtIn)
            .map((one) => (
              <Row key={one.id} entry={one} latest={latest.get(one.id)} onStart={() => setStarting(one.id)} />
            ))}
        </ul>
        {found.some((one) => one.builtIn) ? (
          <section className="mt-8">
            <h2 className="font-semibold">{t("workflows.builtIn")}</h2>
            <p className="mb-2 text-ink-soft">{t("workflows.builtInAbout")}</p>
            <ul className="divide-y divide-line overflow-hidden rounded-lg border border-line bg-surface">
              {found
                .filter((one) => one.builtIn)
                .map((one) => (
                  <Row key={one.id} entry={one} latest={latest.get(one.id)} onStart={() => setStarting(one.id)} />
                ))}
            </ul>
          </section>
        ) : null}
      </div>
      <ImportDialog open={importing} onClose={() => setImporting(false)} />
      {starting === null ? null : <StartDialog workflow={starting} onClose={() => setStarting(null)} />}
    </div>
  );
}

function Row(props: { entry: WorkflowEntry; latest: ExecutionEntry | undefined; onStart: () => void }) {
  const { t, i18n } = useTranslation();
  const { entry, latest } = props;
  const name = textIn(entry.name, i18n.language, entry.id);
  return (
    <li className="flex items-center gap-3 px-4 py-3 hover:bg-sunken">
      <div className="min-w-0 flex-1">
        <Link to="/workflows/$id" params={{ id: entry.id }} className="font-medium break-words hover:underline">
          <bdi>{name}</bdi>
        </Link>
        <p className="flex flex-wrap gap-x-3 text-xs text-ink-faint">
          <span className="max-w-80 truncate font-mono">{entry.id}</span>
          <span>{t("workflows.revision", { revision: entry.revision })}</span>
          {entry.version ? <span>v{entry.version}</span> : null}
          <span>{t(`dialect.${entry.dialect}`, entry.dialect)}</span>
          {entry.createdAt === null ? null : (
            <span title={moment(entry.createdAt, i18n.language)}>
              {t("workflows.saved", { when: ago(entry.createdAt, i18n.language), who: entry.author })}
            </span>
          )}
          {entry.enabled ? null : <span className="text-waiting">{t("workflows.disabled")}</span>}
        </p>
      </div>
      {latest ? (
        <Link
          to="/executions/$id"
          params={{ id: latest.executionId }}
          className="flex items-center gap-1.5 text-xs text-ink-soft hover:underline"
        >
          <StatusIcon status={latest.status} />
          <span className="max-sm:sr-only">
            {t(`status.${latest.status}`)}, {ago(latest.startedAt, i18n.language)}
          </span>
        </Link>
      ) : null}
      <Button onClick={props.onStart} disabled={!entry.enabled} aria-label={t("workflows.startNamed", { name })}>
        <Play className="size-4" /> <span className="max-sm:sr-only">{t("workflows.start")}</span>
      </Button>
    </li>
  );
}

function latestByWorkflow(entries: readonly ExecutionEntry[]): Map<string, ExecutionEntry> {
  const found = new Map<string, ExecutionEntry>();
  for (const one of entries) if (!found.has(one.workflowId)) found.set(one.workflowId, one);
  return found;
}
