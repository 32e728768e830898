import { Link } from "@tanstack/react-router";
import { Copy, FlaskConical, ListChecks, type LucideIcon, Play, Redo2, Save, Trash2, Undo2 } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { IconButton } from "@/components/IconButton";
import { useHasRole } from "@/components/useHasRole";
import { useTitle } from "@/components/useTitle";
import { useNodeName } from "@/graph/model/nodeNames";
import { textIn } from "@/i18n";
import { PresentPeople } from "../comments/PresentPeople";
import { ExportButton } from "../workflows/ExportButton";
import { useEditor } from "./editorContext";
import { PublishButton, PublishedState } from "./Publishing";

interface Props {
  /** Whether the browser stores the draft, so that it survives a reload. */
  isKept: boolean;
  isSaving: boolean;
  onSave: () => void;
  /** Saves unsaved changes first. */
  onStart: () => void;
  onClone: () => void;
  onRemove: () => void;
}

/** Name of the workflow, and the actions on the whole workflow. */
export function Toolbar({ isKept, isSaving, onSave, onStart, onClone, onRemove }: Props) {
  const { t, i18n } = useTranslation();
  const { id, saved, draft, node, isChanged, checked, show, mayChange } = useEditor();
  const nodeName = useNodeName();
  const mayRun = useHasRole("operator");
  const name = textIn(draft.shown.name, i18n.language, id);
  useTitle(name);
  const hasErrors = checked.problems.some((one) => one.severity === "error");
  return (
    <div className="flex flex-wrap items-center gap-2 border-b border-line bg-surface px-4 py-2">
      <h1 className="line-clamp-2 min-w-0 font-semibold wrap-anywhere">
        <bdi>{name}</bdi>
      </h1>
      <span className="text-xs text-ink-faint">
        {t("workflows.revision", { revision: saved.revision })} · {t(`dialect.${saved.dialect}`, saved.dialect)}
        {saved.published && !isChanged ? <PublishedState saved={saved} /> : null}
        {isChanged ? (
          <span className="text-waiting"> · {t("editor.unsaved", { count: draft.done.length })}</span>
        ) : null}
        {isChanged && !isKept ? <span className="font-medium text-failed"> · {t("editor.unkept")}</span> : null}
      </span>
      <PresentPeople subject={{ kind: "workflow", id }} place={node?.id ?? ""} nameOf={nodeName} />
      <div className="ml-auto flex flex-wrap gap-1">
        <Tool icon={Undo2} name={t("editor.undo")} onClick={draft.undo} disabled={!isChanged} />
        <Tool icon={Redo2} name={t("editor.redo")} onClick={draft.redo} disabled={draft.undone.length === 0} />
        <Link
          to="/executions"
          search={{ workflow: id }}
          className="inline-flex h-8 items-center gap-1.5 rounded-md px-3 font-medium text-ink-soft hover:bg-sunken"
        >
          <ListChecks className="size-4" /> <span className="max-sm:sr-only">{t("shell.executions")}</span>
        </Link>
        <ExportButton id={id} name={name} shown={draft.shown} isChanged={isChanged} />
        {!mayChange ? null : saved.builtIn ? (
          <Button onClick={onClone}>
            <Copy className="size-4" /> {t("editor.clone")}
          </Button>
        ) : (
          <>
            <Tool icon={Copy} name={t("editor.clone")} onClick={onClone} />
            <Tool icon={Trash2} name={t("workflows.delete")} onClick={onRemove} />
            <Button onClick={onSave} disabled={!isChanged || isSaving} aria-keyshortcuts="Control+S">
              <Save className="size-4" /> {hasErrors ? t("editor.saveDraft") : t("editor.save")}
            </Button>
            <PublishButton saved={saved} isChanged={isChanged} hasErrors={hasErrors} />
          </>
        )}
        {saved.builtIn || !mayChange ? null : (
          <Button onClick={() => show("try")} title={t("try.title")}>
            <FlaskConical className="size-4" /> <span className="max-lg:sr-only">{t("panel.try")}</span>
          </Button>
        )}
        {mayRun ? (
          <Button
            kind="primary"
            onClick={onStart}
            aria-keyshortcuts="Control+Enter"
            disabled={isSaving || (isChanged && (hasErrors || saved.builtIn))}
            title={isChanged && hasErrors ? t("editor.mendFirst") : ""}
          >
            <Play className="size-4" /> {isChanged ? t("editor.saveStart") : t("workflows.start")}
          </Button>
        ) : null}
      </div>
    </div>
  );
}

export function Tool(props: { icon: LucideIcon; name: string; onClick: () => void; disabled?: boolean }) {
  return <IconButton icon={props.icon} name={props.name} onClick={props.onClick} disabled={props.disabled ?? false} />;
}
