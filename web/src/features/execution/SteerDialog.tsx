import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { control } from "@/api/queries";
import type { Definition, Execution, JsonObject } from "@/api/views";
import { Button } from "@/components/Button";
import { DialogActions } from "@/components/DialogActions";
import { DraftDialog } from "@/components/DraftDialog";
import { LabelledField } from "@/components/LabelledField";
import { ErrorMessage } from "@/components/StatusMessage";
import { textIn } from "@/i18n";
import { StateEditor, useEditedState } from "./StateEditor";

/** Intervene between two steps: send a message to the agents, change data, or continue at another node. */
export function SteerDialog(props: {
  execution: Execution;
  definition: Definition | undefined;
  onClose: () => void;
  onDone: (next: Execution) => void;
}) {
  const { t, i18n } = useTranslation();
  const [message, setMessage] = useState("");
  const [goto, setGoto] = useState("");
  const [reason, setReason] = useState("");
  const edited = useEditedState(props.execution.state);
  const steer = useMutation({
    mutationFn: () =>
      control(props.execution.executionId, "steer", {
        ...(message.trim() ? { messages: [message] } : {}),
        ...(Object.keys(edited.set).length ? { set: edited.set as JsonObject } : {}),
        ...(goto ? { goto } : {}),
        ...(reason ? { reason } : {}),
      }),
    onSuccess: (next) => {
      props.onDone(next);
      props.onClose();
    },
  });
  const isEmpty = !message.trim() && !goto && Object.keys(edited.set).length === 0;
  return (
    <DraftDialog open wide onClose={props.onClose} title={t("steer.title")} about={t("steer.about")}>
      <form
        className="space-y-3"
        onSubmit={(event) => {
          event.preventDefault();
          steer.mutate();
        }}
      >
        <LabelledField name={t("steer.message")} about={t("steer.messageAbout")}>
          {(its) => <textarea {...its} rows={3} value={message} onChange={(event) => setMessage(event.target.value)} />}
        </LabelledField>
        <LabelledField name={t("steer.goto")} about={t("steer.gotoAbout")}>
          {(its) => (
            <select {...its} value={goto} onChange={(event) => setGoto(event.target.value)}>
              <option value="">{t("steer.stay")}</option>
              {props.definition?.nodes
                .filter((node) => node.type !== "note")
                .map((node) => (
                  <option key={node.id} value={node.id}>
                    {textIn(node.name, i18n.language, node.id)}
                  </option>
                ))}
            </select>
          )}
        </LabelledField>
        <StateEditor edited={edited} />
        <LabelledField name={t("steer.reason")}>
          {(its) => <input {...its} value={reason} onChange={(event) => setReason(event.target.value)} />}
        </LabelledField>
        {steer.isError ? <ErrorMessage error={steer.error} /> : null}
        <DialogActions onClose={props.onClose}>
          <Button kind="primary" type="submit" disabled={steer.isPending || isEmpty || edited.error !== null}>
            {t("steer.go")}
          </Button>
        </DialogActions>
      </form>
    </DraftDialog>
  );
}
