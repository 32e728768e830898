import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Folder, Globe, Play, Users } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import type { CatalogueEntry } from "@/api/views";
import { Button } from "@/components/Button";
import { ServerText } from "@/components/ErrorDetail";
import { IconButton, iconLook } from "@/components/IconButton";
import { SelectionCheckbox } from "@/components/SelectionBar";
import { StatusIcon } from "@/components/Status";
import { ErrorMessage } from "@/components/StatusMessage";
import { ago, moment } from "@/components/times";
import { useHasRole } from "@/components/useHasRole";
import type { Selection } from "@/components/useSelection";
import { textIn } from "@/i18n";
import { enable } from "./catalogue";
import { ExportButton } from "./ExportButton";
import { isDraft } from "./versionNames";

const SharingDialog = lazy(() => import("./SharingDialog").then((part) => ({ default: part.SharingDialog })));

/** One workflow in the list: description, latest execution, actions. */
export function WorkflowRow(props: { entry: CatalogueEntry; selection: Selection | null; onStart: () => void }) {
  const { t, i18n } = useTranslation();
  const mayDesign = useHasRole("editor");
  const mayRun = useHasRole("operator");
  const [isSharing, setSharing] = useState(false);
  const { entry, selection } = props;
  const name = textIn(entry.names ?? entry.name, i18n.language, entry.id);
  const about = entry.description === null ? "" : textIn(entry.description, i18n.language);
  const latest = entry.lastExecution;
  const isOurs = mayDesign && !entry.builtIn;
  const switching = useSwitch(entry.id);
  return (
    <li className={`flex gap-3 px-4 py-3 hover:bg-sunken ${selection?.has(entry.id) ? "bg-accent-soft" : ""}`}>
      {selection ? (
        <SelectionCheckbox selection={selection} id={entry.id} label={t("selection.choose", { name })} />
      ) : null}
      <div className="flex min-w-0 flex-1 flex-wrap items-center gap-x-3 gap-y-2">
        <div className="min-w-0 flex-1 max-sm:basis-full">
          <Link
            to="/workflows/$id"
            params={{ id: entry.id }}
            className="line-clamp-2 min-h-6 w-fit py-0.5 font-medium wrap-anywhere hover:underline"
          >
            <bdi>{name}</bdi>
          </Link>
          {about ? <p className="line-clamp-2 text-ink-soft wrap-anywhere">{about}</p> : null}
          <p className="flex flex-wrap items-center gap-x-3 text-xs text-ink-faint">
            <span className="max-w-80 truncate font-mono">{entry.id}</span>
            <span>{t("workflows.revision", { revision: entry.revision })}</span>
            {entry.folder ? (
              <Link
                to="/workflows"
                search={{ folder: entry.folder }}
                className="inline-flex max-w-60 min-h-6 items-center gap-1 hover:underline"
              >
                <Folder className="size-3 shrink-0" aria-hidden /> <bdi className="truncate">{entry.folder}</bdi>
              </Link>
            ) : null}
            {entry.published ? (
              <span className="max-w-60 truncate text-done">
                {t("versions.publishedAs", { name: entry.published.name })}
              </span>
            ) : null}
            {isDraft(entry) ? <span className="text-waiting">{t("versions.draft")}</span> : null}
            {entry.version ? <span>v{entry.version}</span> : null}
            {entry.dialect === "native" ? null : <span>{t(`dialect.${entry.dialect}`, entry.dialect)}</span>}
            {entry.createdAt === null ? null : (
              <span title={moment(entry.createdAt, i18n.language)}>
                {t(entry.author ? "workflows.saved" : "workflows.savedWhen", {
                  when: ago(entry.createdAt, i18n.language),
                  who: entry.author,
                })}
              </span>
            )}
            {entry.tags.map((tag) => (
              <span key={tag} className="max-w-40 truncate">
                #{tag}
              </span>
            ))}
            {entry.enabled ? null : <span className="text-waiting">{t("workflows.disabled")}</span>}
          </p>
          {switching.isError ? <ErrorMessage error={switching.error} /> : null}
          {switching.data?.length ? <LostText id={entry.id} losses={switching.data} onSeen={switching.reset} /> : null}
        </div>
        {latest ? (
          <Link
            to="/executions/$id"
            params={{ id: latest.executionId }}
            className="flex min-h-6 items-center gap-1.5 text-xs text-ink-soft hover:underline max-sm:mr-auto"
          >
            <StatusIcon status={latest.status} />
            <span>
              {t(`status.${latest.status}`)}, {ago(latest.startedAt, i18n.language)}
            </span>
          </Link>
        ) : null}
        <div className="flex items-center gap-1 max-sm:ml-auto">
          {isOurs ? (
            <Switch
              isOn={entry.enabled}
              label={t("workflows.enabledNamed", { name })}
              disabled={switching.isPending}
              onPress={() => switching.mutate(!entry.enabled)}
            />
          ) : null}
          {isOurs ? (
            <IconButton icon={Users} name={t("sharing.of", { name })} onClick={() => setSharing(true)} />
          ) : null}
          {isOurs ? (
            <Link
              to="/workflows/$id/publish"
              params={{ id: entry.id }}
              className={iconLook()}
              aria-label={t("publish.of", { name })}
              title={t("publish.of", { name })}
            >
              <Globe className="size-4" aria-hidden />
            </Link>
          ) : null}
          <ExportButton id={entry.id} name={name} />
          {mayRun ? (
            <Button onClick={props.onStart} disabled={!entry.enabled} aria-label={t("workflows.startNamed", { name })}>
              <Play className="size-4" aria-hidden /> <span className="max-sm:sr-only">{t("workflows.start")}</span>
            </Button>
          ) : null}
        </div>
      </div>
      {isSharing ? (
        <Suspense>
          <SharingDialog id={entry.id} name={name} onClose={() => setSharing(false)} />
        </Suspense>
      ) : null}
    </li>
  );
}

/** The server rewrote the author's text: list what was lost. The previous revision still has it. */
function LostText(props: { id: string; losses: readonly string[]; onSeen: () => void }) {
  const { t } = useTranslation();
  return (
    <div role="status" className="mt-1 rounded-md border border-waiting/50 bg-waiting-soft p-2 text-sm">
      <p>{t("workflows.lost")}</p>
      <ul className="list-disc pl-5">
        {props.losses.map((one) => (
          <li key={one} className="wrap-anywhere">
            {one.startsWith("comments") ? t("workflows.lostComments") : null}
            <ServerText text={one} look="text-ink-soft" />
          </li>
        ))}
      </ul>
      <p className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-1">
        <Link to="/workflows/$id" params={{ id: props.id }} className="inline-flex min-h-6 items-center underline">
          {t("workflows.lostBefore")}
        </Link>
        <Button onClick={props.onSeen}>{t("revisionConflict.seen")}</Button>
      </p>
    </div>
  );
}

function useSwitch(id: string) {
  const client = useQueryClient();
  return useMutation<string[], ApiError, boolean>({
    mutationFn: (enabled) => enable(id, enabled),
    onSuccess: async () => {
      await Promise.all([
        client.invalidateQueries({ queryKey: ["workflows"] }),
        client.invalidateQueries({ queryKey: ["workflow", id] }),
      ]);
    },
  });
}

function Switch(props: { isOn: boolean; label: string; disabled: boolean; onPress: () => void }) {
  return (
    <button
      type="button"
      role="switch"
      aria-checked={props.isOn}
      aria-label={props.label}
      title={props.label}
      disabled={props.disabled}
      onClick={props.onPress}
      className="flex h-8 w-11 items-center justify-center rounded-md disabled:opacity-50"
    >
      <span
        className={`flex h-5 w-9 items-center rounded-full p-0.5 transition-colors ${props.isOn ? "justify-end bg-accent" : "justify-start bg-ink-faint"}`}
      >
        <span className="size-4 rounded-full bg-surface" />
      </span>
    </button>
  );
}
