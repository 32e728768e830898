import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import { Button } from "@/components/Button";
import { DialogActions } from "@/components/DialogActions";
import { DraftDialog } from "@/components/DraftDialog";
import { IconButton } from "@/components/IconButton";
import { BOX, LabelledField } from "@/components/LabelledField";
import { ErrorMessage } from "@/components/StatusMessage";
import { WorkflowPicker } from "@/components/WorkflowPicker";
import { type Dataset, KINDS, type Kind, type ScorerBody, saveDataset } from "./evaluations";

const MATCH: ScorerBody = { name: "match", kind: "match", text: "", model: "" };

/** Add a dataset: the cases as text or from a file, and how outputs are scored. */
export function DatasetDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const [workflow, setWorkflow] = useState("");
  const [text, setText] = useState("");
  const [scorers, setScorers] = useState<readonly ScorerBody[]>([MATCH]);
  const save = useMutation<Dataset, ApiError>({
    mutationFn: () => saveDataset(name.trim(), { workflow, text, format: formatOf(text), scorers: [...scorers] }),
    onSuccess: async (made) => {
      await client.invalidateQueries({ queryKey: ["datasets"] });
      await navigate({ to: "/evaluations/$name", params: { name: made.id } });
    },
  });
  return (
    <DraftDialog open onClose={onClose} title={t("evaluations.new")} about={t("evaluations.newAbout")}>
      <form
        className="space-y-3"
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate();
        }}
      >
        <LabelledField name={t("evaluations.id")} required>
          {(its) => <input {...its} value={name} maxLength={100} onChange={(event) => setName(event.target.value)} />}
        </LabelledField>
        <LabelledField name={t("evaluations.workflow")} required>
          {(its) => <WorkflowPicker {...its} value={workflow} onChange={setWorkflow} />}
        </LabelledField>
        <LabelledField name={t("evaluations.cases")} about={t("evaluations.casesAbout")}>
          {(its) => (
            <textarea
              {...its}
              rows={6}
              spellCheck={false}
              className={`${its.className} font-mono text-xs`}
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          )}
        </LabelledField>
        <input
          type="file"
          accept=".csv,.json,.jsonl"
          aria-label={t("evaluations.file")}
          onChange={async (event) => {
            const file = event.target.files?.[0];
            if (file) setText(await file.text());
          }}
        />
        <Scorers scorers={scorers} onChange={setScorers} />
        {save.isError ? <ErrorMessage error={save.error} /> : null}
        <DialogActions onClose={onClose}>
          <Button type="submit" kind="primary" disabled={!name.trim() || !workflow || save.isPending}>
            {t("evaluations.save")}
          </Button>
        </DialogActions>
      </form>
    </DraftDialog>
  );
}

/** JSON begins with a brace or a bracket; everything else is a table. */
const formatOf = (text: string) => (/^\s*[[{]/.test(text) ? "jsonl" : "csv");

function Scorers(props: { scorers: readonly ScorerBody[]; onChange: (next: readonly ScorerBody[]) => void }) {
  const { t } = useTranslation();
  const { scorers, onChange } = props;
  const set = (nth: number, change: Partial<ScorerBody>) =>
    onChange(scorers.map((one, at) => (at === nth ? { ...one, ...change } : one)));
  return (
    <fieldset className="space-y-2">
      <legend className="mb-0.5 font-medium">{t("evaluations.scorers")}</legend>
      {scorers.map((one, nth) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows have no other identity while their names are typed
        <div key={nth} className="grid grid-cols-[1fr_1fr_auto] gap-2">
          <input
            className={BOX}
            value={one.name}
            maxLength={40}
            aria-label={t("evaluations.scorerName", { nth: nth + 1 })}
            onChange={(event) => set(nth, { name: event.target.value })}
          />
          <select
            className={BOX}
            value={one.kind}
            aria-label={t("evaluations.scorerKind", { nth: nth + 1 })}
            onChange={(event) => set(nth, { kind: event.target.value as Kind })}
          >
            {KINDS.map((kind) => (
              <option key={kind} value={kind}>
                {t(`evaluations.kind.${kind}`)}
              </option>
            ))}
          </select>
          <IconButton
            icon={Trash2}
            name={t("evaluations.scorerRemove", { name: one.name })}
            onClick={() => onChange(scorers.filter((_, at) => at !== nth))}
          />
          {one.kind === "match" ? null : (
            <input
              className={`${BOX} col-span-2`}
              value={one.text}
              placeholder={t(`evaluations.text.${one.kind}`)}
              aria-label={t(`evaluations.text.${one.kind}`)}
              onChange={(event) => set(nth, { text: event.target.value })}
            />
          )}
        </div>
      ))}
      <Button onClick={() => onChange([...scorers, { ...MATCH, kind: "judge", name: `score_${scorers.length + 1}` }])}>
        <Plus className="size-4" aria-hidden /> {t("evaluations.scorerAdd")}
      </Button>
    </fieldset>
  );
}
