import { Eye, GitCompareArrows, Monitor, Tag, Undo2 } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { WorkflowEntry } from "@/api/views";
import { Button } from "@/components/Button";
import { IconButton } from "@/components/IconButton";
import { RelativeTime } from "@/components/RelativeTime";
import { isDraft, versionName } from "@/features/workflows/versionNames";
import { useEditor } from "../editorContext";

export type Comparison = "changes" | "screen" | "look";

interface Props {
  entry: WorkflowEntry;
  hasEarlier: boolean;
  isBusy: boolean;
  onShow: (how: Comparison) => void;
  onRestore: () => void;
  onPublish: () => void;
}

/** One revision: its name, author and time, and what can be done with it. */
export function VersionRow({ entry, hasEarlier, isBusy, onShow, onRestore, onPublish }: Props) {
  const { t } = useTranslation();
  const { saved, isChanged, mayChange } = useEditor();
  const version = versionName(entry, t);
  const isLatest = entry.revision === saved.revision;
  const isPublished = entry.revision === entry.published?.revision;
  const isOurs = mayChange && !saved.builtIn;
  return (
    <li className="px-3 py-2">
      <p className="flex flex-wrap items-baseline gap-x-2">
        <span className="font-medium wrap-anywhere">
          <bdi>{entry.label?.name ?? t("workflows.revision", { revision: entry.revision })}</bdi>
        </span>
        {entry.label ? (
          <span className="text-xs text-ink-soft">{t("workflows.revision", { revision: entry.revision })}</span>
        ) : null}
        {entry.version ? <span className="text-ink-soft">v{entry.version}</span> : null}
        {isLatest ? <span className="text-xs text-ink-soft">{t("versions.latest")}</span> : null}
        {isPublished ? <span className="text-xs text-done">{t("versions.published")}</span> : null}
        {isDraft(entry) ? <span className="text-xs text-waiting">{t("versions.draft")}</span> : null}
        <span className="ml-auto text-xs text-ink-faint">
          {entry.author ? `${entry.author}, ` : ""}
          {entry.createdAt === null ? null : <RelativeTime at={entry.createdAt} />}
        </span>
      </p>
      {entry.label?.note ? <p className="whitespace-pre-wrap text-ink-soft wrap-anywhere">{entry.label.note}</p> : null}
      <div className="mt-1 flex flex-wrap gap-1">
        {hasEarlier ? (
          <Button kind="quiet" onClick={() => onShow("changes")} aria-label={t("versions.changesOf", { version })}>
            <GitCompareArrows className="size-4" aria-hidden /> {t("versions.changes")}
          </Button>
        ) : null}
        <IconButton icon={Monitor} name={t("versions.screenOf", { version })} onClick={() => onShow("screen")} />
        <IconButton icon={Eye} name={t("versions.lookAt", { version })} onClick={() => onShow("look")} />
        {isLatest || !isOurs ? null : (
          <IconButton
            icon={Undo2}
            name={t("versions.backTo", { version })}
            disabled={isChanged || isBusy}
            onClick={onRestore}
          />
        )}
        {isOurs ? <IconButton icon={Tag} name={t("versions.publishOf", { version })} onClick={onPublish} /> : null}
      </div>
    </li>
  );
}
