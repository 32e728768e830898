import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type DragEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { type ApiError, ask, type Problem } from "@/api/http";
import { saveNew } from "@/api/queries";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { Failed, Problems } from "@/components/Told";

interface Checked {
  ok: boolean;
  dialect: string | null;
  problems: Problem[];
}

/** A document in any dialect: dropped, chosen or pasted; checked before it is saved. */
export function ImportDialog(props: { open: boolean; onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const check = useMutation<Checked, ApiError, string>({
    mutationFn: (document) => ask<Checked>("/api/workflows/check", { body: { document } }),
  });
  const save = useMutation<{ id: string }, ApiError, boolean>({
    mutationFn: (draft) => saveNew(text, draft),
    onSuccess: async ({ id }) => {
      await client.invalidateQueries({ queryKey: ["workflows"] });
      close();
      await navigate({ to: "/workflows/$id", params: { id } });
    },
  });

  function close() {
    setText("");
    check.reset();
    save.reset();
    props.onClose();
  }

  function look(at: string) {
    setText(at);
    save.reset();
    if (at.trim()) check.mutate(at);
    else check.reset();
  }

  async function drop(event: DragEvent) {
    event.preventDefault();
    const file = event.dataTransfer.files[0];
    if (file) look(await file.text());
  }

  const errors = check.data?.problems.filter((one) => one.severity === "error").length ?? 0;
  return (
    <Dialog open={props.open} onClose={close} title={t("import.title")} about={t("import.about")} wide>
      <div>
        <label className="mb-2 inline-block">
          <span className="cursor-pointer text-accent underline">{t("import.choose")}</span>
          <input
            type="file"
            accept=".json,.yaml,.yml,application/json"
            className="sr-only"
            onChange={async (event) => {
              const file = event.target.files?.[0];
              if (file) look(await file.text());
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
        {check.isError ? <Failed why={check.error} /> : null}
        {check.data ? (
          <p className={check.data.ok ? "text-done" : "text-failed"}>
            {check.data.ok
              ? t("import.ok", { dialect: t(`dialect.${check.data.dialect}`, check.data.dialect ?? "") })
              : t("import.errors", { count: errors })}
          </p>
        ) : null}
        {check.data ? <Problems problems={check.data.problems} /> : null}
        {save.isError ? <Failed why={save.error} /> : null}
      </div>
      <div className="mt-4 flex justify-end gap-2">
        {check.data && !check.data.ok ? (
          <Button onClick={() => save.mutate(true)} disabled={save.isPending}>
            {t("import.draft")}
          </Button>
        ) : null}
        <Button kind="primary" onClick={() => save.mutate(false)} disabled={!check.data?.ok || save.isPending}>
          {t("import.save")}
        </Button>
      </div>
    </Dialog>
  );
}
