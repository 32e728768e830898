/** Delegate a gate to another person. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Forward } from "lucide-react";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import { delegate } from "@/api/queries";
import type { Execution, Gate } from "@/api/views";
import { Button } from "@/components/Button";
import { DialogActions } from "@/components/DialogActions";
import { DraftDialog } from "@/components/DraftDialog";
import { LabelledField } from "@/components/LabelledField";
import { ErrorMessage } from "@/components/StatusMessage";

export function DelegateButton(props: { execution: string; gate: Gate; onDone?: () => void }) {
  const { t } = useTranslation();
  const [isOpen, open] = useState(false);
  return (
    <>
      <Button kind="quiet" onClick={() => open(true)}>
        <Forward className="size-4" aria-hidden /> {t("gate.delegate")}
      </Button>
      {isOpen ? <DelegateDialog {...props} onClose={() => open(false)} /> : null}
    </>
  );
}

function DelegateDialog(props: { execution: string; gate: Gate; onDone?: () => void; onClose: () => void }) {
  const { t } = useTranslation();
  const { gate } = props;
  const client = useQueryClient();
  const names = useId();
  const [to, setTo] = useState("");
  const [comment, setComment] = useState("");
  const delegateGate = useMutation<Execution, ApiError>({
    mutationFn: () => delegate(props.execution, { gateId: gate.gateId, to: to.trim(), comment }),
    onSuccess: (next) => {
      props.onClose();
      props.onDone?.();
      client.setQueryData(["execution", props.execution], next);
      void client.invalidateQueries({ queryKey: ["inbox"] });
    },
  });
  return (
    <DraftDialog open onClose={props.onClose} title={t("gate.delegate")} about={t("gate.delegateAbout")}>
      <form
        className="space-y-3"
        onSubmit={(event) => {
          event.preventDefault();
          delegateGate.mutate();
        }}
      >
        <LabelledField name={t("gate.delegateTo")} about={t("gate.delegateToAbout")}>
          {(its) => (
            <input
              {...its}
              required
              maxLength={200}
              list={names}
              autoComplete="off"
              value={to}
              onChange={(event) => setTo(event.target.value)}
            />
          )}
        </LabelledField>
        <datalist id={names}>
          {(gate.approvers?.users ?? []).map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
        <LabelledField name={t("gate.why")}>
          {(its) => <input {...its} value={comment} onChange={(event) => setComment(event.target.value)} />}
        </LabelledField>
        {delegateGate.isError ? <ErrorMessage error={delegateGate.error} /> : null}
        <DialogActions onClose={props.onClose}>
          <Button kind="primary" type="submit" disabled={delegateGate.isPending || !to.trim()}>
            {t("gate.delegate")}
          </Button>
        </DialogActions>
      </form>
    </DraftDialog>
  );
}
