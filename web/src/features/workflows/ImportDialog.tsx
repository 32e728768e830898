import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type DragEvent, useCallback, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import { saveNew } from "@/api/queries";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { DialogActions } from "@/components/DialogActions";
import { ErrorMessage, Loading, ProblemList } from "@/components/StatusMessage";
import { useStoredState } from "@/components/useStoredState";
import { type Checked, check as checkText, type Document, readDocument } from "./documents";
import { ImportList } from "./ImportList";

/** Import documents in any dialect: dropped, selected or pasted. They are checked before they are saved. `files` are
 * imported at once. */
export function ImportDialog(props: { files: readonly File[]; onClose: () => void }) {
  const { t } = useTranslation();
  const [documents, setDocuments] = useState<readonly Document[]>([]);
  const [isReading, setReading] = useState(props.files.length > 0);
  const read = useCallback(async (files: readonly File[]) => {
    setReading(true);
    setDocuments(await Promise.all(files.map(readDocument)));
    setReading(false);
  }, []);
  const begun = useRef(false);
  useEffect(() => {
    if (begun.current || props.files.length === 0) return;
    begun.current = true;
    void read(props.files);
  }, [props.files, read]);
  const [only] = documents;
  return (
    <Dialog open onClose={props.onClose} title={t("import.title")} about={t("import.about")} wide>
      {isReading ? (
        <Loading />
      ) : documents.length > 1 || only?.failed ? (
        <ImportList documents={documents} onClose={props.onClose} />
      ) : (
        <OneDocument key={only?.name ?? ""} text={only?.text ?? ""} onFiles={read} onClose={props.onClose} />
      )}
    </Dialog>
  );
}

/** One document as editable text. */
function OneDocument(props: { text: string; onFiles: (files: readonly File[]) => void; onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [kept, setText] = useStoredState("import");
  const [isTouched, touch] = useState(false);
  const text = isTouched ? kept : props.text || kept;
  const check = useMutation<Checked, ApiError, string>({ mutationFn: checkText });
  const { mutate: begin } = check;
  // biome-ignore lint/correctness/useExhaustiveDependencies: check the initial text once
  useEffect(() => {
    if (text) begin(text);
  }, [begin]);
  const save = useMutation<{ id: string }, ApiError, boolean>({
    mutationFn: (draft) => saveNew(text, draft),
    onSuccess: async ({ id }) => {
      setText("");
      await client.invalidateQueries({ queryKey: ["workflows"] });
      props.onClose();
      await navigate({ to: "/workflows/$id", params: { id } });
    },
  });

  function look(at: string) {
    touch(true);
    setText(at);
    save.reset();
    if (at.trim()) check.mutate(at);
    else check.reset();
  }

  function drop(event: DragEvent) {
    event.preventDefault();
    event.stopPropagation();
    const files = [...event.dataTransfer.files];
    if (files.length > 0) props.onFiles(files);
  }

  const errors = check.data?.problems.filter((one) => one.severity === "error").length ?? 0;
  return (
    <>
      <div>
        <label className="mb-2 inline-block">
          <span className="cursor-pointer text-accent underline">{t("import.choose")}</span>
          <input
            type="file"
            accept=".json,.yaml,.yml,application/json"
            multiple
            className="sr-only"
            onChange={(event) => {
              const files = [...(event.target.files ?? [])];
              if (files.length > 0) props.onFiles(files);
            }}
          />
        </label>
        <textarea
          value={text}
          onDragOver={(event) => event.preventDefault()}
          onDrop={drop}
          onChange={(event) => look(event.target.value)}
          aria-label={t("import.text")}
          placeholder={t("import.placeholder")}
          spellCheck={false}
          className="h-64 w-full resize-y rounded-md border border-line-strong bg-sunken p-3 font-mono text-xs"
        />
      </div>
      <div aria-live="polite" className="mt-2">
        {check.isError ? <ErrorMessage error={check.error} /> : null}
        {check.data ? (
          <p className={check.data.ok ? "text-done" : "text-failed"}>
            {check.data.ok
              ? t(check.data.problems.length > 0 ? "import.remarks" : "import.ok", {
                  count: check.data.problems.length,
                  dialect: t(`dialect.${check.data.dialect}`, check.data.dialect ?? ""),
                })
              : t("import.errors", { count: errors })}
          </p>
        ) : null}
        {check.data?.id && check.data.revision ? (
          <p className="text-waiting">{t("import.taken", { id: check.data.id, revision: check.data.revision + 1 })}</p>
        ) : null}
        {check.data ? <ProblemList problems={check.data.problems} /> : null}
        {save.isError ? <ErrorMessage error={save.error} /> : null}
      </div>
      <DialogActions onClose={props.onClose}>
        {check.data && !check.data.ok ? (
          <Button onClick={() => save.mutate(true)} disabled={save.isPending}>
            {t("import.draft")}
          </Button>
        ) : null}
        <Button kind="primary" onClick={() => save.mutate(false)} disabled={!check.data?.ok || save.isPending}>
          {t("import.save")}
        </Button>
      </DialogActions>
    </>
  );
}
