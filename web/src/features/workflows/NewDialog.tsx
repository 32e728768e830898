import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type ApiError, apiRequest, query } from "@/api/http";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { DialogActions } from "@/components/DialogActions";
import { ErrorMessage } from "@/components/StatusMessage";
import { idOf } from "./ids";

/** Create a workflow from a name, with a start node only, in the open folder. */
export function NewDialog({ folder, onClose }: { folder: string | undefined; onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const [typed, setTyped] = useState<string | null>(null);
  const id = typed ?? idOf(name);
  const make = useMutation<{ id: string }, ApiError>({
    mutationFn: () =>
      apiRequest(`/api/workflows${query({ folder })}`, {
        body: { pointsman: 1, id, name: name.trim(), nodes: [{ id: "start", type: "start" }], edges: [] },
        headers: { "if-none-match": "*" },
      }),
    onSuccess: async (made) => {
      await client.invalidateQueries({ queryKey: ["workflows"] });
      await navigate({ to: "/workflows/$id", params: { id: made.id } });
    },
  });
  const isTaken = make.error?.code === "revision-moved";
  return (
    <Dialog open onClose={onClose} title={t("new.title")} about={t("new.about")}>
      <form
        className="space-y-3"
        onSubmit={(event) => {
          event.preventDefault();
          if (id) make.mutate();
        }}
      >
        <label className="block font-medium">
          {t("new.name")}
          <input
            autoFocus
            value={name}
            onChange={(event) => setName(event.target.value)}
            maxLength={200}
            className="mt-0.5 w-full rounded-md border border-line-strong bg-surface px-2 py-1.5 font-normal"
          />
        </label>
        <label className="block font-medium">
          {t("new.id")}
          <input
            value={id}
            onChange={(event) => setTyped(event.target.value)}
            maxLength={200}
            spellCheck={false}
            aria-describedby="new-id-about"
            className="mt-0.5 w-full rounded-md border border-line-strong bg-surface px-2 py-1.5 font-mono font-normal"
          />
        </label>
        <p id="new-id-about" className="text-ink-soft">
          {t("new.idAbout")}
        </p>
        {isTaken ? (
          <p role="alert" className="text-failed">
            {t("new.taken", { id })}
          </p>
        ) : make.error ? (
          <ErrorMessage error={make.error} />
        ) : null}
        <DialogActions onClose={onClose}>
          <Button type="submit" kind="primary" disabled={!id || make.isPending}>
            {t("new.make")}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
