import { useQueryClient } from "@tanstack/react-query";
import { FolderInput, Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { CatalogueEntry } from "@/api/views";
import { Button } from "@/components/Button";
import { Confirm } from "@/components/Confirm";
import { ErrorDetail } from "@/components/ErrorDetail";
import { SelectionBar } from "@/components/SelectionBar";
import { useHasRole } from "@/components/useHasRole";
import { useSelection } from "@/components/useSelection";
import { textIn } from "@/i18n";
import { type NotDeleted, removeEach } from "./catalogue";
import { MoveDialog } from "./MoveDialog";
import { WorkflowRow } from "./WorkflowRow";

const NAMED_MAX = 12;

/** The saved workflows, without the built-in ones; several can be deleted at once. */
export function SavedWorkflows(props: { entries: readonly CatalogueEntry[]; onStart: (id: string) => void }) {
  const { t, i18n } = useTranslation();
  const client = useQueryClient();
  const mayDesign = useHasRole("editor");
  const ids = props.entries.map((one) => one.id);
  const selection = useSelection(ids);
  const [isSure, setSure] = useState(false);
  const [isMoving, setMoving] = useState(false);
  const [notDeleted, setNotDeleted] = useState<readonly NotDeleted[]>([]);
  const chosen = props.entries.filter((one) => selection.has(one.id));
  const names = chosen.map((one) => textIn(one.names ?? one.name, i18n.language, one.id));
  const remove = async () => {
    setNotDeleted(await removeEach(chosen));
    selection.clear();
    await client.invalidateQueries({ queryKey: ["workflows"] });
  };
  const more = names.length - NAMED_MAX;
  return (
    <>
      {notDeleted.length > 0 ? (
        <div role="alert" className="mb-3 rounded-md border border-failed/40 bg-failed-soft p-3 text-failed">
          <p className="font-medium">{t("workflows.kept", { count: notDeleted.length })}</p>
          <ul className="mt-1 list-disc pl-5">
            {notDeleted.map((one) => (
              <li key={one.id} className="wrap-anywhere">
                <bdi>{one.id}</bdi> <ErrorDetail code={one.why.code} message={one.why.message} hint={one.why.hint} />
              </li>
            ))}
          </ul>
        </div>
      ) : null}
      {mayDesign ? (
        <SelectionBar selection={selection} listed={ids}>
          <Button onClick={() => setMoving(true)}>
            <FolderInput className="size-4" aria-hidden /> {t("folders.move")}
          </Button>
          <Button kind="danger" onClick={() => setSure(true)}>
            <Trash2 className="size-4" aria-hidden /> {t("workflows.delete")}
          </Button>
        </SelectionBar>
      ) : null}
      <ul className="divide-y divide-line overflow-hidden rounded-lg border border-line bg-surface empty:hidden">
        {props.entries.map((one) => (
          <WorkflowRow
            key={one.id}
            entry={one}
            selection={mayDesign ? selection : null}
            onStart={() => props.onStart(one.id)}
          />
        ))}
      </ul>
      {isMoving ? (
        <MoveDialog
          entries={chosen}
          onMoved={() => client.invalidateQueries({ queryKey: ["workflows"] })}
          onClose={() => setMoving(false)}
        />
      ) : null}
      {isSure ? (
        <Confirm
          title={t("workflows.deleteMany", { count: names.length })}
          about={t("workflows.deleteNamed", {
            names: [
              ...names.slice(0, NAMED_MAX),
              ...(more > 0 ? [t("workflows.deleteMore", { count: more })] : []),
            ].join(", "),
          })}
          confirmLabel={t("workflows.delete")}
          action={remove}
          onClose={() => setSure(false)}
        />
      ) : null}
    </>
  );
}
